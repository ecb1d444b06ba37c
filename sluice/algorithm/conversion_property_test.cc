// Reload: a state goes from one limit to another, and neither mints nor locks out.
//
// Token bucket, for every stretch that ends with a charge, over any number of reloads in it:
//
//   units <= the burst in force at its end + what each reload in it took off the burst
//            + the sum of rate * time under each limit
//
// so over one reload the larger of the two bursts + rate * time (plus, for each limit without a
// whole interval, the burst ticks of its own guarantee). And the debt after a reload is what it was
// in whole units, or the new burst where that is less: nobody waits for more than one burst.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "sluice/algorithm/internal/arithmetic.h"
#include "sluice/algorithm/testing/trace.h"

namespace sluice {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;
using testing::Spending;
using testing::Trace;
using testing::TraceOptions;

constexpr std::int64_t kMinute = Duration{minutes{1}}.count();

// Limits whose periods divide a minute: units are counted in 1 / (minute in ticks of 1/8 ns).
class Ledger {
 public:
  explicit Ledger(const std::vector<token_bucket::Limit>& limits) : limits_(limits) {}

  // A limit came into force.
  void Enter(std::size_t limit, Now now) { periods_.push_back({now.steady, limit}); }

  // What may be spent from `start` to `end`, inclusive, times kScale.
  [[nodiscard]] Int128 Allowed(Time start, Time end) const {
    Int128 sum = 0;
    std::uint64_t burst = 0;
    for (std::size_t i = 0; i < periods_.size(); ++i) {
      const Time from = std::max(start, periods_[i].since);
      const Time to = i + 1 < periods_.size() ? std::min(end, periods_[i + 1].since) : end;
      if (to < from || periods_[i].since > end) continue;
      const token_bucket::Limit& limit = limits_[periods_[i].limit];
      const Int128 per_ns = Int128{limit.rate.count} * kMinute / limit.rate.period.count() * 8;
      if (burst > limit.burst) sum += Int128{burst - limit.burst} * kScale;
      burst = limit.burst;
      sum += per_ns * (to - from).count();
      if (limit.units > 1) sum += per_ns / 8 * Int128{limit.burst};
    }
    return Int128{burst} * kScale + sum;
  }

  static constexpr Int128 kScale = Int128{kMinute} * 8;

 private:
  struct Period {
    Time since;
    std::size_t limit;
  };
  const std::vector<token_bucket::Limit>& limits_;
  std::vector<Period> periods_;
};

void CheckReloads(const std::vector<token_bucket::Limit>& limits, std::uint64_t seed) {
  SCOPED_TRACE("seed " + std::to_string(seed));
  Ledger ledger(limits);
  const TraceOptions options{.stride = milliseconds{700}, .most_cost = 6, .undo_per_cent = 20};
  Trace trace(limits[0], options, seed);
  ledger.Enter(0, trace.now());
  int reloads = 0;
  for (int step = 0; step < 150; ++step) {
    if (trace.random().Chance(8)) {
      const std::size_t next = trace.random().Below(limits.size());
      const std::uint64_t before = trace.key().Debt(trace.now());
      trace.key().Convert(limits[next], trace.now());
      ASSERT_EQ(trace.key().Debt(trace.now()), std::min(before, limits[next].burst));
      const Decision whole = trace.key().Look(limits[next].burst, trace.now());
      ASSERT_LE(whole.retry_after, WindowOf(limits[next]));
      trace.ForgetReceipts();
      ledger.Enter(next, trace.now());
      ++reloads;
    }
    if (!trace.Step()) continue;
    Int128 units = 0;
    const std::vector<Spending>& spent = trace.spendings();
    for (auto i = spent.rbegin(); i != spent.rend(); ++i) {
      units += i->units;
      ASSERT_LE(units * Ledger::kScale, ledger.Allowed(i->now.steady, spent.back().now.steady))
          << static_cast<std::uint64_t>(units) << " units";
    }
  }
  EXPECT_GT(reloads, 2);
}

token_bucket::Limit Bucket(std::int64_t count, Duration period, std::uint64_t burst) {
  return token_bucket::MakeLimit({count, period}, burst).value();
}

TEST(ConversionTest, TokenBucketReloadsNeitherMintNorLockOut) {
  const std::vector<token_bucket::Limit> same_size = {
      Bucket(3, seconds{1}, 10), Bucket(7, seconds{1}, 10), Bucket(333, seconds{60}, 10)};
  const std::vector<token_bucket::Limit> sizes = {
      Bucket(3, seconds{1}, 3), Bucket(7, seconds{1}, 20), Bucket(333, seconds{60}, 333),
      Bucket(1, seconds{60}, 1)};
  for (std::uint64_t seed = 0; seed < 500 && !HasFailure(); ++seed) {
    CheckReloads(same_size, seed);
    CheckReloads(sizes, seed);
  }
}

TEST(ConversionTest, ThousandReloadsAtOneInstantCostATickEach) {
  const token_bucket::Limit three = Bucket(3, seconds{1}, 10);
  const token_bucket::Limit odd = Bucket(333, seconds{60}, 10);
  const Time now{seconds{1000}};
  const token_bucket::State start = Decide(three, {}, 4, now).next;
  token_bucket::State state = start;
  for (int i = 0; i < 1000; ++i) state = Convert(odd, Convert(three, state, odd, now), three, now);
  EXPECT_GE(state.tat, start.tat);
  EXPECT_LE(state.tat, start.tat + 2000);
}

// --- windows ---

// Runs a trace that is reloaded between the limits; check(spent) after each charge.
template <typename F>
void ForEachReloaded(const std::vector<Limit>& limits, Duration stride, const F& check) {
  for (std::uint64_t seed = 0; seed < 300 && !::testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Trace trace(limits[0], {.stride = stride, .most_cost = 4, .undo_per_cent = 10}, seed);
    for (int step = 0; step < 120 && !::testing::Test::HasFailure(); ++step) {
      if (trace.random().Chance(8)) {
        const Limit& next = limits[trace.random().Below(limits.size())];
        const std::uint64_t before = trace.key().Debt(trace.now());
        trace.key().Convert(next, trace.now());
        trace.ForgetReceipts();
        ASSERT_LE(trace.key().Debt(trace.now()), before);
      }
      if (trace.Step()) check(trace.spendings());
    }
  }
}

std::uint64_t Trailing(const std::vector<Spending>& spent, Duration window) {
  std::uint64_t units = 0;
  for (const Spending& spending : spent) {
    if (spent.back().now.steady - spending.now.steady < window) units += spending.units;
  }
  return units;
}

TEST(ConversionTest, FixedWindowKeepsWhatWasUsedWhenTheLimitChanges) {
  ForEachReloaded({fixed_window::MakeLimit(10, seconds{10}).value(),
                   fixed_window::MakeLimit(20, seconds{10}).value(),
                   fixed_window::MakeLimit(5, seconds{10}).value()},
                  seconds{2}, [](const std::vector<Spending>& spent) {
                    std::uint64_t units = 0;
                    const auto number = spent.back().now.wall.time_since_epoch() / seconds{10};
                    for (const Spending& spending : spent) {
                      if (spending.now.wall.time_since_epoch() / seconds{10} == number) {
                        units += spending.units;
                      }
                    }
                    ASSERT_LE(units, 20U);
                  });
}

TEST(ConversionTest, SlidingCounterKeepsBothCountersWhenTheLimitChanges) {
  ForEachReloaded({sliding_window_counter::MakeLimit(10, seconds{10}).value(),
                   sliding_window_counter::MakeLimit(20, seconds{10}).value()},
                  seconds{2}, [](const std::vector<Spending>& spent) {
                    ASSERT_LE(Trailing(spent, seconds{10}), 2U * 20 - 1);
                  });
}

TEST(ConversionTest, LogKeepsItsEventsWhenLimitAndWindowChange) {
  // 10 s, 61 s and 100 days have ticks of 5 ns, 50 ns and 5 ms; unit and weighted form.
  ForEachReloaded({sliding_window_log::MakeLimit(10, seconds{10}, false).value(),
                   sliding_window_log::MakeLimit(15, seconds{61}, true).value(),
                   sliding_window_log::MakeLimit(12, std::chrono::hours{2400}, false).value()},
                  seconds{2}, [](const std::vector<Spending>& spent) {
                    ASSERT_LE(Trailing(spent, seconds{10}), 15U);
                  });
}

TEST(ConversionTest, StrictCounterCountsWhatWasUsedAsOfTheReload) {
  ForEachReloaded({sliding_window_strict::MakeLimit(10, seconds{10}, 4).value(),
                   sliding_window_strict::MakeLimit(15, seconds{10}, 16).value(),
                   sliding_window_strict::MakeLimit(15, seconds{60}, 4).value()},
                  seconds{2}, [](const std::vector<Spending>& spent) {
                    ASSERT_LE(Trailing(spent, seconds{10}), 15U);
                  });
}

// --- from one algorithm to another ---

TEST(ConversionTest, AnotherAlgorithmOwesTheSameUnits) {
  const std::vector<Limit> limits = {
      token_bucket::MakeLimit({3, seconds{1}}, 10).value(),
      leaky_bucket::MakeLimit({7, seconds{1}}, 19, seconds{100}).value(),
      fixed_window::MakeLimit(15, seconds{10}).value(),
      fixed_window::MakeLimit(15, seconds{10}, fixed_window::Align::kFirstHit).value(),
      sliding_window_counter::MakeLimit(8, seconds{10}).value(),
      calendar::MakeLimit(12, calendar::Period::kMonth, "Europe/Berlin").value(),
  };
  const Now now = testing::At(std::chrono::hours{100});
  for (const Limit& from : limits) {
    for (const Limit& to : limits) {
      SCOPED_TRACE(std::string(AlgorithmName(from)) + " to " + std::string(AlgorithmName(to)));
      for (const std::uint64_t used : {0, 1, 7, 8, 10, 12, 15, 20}) {
        const std::uint64_t owed = std::min({used, CapacityOf(from), CapacityOf(to)});
        const SmallState state = Owing(from, used, now);
        EXPECT_EQ(DebtOf(from, state, now), std::min(used, CapacityOf(from)));
        EXPECT_EQ(DebtOf(to, Convert(from, state, to, now), now), owed);
      }
    }
  }
}

}  // namespace
}  // namespace sluice
