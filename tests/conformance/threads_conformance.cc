// Two threads on few keys, requests of one to three claims, undos in any order, a clock that goes
// on meanwhile: every guarantee holds on the times of spending.

#include <algorithm>
#include <array>
#include <atomic>
#include <limits>
#include <thread>

#include "sluice/algorithm/testing/trace.h"
#include "tests/conformance/store_under_test.h"

namespace sluice::conformance {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using testing::Random;

struct Spent {
  std::int64_t at;     // the time that was asked with, ns; for the leaky bucket, when it leaves
  std::int64_t after;  // what the clock showed when the answer was there
  std::int64_t units;
};

// The most units in [t, t + window) for any t. It was decided on somewhere between `at` and
// `after`: by then another thread may have asked with a later time, and have forgotten what is
// over. So only what lies in one window for sure is counted.
std::int64_t MostInWindow(const std::vector<Spent>& spent, std::int64_t window) {
  std::int64_t most = 0;
  std::int64_t sum = 0;
  std::size_t oldest = 0;
  for (const Spent& one : spent) {
    while (one.after - spent[oldest].at >= window) sum -= spent[oldest++].units;
    sum += one.units;
    most = std::max(most, sum);
  }
  return most;
}

// The most by which any stretch exceeds rate * t, in units, rounded up.
std::int64_t MostAboveRate(const std::vector<Spent>& spent, const Rate& rate) {
  // In 1 / period of a unit: the usual sum of a stretch that may begin anywhere.
  const std::int64_t period = rate.period.count();
  std::int64_t above = 0;
  std::int64_t most = 0;
  std::int64_t last = spent.empty() ? 0 : spent.front().at;
  for (const Spent& one : spent) {
    above = std::max<std::int64_t>(0, above - (one.at - last) * rate.count);
    last = one.at;
    above += one.units * period;
    most = std::max(most, above);
  }
  return (most + period - 1) / period;
}

struct MostAllowed {
  const std::vector<Spent>& spent;

  void operator()(const token_bucket::Limit& limit) const {
    EXPECT_LE(MostAboveRate(spent, limit.rate), static_cast<std::int64_t>(limit.burst));
  }
  void operator()(const leaky_bucket::Limit& limit) const {
    EXPECT_LE(MostAboveRate(spent, limit.pace.rate), 3);  // the cost of the last request
  }
  void operator()(const fixed_window::Limit& limit) const {
    // Aligned or not, never more than twice in any window.
    EXPECT_LE(MostInWindow(spent, limit.window.count()), 2 * static_cast<int>(limit.limit));
    if (limit.align != fixed_window::Align::kClock || limit.per_key_offset) return;
    std::int64_t window = -1;
    std::int64_t sum = 0;
    for (const Spent& one : spent) {
      // Over the edge meanwhile, it may have been counted in either window.
      if (one.at / limit.window.count() != one.after / limit.window.count()) continue;
      if (one.at / limit.window.count() != window) sum = 0;
      window = one.at / limit.window.count();
      sum += one.units;
      EXPECT_LE(sum, static_cast<std::int64_t>(limit.limit));
    }
  }
  void operator()(const sliding_window_counter::Limit& limit) const {
    EXPECT_LE(MostInWindow(spent, limit.window.count()), 2 * static_cast<int>(limit.limit) - 1);
  }
  void operator()(const calendar::Limit&) const {}  // too slow for this clock
  void operator()(const sliding_window_strict::Limit& limit) const {
    EXPECT_LE(MostInWindow(spent, limit.window.count()), static_cast<std::int64_t>(limit.limit));
  }
  void operator()(const sliding_window_log::Limit& limit) const {
    EXPECT_LE(MostInWindow(spent, limit.window.count()), static_cast<std::int64_t>(limit.limit));
  }
  void operator()(const concurrency::Limit&) const {}
};

// One limit with a few keys, and who holds how much of a concurrency key at this moment.
struct Subject {
  static constexpr std::size_t kKeys = 2;

  const Registered* limit;
  std::array<Hash128, kKeys> keys;
  std::array<std::atomic<std::int64_t>, kKeys> in_flight{};
};

// What one thread charged and did not give back.
struct Charge {
  std::size_t subject;
  std::size_t key;
  Claim claim;
  Now now;
  Now after;
  std::int64_t units;
};

// Moved by any thread, and never back. It does not run away from a thread that was put to sleep
// with an answer outstanding: a time that is two windows old is no slow thread but a broken clock.
class SharedClock {
 public:
  static constexpr Duration kMostBehind = milliseconds{5};

  explicit SharedClock(Now start) : start_(start) {}
  [[nodiscard]] Now Read() const { return At(passed_ns_.load()); }

  // What thread number `client` asks with next, until it says that it has its answer.
  Now Begin(std::size_t client) {
    asked_ns_[client] = 0;  // holds the clock while it is read
    asked_ns_[client] = passed_ns_.load();
    return At(asked_ns_[client]);
  }
  void End(std::size_t client) { asked_ns_[client] = kNobody; }

  void Advance(Duration by) {
    const std::int64_t oldest = std::min(asked_ns_[0].load(), asked_ns_[1].load());
    if (passed_ns_ - oldest < kMostBehind.count()) passed_ns_ += by.count();
  }

 private:
  static constexpr std::int64_t kNobody = std::numeric_limits<std::int64_t>::max();
  [[nodiscard]] Now At(std::int64_t passed_ns) const {
    return {start_.steady + Duration{passed_ns}, start_.wall + Duration{passed_ns}};
  }

  const Now start_;
  std::atomic<std::int64_t> passed_ns_{0};
  std::array<std::atomic<std::int64_t>, 2> asked_ns_{kNobody, kNobody};
};

class Client {
 public:
  Client(Store& store, SharedClock& clock, std::vector<std::unique_ptr<Subject>>& subjects,
         std::size_t number)
      : store_(store), clock_(clock), subjects_(subjects), number_(number), random_(number) {}

  void Run(int requests) {
    for (int i = 0; i < requests; ++i) {
      if (random_.Chance(20)) clock_.Advance(microseconds{random_.Below(400)});
      Request();
      if (random_.Chance(30)) UndoOne();
    }
  }
  void ReleaseAll() {
    for (Charge& charge : charges_) {
      if (IsConcurrency(charge)) GiveBack(charge, charge.units);
    }
  }
  [[nodiscard]] const std::vector<Charge>& charges() const { return charges_; }

 private:
  [[nodiscard]] bool IsConcurrency(const Charge& charge) const {
    return std::holds_alternative<concurrency::Limit>(subjects_[charge.subject]->limit->limit);
  }

  void Request() {
    std::array<Claim, 3> claims;
    std::array<std::pair<std::size_t, std::size_t>, 3> what;
    const std::size_t count = 1 + random_.Below(3);
    for (std::size_t i = 0; i < count; ++i) {
      what[i] = {random_.Below(subjects_.size()), random_.Below(Subject::kKeys)};
      const Subject& subject = *subjects_[what[i].first];
      claims[i].key = subject.keys[what[i].second];
      claims[i].limit = &subject.limit->limit;
      claims[i].limit_id = subject.limit->id;
      claims[i].cost = 1 + random_.Below(3);
    }
    ClaimGroup group{.claims = {claims.data(), count}};
    const Now now = clock_.Begin(number_);
    store_.Apply({&group, 1}, now);
    clock_.End(number_);
    const Now after = clock_.Read();
    for (std::size_t i = 0; i < count; ++i) {
      const auto units = static_cast<std::int64_t>(claims[i].receipt.units);
      EXPECT_EQ(units, group.allowed ? static_cast<std::int64_t>(claims[i].cost) : 0);
      if (units > 0) Keep({what[i].first, what[i].second, claims[i], now, after, units});
    }
  }

  void Keep(const Charge& charge) {
    if (IsConcurrency(charge)) {
      const auto& limit = std::get<concurrency::Limit>(subjects_[charge.subject]->limit->limit);
      const std::int64_t held =
          subjects_[charge.subject]->in_flight[charge.key].fetch_add(charge.units) + charge.units;
      EXPECT_LE(held, static_cast<std::int64_t>(limit.limit));
    }
    charges_.push_back(charge);
  }

  void GiveBack(Charge& charge, std::int64_t units) {
    if (charge.claim.receipt.units == 0) return;
    if (IsConcurrency(charge)) {
      units = charge.units;
      subjects_[charge.subject]->in_flight[charge.key].fetch_sub(units);
    }
    store_.Undo(charge.claim, static_cast<std::uint64_t>(units), clock_.Begin(number_));
    clock_.End(number_);
    charge.units -= units;
  }

  // Of one of the latest, all or a part.
  void UndoOne() {
    if (charges_.empty()) return;
    Charge& charge =
        charges_[charges_.size() - 1 - random_.Below(std::min<std::size_t>(charges_.size(), 8))];
    const auto& limit = subjects_[charge.subject]->limit->limit;
    // Out of the middle of a queue nothing comes back.
    if (std::holds_alternative<leaky_bucket::Limit>(limit)) return;
    if (charge.claim.receipt.units == 0) return;
    GiveBack(charge, 1 + static_cast<std::int64_t>(
                             random_.Below(static_cast<std::uint64_t>(charge.units))));
  }

  Store& store_;
  SharedClock& clock_;
  std::vector<std::unique_ptr<Subject>>& subjects_;
  std::size_t number_;
  Random random_;
  std::vector<Charge> charges_;
};

TEST_P(StoreConformance, GuaranteesHoldForTwoThreadsThatSpendAndUndoOnTheSameKeys) {
  const int kRequests = Few(15'000);
  std::vector<std::unique_ptr<Subject>> subjects;
  const auto add = [&](const std::string& name, const Limit& limit) {
    subjects.push_back(std::make_unique<Subject>());
    subjects.back()->limit = &Register(limit);
    for (std::size_t k = 0; k < Subject::kKeys; ++k) {
      subjects.back()->keys[k] = KeyOf(name + std::to_string(k));
    }
  };
  for (const NamedLimit& named : EveryRate(20, milliseconds{10})) {
    if (!std::holds_alternative<calendar::Limit>(named.limit)) add(named.name, named.limit);
  }
  add("slots", Concurrency(6));

  SharedClock clock(clock_.Read());
  std::array<Client, 2> clients = {Client(store(), clock, subjects, 0),
                                   Client(store(), clock, subjects, 1)};
  std::thread other([&] { clients[1].Run(kRequests); });
  clients[0].Run(kRequests);
  other.join();

  for (std::size_t s = 0; s < subjects.size(); ++s) {
    for (std::size_t k = 0; k < Subject::kKeys; ++k) {
      std::vector<Spent> spent;
      for (const Client& client : clients) {
        for (const Charge& charge : client.charges()) {
          if (charge.subject != s || charge.key != k) continue;
          // Both clocks go together here; the window kinds count by the wall.
          const bool wall = std::holds_alternative<fixed_window::Limit>(subjects[s]->limit->limit);
          const auto ns = [&](Now now) {
            return wall ? now.wall.time_since_epoch().count()
                        : now.steady.time_since_epoch().count();
          };
          const std::int64_t delay = charge.claim.decision.delay.count();
          spent.push_back({ns(charge.now) + delay, ns(charge.after) + delay, charge.units});
        }
      }
      std::sort(spent.begin(), spent.end(),
                [](const Spent& a, const Spent& b) { return a.at < b.at; });
      SCOPED_TRACE(std::string(AlgorithmName(subjects[s]->limit->limit)) + " " + std::to_string(s));
      if (!std::holds_alternative<concurrency::Limit>(subjects[s]->limit->limit)) {
        EXPECT_GT(spent.size(), static_cast<std::size_t>(Few(100)));  // it is a test of something
      }
      std::visit(MostAllowed{spent}, subjects[s]->limit->limit);
    }
  }
  for (Client& client : clients) client.ReleaseAll();
  clock_.Set(clock.Read());
  for (std::size_t k = 0; k < Subject::kKeys; ++k) {
    EXPECT_EQ(Remaining("slots" + std::to_string(k), *subjects.back()->limit), 6u);
  }
}

// Both come to each key at about the same moment, and neither has been there before.
TEST_P(StoreConformance, KeyThatTwoThreadsMeetForTheFirstTimeIsOneKey) {
  const int kKeys = Few(40'000);
  constexpr int kAbreast = 8;
  for (const Limit& limit :
       {TokenBucket(1, std::chrono::hours{1}, 1), SlidingLog(1, std::chrono::hours{1})}) {
    Open(2 * static_cast<std::uint64_t>(kKeys), 0);
    const Registered& registered = Register(limit);
    std::vector<std::atomic<int>> admitted(static_cast<std::size_t>(kKeys));
    std::array<std::atomic<int>, 2> at{0, 0};
    const auto spend = [&](std::size_t me) {
      for (int key = 0; key < kKeys; ++key) {
        // Neither runs away from the other.
        at[me] = key;
        while (key - at[1 - me] > kAbreast) std::this_thread::yield();
        const Claim claim = Ask("key" + std::to_string(key), registered);
        if (claim.decision.allowed()) ++admitted[static_cast<std::size_t>(key)];
      }
      at[me] = kKeys;
    };
    std::thread other(spend, 1);
    spend(0);
    other.join();
    for (int key = 0; key < kKeys; ++key) {
      EXPECT_EQ(admitted[static_cast<std::size_t>(key)], 1) << key;
    }
  }
}

// A clock that stands still: exactly the burst goes through, whoever asks.
TEST_P(StoreConformance, FrozenClockAdmitsExactlyTheLimitFromTwoThreads) {
  for (const NamedLimit& named : EveryRate(50, std::chrono::hours{1})) {
    SCOPED_TRACE(named.name);
    const Registered& limit = Register(named.limit);
    const int kKeys = Few(100);
    std::vector<std::atomic<int>> admitted(static_cast<std::size_t>(kKeys));
    const auto spend = [&] {
      for (int i = 0; i < 60 * kKeys; ++i) {
        const int key = i % kKeys;
        const Claim claim = Ask(named.name + std::to_string(key), limit);
        if (claim.decision.allowed()) ++admitted[static_cast<std::size_t>(key)];
      }
    };
    std::thread other(spend);
    spend();
    other.join();
    for (const std::atomic<int>& count : admitted) EXPECT_EQ(count, 50);
  }
}

}  // namespace
}  // namespace sluice::conformance
