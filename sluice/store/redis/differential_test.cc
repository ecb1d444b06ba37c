// The script held against the algorithms: random traces, under a clock of the test's own, in which
// each decision, each receipt and what each undo leaves must be the same on both sides.
//
// SLUICE_SCRIPT_STEPS=1000000 makes as many decisions for each algorithm; the default takes some
// seconds in all. SLUICE_SCRIPT_SEED=N draws other traces.
#include <gtest/gtest.h>

#include <cstdlib>
#include <deque>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "sluice/algorithm/testing/trace.h"
#include "sluice/store/redis/testing/model.h"
#include "sluice/store/redis/testing/script_server.h"

namespace sluice {

void PrintTo(const Decision& d, std::ostream* out) {
  *out << "{verdict " << static_cast<int>(d.verdict) << ", remaining " << d.remaining << ", retry "
       << d.retry_after.count() << ", reset " << d.reset_after.count() << ", delay "
       << d.delay.count() << "}";
}

namespace redis {
namespace {

using testing::Clock;
using testing::Model;
using testing::ModelKey;
using testing::ScriptServer;
using namespace std::chrono_literals;

constexpr Duration kDay = 24h;

struct Family {
  std::string name;
  std::vector<Limit> limits;  // a rule of it changes from one to another
  Duration stride;            // a typical wait
  bool converts = true;       // whether rules change
  int back_per_cent = 5;      // how often the clock steps back
};

void PrintTo(const Family& family, std::ostream* out) { *out << family.name; }

template <typename L>
Limit Made(absl::StatusOr<L> limit) {
  EXPECT_TRUE(limit.ok()) << limit.status();
  return *std::move(limit);
}

Limit Bucket(std::int64_t count, Duration period, std::uint64_t burst) {
  return Made(token_bucket::MakeLimit({count, period}, burst));
}
Limit Queue(std::int64_t count, Duration period, std::uint64_t queue, Duration wait) {
  return Made(leaky_bucket::MakeLimit({count, period}, queue, wait));
}
Limit Fixed(std::int64_t limit, Duration window, bool per_key = false, Duration offset = {}) {
  auto made = fixed_window::MakeLimit(limit, window, fixed_window::Align::kClock, offset);
  made->per_key_offset = per_key;
  return Made(made);
}
Limit FirstHit(std::int64_t limit, Duration window) {
  return Made(fixed_window::MakeLimit(limit, window, fixed_window::Align::kFirstHit));
}
Limit Counter(std::int64_t limit, Duration window, bool per_key = false, Duration offset = {}) {
  auto made = sliding_window_counter::MakeLimit(limit, window, offset);
  made->per_key_offset = per_key;
  return Made(made);
}
Limit Strict(std::int64_t limit, Duration window, int sub_windows) {
  return Made(sliding_window_strict::MakeLimit(limit, window, sub_windows));
}
Limit Log(std::int64_t limit, Duration window, bool weighted) {
  return Made(sliding_window_log::MakeLimit(limit, window, weighted));
}
Limit Slots(std::int64_t limit, Duration ttl) { return Made(concurrency::MakeLimit(limit, ttl)); }
Limit Quota(std::int64_t limit, calendar::Period period, std::string_view zone) {
  return Made(calendar::MakeLimit(limit, period, zone));
}

std::vector<Family> Families() {
  constexpr std::int64_t kMany = 1'000'000'000'000'000;
  return {
      {.name = "TokenBucket",
       .limits = {Bucket(10, 1s, 5), Bucket(3, 1s, 7), Bucket(333, 1min, 20), Bucket(7919, 1s, 40),
                  Bucket(700'000'000, 1s, 2'000'000), Bucket(3, 24h, 3),
                  Bucket(8, 1ns, 10'000'000)},
       .stride = 200ms},
      {.name = "LeakyBucket",
       .limits = {Queue(10, 1s, 5, 10s), Queue(3, 1s, 7, 2s), Queue(7919, 1s, 400, 1s),
                  Queue(1, 1s, 0, 0s), Queue(333, 1min, 20, 700ms)},
       .stride = 200ms},
      {.name = "FixedWindow",
       .limits = {Fixed(10, 1s), Fixed(5, 1s), Fixed(20, 1500ms, false, 250ms), Fixed(8, 1s, true),
                  Fixed(0, 1s), Fixed(kMany, 10s), Fixed(9, 1'000'001ns), FirstHit(7, 1s),
                  FirstHit(9, 2s)},
       .stride = 300ms},
      {.name = "SlidingCounter",
       .limits = {Counter(10, 1s), Counter(7, 1s), Counter(20, 1500ms, false, 250ms),
                  Counter(8, 1s, true), Counter(kMany, 365 * kDay), Counter(123'456'789, 30 * kDay),
                  Counter(kMany, 1s)},
       .stride = 300ms},
      {.name = "StrictCounter",
       .limits = {Strict(10, 1s, 4), Strict(15, 1s, 4), Strict(10, 1s, 7), Strict(20, 1min, 60),
                  Strict(3, 1ms, 60), Strict(kMany, 10s, 16)},
       .stride = 150ms},
      {.name = "Log",
       .limits = {Log(10, 1s, false), Log(15, 1s, false), Log(10, 1s, true), Log(300, 24h, true),
                  Log(6, 1h, false), Log(200, 1s, true)},
       .stride = 150ms},
      {.name = "Concurrency",
       .limits = {Slots(5, 1s), Slots(8, 1s), Slots(4, 0s), Slots(3, 300ms), Slots(100, 30s)},
       .stride = 100ms},
      {.name = "Calendar",
       .limits = {Quota(10, calendar::Period::kDay, "Europe/Berlin"),
                  Quota(6, calendar::Period::kDay, "America/Sao_Paulo"),
                  Quota(30, calendar::Period::kWeek, "UTC"),
                  Quota(50, calendar::Period::kMonth, "Asia/Kathmandu"),
                  Quota(50, calendar::Period::kYear, "UTC")},
       .stride = 12min,  // a million steps end before 2055, as the script does
       .back_per_cent = 3},
      {.name = "All",
       .limits = {Bucket(10, 1s, 5), Queue(10, 1s, 5, 10s), Fixed(10, 1s), FirstHit(7, 1s),
                  Fixed(8, 1s, true), Counter(10, 1s), Strict(10, 1s, 4), Log(10, 1s, true),
                  Log(12, 3s, false), Quota(100, calendar::Period::kDay, "UTC")},
       .stride = 200ms},
  };
}

std::uint64_t Setting(const char* name, std::uint64_t otherwise) {
  const char* const asked = std::getenv(name);
  std::uint64_t number = 0;
  return asked != nullptr && absl::SimpleAtoi(asked, &number) ? number : otherwise;
}

class DifferentialTest : public ::testing::TestWithParam<Family> {
 protected:
  static constexpr std::size_t kKeys = 5;

  struct Key {
    std::string name;
    std::uint32_t phase_bits;
    std::size_t limit;
    bool converted = false;
  };
  struct Charged {
    std::size_t key;
    const ScriptLimit* limit;
    Receipt receipt;   // of the script
    Receipt expected;  // of the model
    bool lease;
    std::uint64_t left;  // to be given back
  };

  DifferentialTest() : server_(Clock::kManual) {
    for (const Limit& limit : GetParam().limits) {
      absl::StatusOr<ScriptLimit> made = ScriptLimit::Make(limit);
      EXPECT_TRUE(made.ok()) << made.status();
      limits_.push_back(*made);
    }
    for (std::size_t i = 0; i < kKeys; ++i) {
      keys_.push_back({absl::StrCat("key", i), static_cast<std::uint32_t>(random_.Below(1LL << 32)),
                       random_.Below(limits_.size())});
    }
    now_us_ = 1'781'000'000'000'000 + random_.Between(0, 100'000'000'000);
  }

  void Wait() {
    const std::int64_t stride = GetParam().stride / 1us;
    if (random_.Chance(GetParam().back_per_cent)) {
      // Seldom by so much that what is kept lies further ahead than it ever should.
      now_us_ -= random_.Between(1, random_.Chance(10) ? 200 * stride : 3 * stride);
    } else if (random_.Chance(15) && hint_ > 0us && hint_ < 100 * stride * 1us) {
      // To the very instant that a decision named, or one before it.
      now_us_ += (hint_ + 999ns) / 1us - random_.Between(0, 1);
    } else if (random_.Chance(5)) {
      now_us_ += random_.Between(0, 30 * stride);
    } else if (random_.Chance(60)) {
      now_us_ += random_.Between(0, stride);
    }
    hint_ = 0us;
    server_.SetTime(now_us_);
    server_.own_clock = NowOf(now_us_ + random_.Between(-1000, 1000));
  }

  std::uint64_t SomeCost(const ScriptLimit& limit) {
    const std::uint64_t capacity = CapacityOf(limit.limit());
    switch (random_.Below(8)) {
      case 0:
        return 0;
      case 1:
        return capacity + random_.Below(3);
      case 2:
        return random_.Chance(50) ? 2 * capacity + random_.Below(3)
                                  : ~std::uint64_t{0} - random_.Below(1000);
      case 3:
        return 1 + random_.Below(capacity + 1);
      case 4:
        return 1 + random_.Below(capacity / 2 + 1);
      default:
        return 1;
    }
  }

  ScriptClaim SomeClaim() {
    const Key& key = keys_[random_.Below(kKeys)];
    const ScriptLimit& limit = limits_[key.limit];
    ScriptClaim claim{.key = key.name, .limit = &limit, .phase_bits = key.phase_bits};
    static constexpr ClaimKind kKinds[] = {ClaimKind::kBinding, ClaimKind::kShadow,
                                           ClaimKind::kSoft, ClaimKind::kLook,
                                           ClaimKind::kShadowLook};
    claim.kind = random_.Chance(60) ? ClaimKind::kBinding : kKinds[random_.Below(5)];
    claim.charge_denied = random_.Chance(15);
    claim.cost = SomeCost(limit);
    claim.slot = next_slot_++ * 0x9E3779B97F4A7C15U;
    return claim;
  }

  // As its own request: what may be leased sometimes is.
  void SometimesLease(ScriptClaim& claim) {
    if (claim.kind != ClaimKind::kBinding || claim.charge_denied || !random_.Chance(40) ||
        !CanLease(claim.limit->limit())) {
      return;
    }
    Duration longest = LongestLease(claim.limit->limit());
    // Mostly of a length of which some end during a trace: under other numbers a long one blocks.
    if (random_.Chance(95)) longest = std::min(longest, 3 * GetParam().stride);
    claim.lease = Duration{random_.Between(1, longest.count() + longest.count() / 5)};
  }

  // Several requests in one call.
  void DecideSome() {
    std::vector<std::vector<ScriptClaim>> claims(random_.Chance(2) ? ScriptCall::kMostGroups
                                                                   : 1 + random_.Below(4));
    std::vector<ScriptGroup> groups;
    std::vector<Model::Expected> expected;
    for (auto& of_group : claims) {
      const std::size_t count = random_.Chance(50) ? 1 : 1 + random_.Below(3);
      for (std::size_t i = 0; i < count; ++i) of_group.push_back(SomeClaim());
      if (count == 1) SometimesLease(of_group[0]);
      groups.push_back({.claims = of_group});
    }
    // Those with old numbers are decided later than the others of the call, which the model
    // follows.
    ASSERT_TRUE(server_.DecideOnce(groups).ok());
    expected.resize(groups.size());
    std::vector<std::size_t> again;
    for (std::size_t i = 0; i < groups.size(); ++i) {
      if (groups[i].state == ScriptGroup::State::kAgain) {
        again.push_back(i);
      } else {
        expected[i] = model_.Apply(groups[i], now_us_);
      }
    }
    for (const std::size_t i : again) {
      server_.Decide({&groups[i], 1});
      expected[i] = model_.Apply(groups[i], now_us_);
    }
    steps_ += static_cast<std::int64_t>(groups.size());
    for (std::size_t i = 0; i < groups.size(); ++i) {
      ASSERT_EQ(groups[i].state, ScriptGroup::State::kDone) << groups[i].status;
      ASSERT_EQ(groups[i].allowed, expected[i].allowed) << server_.sent();
      for (std::size_t j = 0; j < groups[i].claims.size(); ++j) {
        Compare(groups[i].claims[j], expected[i].claims[j]);
        if (HasFatalFailure()) return;
      }
    }
  }

  void Compare(const ScriptClaim& claim, const ModelKey::Answer& expected) {
    const bool slots = std::holds_alternative<concurrency::Limit>(claim.limit->limit());
    SCOPED_TRACE(absl::StrCat(std::string(claim.limit->prefix()), " cost ", claim.cost, " kind ",
                              static_cast<int>(claim.kind), claim.charge_denied ? " always" : "",
                              " step ", steps_));
    ASSERT_EQ(claim.decision, expected.decision) << server_.sent();
    hint_ = random_.Chance(50) && claim.decision.retry_after != kNever ? claim.decision.retry_after
                                                                       : claim.decision.reset_after;
    ASSERT_EQ(claim.receipt.units, expected.receipt.units);
    if (claim.receipt.units == 0) {
      ASSERT_EQ(claim.good_for, 0ns);
      return;
    }
    CompareLease(claim);
    ASSERT_EQ(claim.receipt.before, expected.receipt.before);
    if (!slots && !std::holds_alternative<sliding_window_log::Limit>(claim.limit->limit())) {
      ASSERT_EQ(claim.receipt.charged_at, expected.receipt.charged_at);
    }
    const std::size_t key = static_cast<std::size_t>(claim.key.back() - '0');
    // What was undone before a change of rules counts on with its own rounding.
    if (!keys_[key].converted && !slots) {
      ASSERT_EQ(claim.receipt.undone_before, expected.receipt.undone_before);
    }
    charged_.push_back({key, claim.limit, claim.receipt, expected.receipt, claim.lease > 0ns,
                        claim.receipt.units});
    if (charged_.size() > 200) charged_.pop_front();
  }

  void CompareLease(const ScriptClaim& claim) {
    const Limit& limit = claim.limit->limit();
    const Duration most = std::min(claim.lease, LongestLease(limit));
    const bool in_window = std::holds_alternative<fixed_window::Limit>(limit) ||
                           std::holds_alternative<calendar::Limit>(limit);
    ASSERT_EQ(claim.good_for, in_window ? std::min(most, claim.decision.reset_after) : most);
    if (claim.lease == 0ns) return;
    ++leases_;
    if (!in_window && random_.Chance(50)) hint_ = most;
  }

  void UndoSome() {
    if (charged_.empty()) return;
    const bool newest = random_.Chance(50);
    const std::size_t which = newest ? charged_.size() - 1 : random_.Below(charged_.size());
    Charged& charged = charged_[which];
    const std::uint64_t units = random_.Chance(70) ? charged.left : 1 + random_.Below(charged.left);
    ScriptUndo undo{.key = keys_[charged.key].name,
                    .limit = charged.limit,
                    .phase_bits = keys_[charged.key].phase_bits,
                    .receipt = charged.receipt,
                    .units = units};
    const std::string mark = absl::StrCat("mark", ++marks_);
    const int times = random_.Chance(50) ? 1 : 1 + static_cast<int>(random_.Below(3));
    if (times > 1 || random_.Chance(20)) {
      undo.mark = mark;
      undo.mark_life = std::chrono::hours{1};
    }
    for (int i = 0; i < times; ++i) {
      server_.Undo({&undo, 1});
      ASSERT_TRUE(undo.status.ok()) << undo.status;
    }
    model_.Undo(undo, charged.expected, now_us_);
    // A receipt is good for one undo, that of a lease for all its units.
    charged.left = charged.lease ? charged.left - units : 0;
    if (charged.left == 0) charged_.erase(charged_.begin() + static_cast<std::ptrdiff_t>(which));
  }

  void RenewOne() {
    if (charged_.empty()) return;
    const Charged& charged = charged_[random_.Below(charged_.size())];
    if (!std::holds_alternative<concurrency::Limit>(charged.limit->limit())) return;
    ScriptRenewal renewal{
        .key = keys_[charged.key].name, .limit = charged.limit, .receipt = charged.receipt};
    server_.Renew({&renewal, 1});
    ASSERT_TRUE(renewal.status.ok()) << renewal.status;
    ASSERT_EQ(renewal.held, model_.Renew(renewal, now_us_));
  }

  void ChangeARule() {
    const std::size_t which = random_.Below(kKeys);
    keys_[which].limit = random_.Below(limits_.size());
    keys_[which].converted = true;
    // Under other numbers a receipt is worth nothing; what it would be worth after one more change
    // back is nobody's promise.
    std::erase_if(charged_, [&](const Charged& charged) { return charged.key == which; });
  }

  ScriptServer server_;
  Model model_;
  int marks_ = 0;
  sluice::testing::Random random_{Setting("SLUICE_SCRIPT_SEED", 42)};
  std::vector<ScriptLimit> limits_;
  std::vector<Key> keys_;
  std::deque<Charged> charged_;
  std::int64_t now_us_ = 0;
  Duration hint_{0};  // when something changes, from now on
  std::int64_t steps_ = 0;
  std::int64_t leases_ = 0;  // that were granted
  std::uint64_t next_slot_ = 1;
};

TEST_P(DifferentialTest, TheScriptDecidesAsTheAlgorithmsDo) {
  const auto steps = static_cast<std::int64_t>(Setting("SLUICE_SCRIPT_STEPS", 12'000));
  while (steps_ < steps) {
    Wait();
    const std::uint64_t what = random_.Below(100);
    if (what < 75) {
      DecideSome();
    } else if (what < 93) {
      UndoSome();
    } else if (what < 98) {
      RenewOne();
    } else if (random_.Chance(60)) {
      ChangeARule();
    }
    if (HasFatalFailure()) {
      ADD_FAILURE() << "after " << steps_ << " decisions, at " << now_us_ << " us";
      return;
    }
  }
  EXPECT_EQ(server_.call().disagreements(), 0U);
  if (CanLease(limits_[0].limit())) {
    EXPECT_GT(leases_, steps / 200);
  }
}

INSTANTIATE_TEST_SUITE_P(Algorithms, DifferentialTest, ::testing::ValuesIn(Families()),
                         [](const auto& family) { return family.param.name; });

}  // namespace
}  // namespace redis
}  // namespace sluice
