// The guarantee of split_store.h on random traces, and split groups beside undivided ones.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sluice/algorithm/testing/trace.h"
#include "sluice/store/memory/memory_store.h"
#include "sluice/store/split_store.h"
#include "sluice/store/testing/parts_store.h"

namespace sluice {
namespace {

using namespace std::chrono_literals;
using testing::Random;

constexpr Now kStart{Time{1000h}, WallTime{1000h}};
constexpr std::size_t kParts = 3;

std::unique_ptr<MemoryStore> OpenStore() {
  return *MemoryStore::Open(
      {.max_keys = 10'000, .hash_key = HashKey(HashKind::kSipHash13, {1, 2, 3})}, kStart);
}

// A key of each part under each limit.
struct Key {
  std::string name;
  std::shared_ptr<const RemoteLimit> limit;
};
std::vector<Key> KeysOf(const RemoteStore& store, const std::vector<Limit>& limits) {
  std::vector<Key> keys;
  for (std::size_t i = 0; i < limits.size(); ++i) {
    for (std::size_t part = 0; part < kParts; ++part) {
      keys.push_back({std::to_string(i) + ":" + std::to_string(part), *store.Prepare(limits[i])});
    }
  }
  return keys;
}

// On `count` of the keys, none twice.
std::vector<RemoteClaim> DrawClaims(const std::vector<Key>& keys, std::size_t count,
                                    Random& random) {
  std::vector<RemoteClaim> claims;
  while (claims.size() < count) {
    const Key& key = keys[random.Below(keys.size())];
    const auto same = [&](const RemoteClaim& claim) { return claim.key == key.name; };
    if (std::ranges::any_of(claims, same)) continue;
    claims.push_back({.key = key.name,
                      .limit = key.limit.get(),
                      .cost = 1 + random.Below(2),
                      .decision = {},
                      .receipt = {}});
  }
  return claims;
}

// --- The guarantee ---

constexpr std::int64_t kCount = 20;  // of every limit here, in a second
constexpr std::int64_t kBurst = 8;

std::vector<Limit> BoundedLimits() {
  return {*token_bucket::MakeLimit({kCount, 1s}, kBurst), *fixed_window::MakeLimit(kCount, 1s)};
}

struct Request {
  std::vector<RemoteClaim> claims;
  std::vector<Time> decided;  // when each claim's part did
  RemoteGroup group;
  std::optional<absl::Status> told;
  bool given_back = false;
};

// So many units, passed at this instant.
struct Passed {
  Time at;
  std::int64_t units;
};

class Trace {
 public:
  explicit Trace(std::uint64_t seed) : random_(seed), keys_(KeysOf(parts_, BoundedLimits())) {}

  void Run() {
    for (int step = 0; step < 3000; ++step) Step();
    for (std::size_t part = 0; part < kParts; ++part) Answer(part);
    for (const auto& request : requests_) EXPECT_TRUE(request->told) << "nobody told";
  }

  // The most by which a stretch of a key has more than was promised, in units.
  [[nodiscard]] std::int64_t WorstOverAdmission() const {
    std::int64_t worst = 0;
    for (const Key& key : keys_) {
      const std::vector<Passed> passed = PassedOn(key);
      for (std::size_t i = 0; i < passed.size(); ++i) {
        std::int64_t units = 0;
        for (std::size_t j = i; j < passed.size(); ++j) {
          units += passed[j].units;
          worst = std::max(worst, units - MostIn(key, passed[i].at, passed[j].at));
        }
      }
    }
    return worst;
  }
  [[nodiscard]] std::size_t allowed() const { return Count(true); }
  [[nodiscard]] std::size_t vetoed() const { return Count(false); }
  [[nodiscard]] std::size_t failed() const {
    return static_cast<std::size_t>(
        std::ranges::count_if(requests_, [](const auto& request) { return !request->told->ok(); }));
  }

 private:
  void Step() {
    now_ = testing::After(now_, Duration{random_.Between(0, 4'000'000)});
    parts_.SetNow(now_);
    parts_.LoseUndos(random_.Chance(20));
    const std::size_t part_number = random_.Below(kParts);
    SharedStore& part = parts_.part(part_number);
    part.Refuse(random_.Chance(5) ? absl::UnavailableError("gone") : absl::OkStatus());
    if (random_.Chance(40)) {
      Ask();
    } else if (random_.Chance(80)) {
      Answer(part_number);
    } else if (random_.Chance(50)) {
      part.Fail(absl::DeadlineExceededError("late"), /*charged=*/random_.Chance(50));
    } else {
      GiveBackOne();
    }
  }
  void Ask() {
    auto request = std::make_unique<Request>();
    request->claims = DrawClaims(keys_, 1 + random_.Below(4), random_);
    if (random_.Chance(20)) request->claims.back().kind = ClaimKind::kShadow;
    request->decided.resize(request->claims.size());
    request->group = {.claims = request->claims};
    Request* const asked = request.get();
    const absl::Status sent = store_.Apply(
        asked->group, Time::max(), [asked](const absl::Status& status) { asked->told = status; });
    if (sent.ok()) requests_.push_back(std::move(request));
  }
  void Answer(std::size_t part) {
    for (const auto& request : requests_) {
      for (std::size_t i = 0; !request->told && i < request->claims.size(); ++i) {
        const bool here = PartsStore::PartOf(request->claims[i]) == part;
        if (here && request->decided[i] == Time{}) request->decided[i] = now_.steady;
      }
    }
    parts_.part(part).Answer(now_);
  }
  // A request that was allowed, as whoever asked may.
  void GiveBackOne() {
    if (requests_.empty()) return;
    Request& request = *requests_[random_.Below(requests_.size())];
    if (!request.told || !request.told->ok() || !request.group.allowed) return;
    if (std::exchange(request.given_back, true)) return;
    for (const RemoteClaim& claim : request.claims) {
      if (claim.receipt.units > 0) store_.Undo(claim, claim.receipt.units);
    }
  }

  // By requests that were told allowed, and not given back by whoever asked; in order.
  [[nodiscard]] std::vector<Passed> PassedOn(const Key& key) const {
    std::vector<Passed> passed;
    for (const auto& request : requests_) {
      if (!request->told->ok() || !request->group.allowed || request->given_back) continue;
      for (std::size_t i = 0; i < request->claims.size(); ++i) {
        const RemoteClaim& claim = request->claims[i];
        if (claim.key != key.name || claim.kind != ClaimKind::kBinding) continue;
        passed.push_back({request->decided[i], static_cast<std::int64_t>(claim.cost)});
      }
    }
    std::ranges::stable_sort(passed, {}, &Passed::at);
    return passed;
  }
  static std::int64_t MostIn(const Key& key, Time begin, Time end) {
    if (std::holds_alternative<token_bucket::Limit>(key.limit->limit())) {
      return kBurst + (end - begin) * kCount / 1s;
    }
    return kCount * (end.time_since_epoch() / 1s - begin.time_since_epoch() / 1s + 1);
  }
  [[nodiscard]] std::size_t Count(bool allowed) const {
    return static_cast<std::size_t>(std::ranges::count_if(requests_, [&](const auto& request) {
      return request->told->ok() && request->group.allowed == allowed;
    }));
  }

  Random random_;
  Now now_ = kStart;
  const std::unique_ptr<MemoryStore> counters_ = OpenStore();
  PartsStore parts_{*counters_, kParts, kStart};
  SplitStore store_{parts_, &PartsStore::PartOf};
  const std::vector<Key> keys_;
  std::vector<std::unique_ptr<Request>> requests_;
};

TEST(SplitStoreProperty, NoStretchAdmitsMoreThanItsBoundHoweverPartsAnswer) {
  std::size_t allowed = 0;
  std::size_t vetoed = 0;
  std::size_t failed = 0;
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE(seed);
    Trace trace(seed);
    trace.Run();
    EXPECT_EQ(trace.WorstOverAdmission(), 0);
    allowed += trace.allowed();
    vetoed += trace.vetoed();
    failed += trace.failed();
  }
  EXPECT_GT(allowed, 4000u);
  EXPECT_GT(vetoed, 4000u);
  EXPECT_GT(failed, 2000u);
}

// --- Split and undivided ---

std::vector<Limit> EveryLimit() {
  return {*token_bucket::MakeLimit({40, 1s}, 6),
          *token_bucket::MakeLimit({7919, 1min}, 6),
          *leaky_bucket::MakeLimit({40, 1s}, 3, 1s),
          *fixed_window::MakeLimit(9, 1s),
          *fixed_window::MakeLimit(9, 1s, fixed_window::Align::kFirstHit),
          *calendar::MakeLimit(1000, calendar::Period::kDay, "Europe/Berlin"),
          *concurrency::MakeLimit(6, 1s),
          *sliding_window_counter::MakeLimit(9, 1s),
          *sliding_window_strict::MakeLimit(9, 1s, 10),
          *sliding_window_log::MakeLimit(9, 1s, /*weighted=*/true)};
}

// uncharged.h: whose reset_after is too long where something else is owed.
bool IsApproximate(const Limit& limit) {
  return std::holds_alternative<sliding_window_counter::Limit>(limit) ||
         std::holds_alternative<sliding_window_strict::Limit>(limit) ||
         std::holds_alternative<sliding_window_log::Limit>(limit);
}

void ExpectSame(const RemoteClaim& split, const RemoteClaim& whole) {
  SCOPED_TRACE("key " + std::string(split.key) + ", kind " +
               std::to_string(static_cast<int>(split.kind)) + (split.charge_denied ? " cd" : ""));
  Decision told = split.decision;
  if (IsApproximate(split.limit->limit())) {
    EXPECT_GE(told.reset_after, whole.decision.reset_after);
    told.reset_after = whole.decision.reset_after;
  }
  EXPECT_EQ(told, whole.decision);
  EXPECT_EQ(split.receipt.units, whole.receipt.units);
}

TEST(SplitStoreDifferential, WhereAllPartsAnswerAtOnceAGroupIsToldWhatAnUndividedOneIs) {
  std::size_t vetoes = 0;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const std::unique_ptr<MemoryStore> counters = OpenStore();
    const std::unique_ptr<MemoryStore> others = OpenStore();
    PartsStore parts(*counters, kParts, kStart);
    SplitStore split(parts, &PartsStore::PartOf);
    SharedStore whole(*others, kStart);
    const std::vector<Key> keys = KeysOf(parts, EveryLimit());
    const std::vector<Key> same_keys = KeysOf(whole, EveryLimit());
    Now now = kStart;
    for (int step = 0; step < 2000 && !HasFailure(); ++step) {
      SCOPED_TRACE(step);
      now = testing::After(now, Duration{random.Between(0, 30'000'000)});
      std::vector<RemoteClaim> claims = DrawClaims(keys, 1 + random.Below(5), random);
      for (RemoteClaim& claim : claims) {
        if (random.Chance(30)) claim.kind = static_cast<ClaimKind>(random.Below(5));
        const bool looks = claim.kind == ClaimKind::kLook || claim.kind == ClaimKind::kShadowLook;
        claim.charge_denied = !looks && random.Chance(10);
      }
      std::vector<RemoteClaim> same = claims;
      for (RemoteClaim& claim : same) {
        const auto key = std::ranges::find(same_keys, claim.key, &Key::name);
        claim.limit = key->limit.get();
      }
      RemoteGroup group{.claims = claims};
      RemoteGroup undivided{.claims = same};
      int told = 0;
      const auto done = [&](const absl::Status& status) { told += status.ok() ? 1 : 0; };
      ASSERT_TRUE(split.Apply(group, Time::max(), done).ok());
      ASSERT_TRUE(whole.Apply(undivided, Time::max(), done).ok());
      parts.SetNow(now);
      parts.Answer(now);
      whole.Answer(now);
      ASSERT_EQ(told, 2);
      EXPECT_EQ(group.allowed, undivided.allowed);
      for (std::size_t i = 0; i < claims.size(); ++i) ExpectSame(claims[i], same[i]);
      vetoes += group.allowed ? 0 : 1;
    }
  }
  EXPECT_GT(vetoes, 5000u);
}

}  // namespace
}  // namespace sluice
