// The guarantee in each algorithm's header, counted on random traces: after every charge, over
// every stretch that ends with it, net of what was undone until then.
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "sluice/algorithm/internal/arithmetic.h"
#include "sluice/algorithm/testing/trace.h"

namespace sluice {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::Spending;
using testing::Trace;
using testing::TraceOptions;

constexpr int kTraces = 1000;
constexpr int kSteps = 120;

// Runs traces and calls check(spendings) after each charge.
template <typename F>
void ForEachCharge(const Limit& limit, const TraceOptions& options, const F& check) {
  for (int seed = 0; seed < kTraces && !::testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Trace trace(limit, options, static_cast<std::uint64_t>(seed));
    for (int i = 0; i < kSteps && !::testing::Test::HasFailure(); ++i) {
      if (trace.Step()) check(trace.spendings());
    }
    EXPECT_GT(trace.spendings().size(), 4U) << "a trace that spends next to nothing shows nothing";
  }
}

template <typename L>
L Made(absl::StatusOr<L> limit) {
  EXPECT_TRUE(limit.ok()) << limit.status();
  return *std::move(limit);
}

// --- token bucket ---

// By how much a clock of these traces may be behind what it read before.
Duration Behind(const TraceOptions& options) {
  return options.back_per_cent > 0 ? Trace::kMostBack * options.stride : Duration{0};
}

// units <= burst + rate * t, in whole numbers of unit-nanoseconds; where the interval is not whole,
// t may be longer by `burst` ticks.
bool WithinBucket(const token_bucket::Limit& limit, Int128 units, Duration t) {
  const Int128 period{limit.rate.period.count()};
  const Int128 count{limit.rate.count};
  const Int128 early = limit.units == 1 ? Int128{0} : Int128{limit.burst};  // ticks
  return (units - Int128{limit.burst}) * period * limit.ticks_per_ns <=
         count * (Int128{t.count()} * limit.ticks_per_ns + early);
}

void CheckBucket(std::int64_t count, Duration period, std::uint64_t burst, int back_per_cent) {
  SCOPED_TRACE(std::to_string(count) + " per " + std::to_string(period.count()) + " ns, burst " +
               std::to_string(burst));
  const auto limit = Made(token_bucket::MakeLimit({count, period}, burst));
  const TraceOptions options{.stride = Duration{std::max<std::int64_t>(
                                 1, token_bucket::ToDuration(limit, limit.capacity).count() / 4)},
                             .most_cost = std::max<std::uint64_t>(1, burst / 2),
                             .undo_per_cent = 30,
                             .back_per_cent = back_per_cent};
  ForEachCharge(limit, options, [&](const std::vector<Spending>& spent) {
    Int128 units = 0;
    for (auto i = spent.rbegin(); i != spent.rend(); ++i) {
      units += i->units;
      if (i->units == 0) continue;
      const Duration t = spent.back().latest.steady - i->latest.steady;
      ASSERT_TRUE(WithinBucket(limit, units, t + Behind(options)))
          << static_cast<std::uint64_t>(units) << " units in " << t.count() << " ns";
    }
  });
}

TEST(StretchTest, TokenBucketAdmitsAtMostBurstPlusRateTimesTime) {
  CheckBucket(3, seconds{1}, 3, 0);
  CheckBucket(3, seconds{1}, 10, 0);
  CheckBucket(7, seconds{60}, 7, 0);
  CheckBucket(10'000'000, seconds{1}, 100, 0);
  CheckBucket(700'000'000, seconds{1}, 50, 0);
  CheckBucket(1, std::chrono::hours{24}, 5, 0);
}

TEST(StretchTest, TokenBucketWithoutAWholeTickIsEarlyByBurstTicksAtMost) {
  CheckBucket(333, seconds{60}, 333, 0);
  CheckBucket(7919, seconds{1}, 100, 0);
  CheckBucket(700'000'001, seconds{1}, 20, 0);
}

TEST(StretchTest, TokenBucketWithAClockThatIsBehindIsEarlyByThatAtMost) {
  CheckBucket(3, seconds{1}, 10, 10);
  CheckBucket(333, seconds{60}, 30, 10);
}

// --- leaky bucket ---

TEST(StretchTest, LeakyBucketSpacesWhatLeavesAtTheRate) {
  for (const int back_per_cent : {0, 10}) {
    const auto limit = Made(leaky_bucket::MakeLimit({7, seconds{1}}, 9, seconds{2}));
    const TraceOptions options{.stride = milliseconds{400},
                               .most_cost = 3,
                               .undo_per_cent = 20,
                               .back_per_cent = back_per_cent,
                               .forward_undo = false};
    ForEachCharge(limit, options, [&](const std::vector<Spending>& spent) {
      const Spending& last = spent.back();
      EXPECT_LE(last.delay, token_bucket::ToDuration(limit.pace, limit.max_delay));
      const Time leaves = last.now.steady + last.delay;
      Int128 units = 0;  // that left before the last one
      for (auto i = spent.rbegin() + 1; i != spent.rend(); ++i) {
        units += i->units;
        const Duration between = leaves - (i->now.steady + i->delay);
        // Instants are whole nanoseconds: each may be up to one late, not the next.
        ASSERT_LE(units * limit.pace.rate.period.count(),
                  Int128{limit.pace.rate.count} * (between.count() + 1));
      }
    });
  }
}

// --- windows ---

// The units charged to the window that the last receipt names.
std::uint64_t InLastWindow(const std::vector<Spending>& spent) {
  std::uint64_t units = 0;
  for (const Spending& spending : spent) {
    if (spending.receipt.before == spent.back().receipt.before) units += spending.units;
  }
  return units;
}

// A window of which everything was undone is as good as absent: then a clock that steps back over
// its beginning finds nothing. So either may happen in these traces, not both.
int UndosBeside(int back_per_cent) { return back_per_cent > 0 ? 0 : 20; }

TEST(StretchTest, FixedWindowAdmitsAtMostTheLimitInAWindow) {
  for (const auto align : {fixed_window::Align::kClock, fixed_window::Align::kFirstHit}) {
    for (const int back_per_cent : {0, 10}) {
      const auto limit = Made(fixed_window::MakeLimit(12, seconds{10}, align));
      const TraceOptions options{.stride = seconds{2},
                                 .most_cost = 5,
                                 .undo_per_cent = UndosBeside(back_per_cent),
                                 .back_per_cent = back_per_cent};
      ForEachCharge(limit, options, [&](const std::vector<Spending>& spent) {
        ASSERT_LE(InLastWindow(spent), 12U);
        if (back_per_cent > 0 || align == fixed_window::Align::kFirstHit) return;
        std::map<std::int64_t, std::uint64_t> by_number;
        for (const Spending& spending : spent) {
          by_number[spending.now.wall.time_since_epoch() / seconds{10}] += spending.units;
        }
        for (const auto& [number, units] : by_number) ASSERT_LE(units, 12U) << number;
      });
    }
  }
}

TEST(StretchTest, FirstHitWindowsDoNotOverlap) {
  const auto limit = Made(fixed_window::MakeLimit(5, seconds{10}, fixed_window::Align::kFirstHit));
  const TraceOptions options{.stride = seconds{3}, .most_cost = 3, .undo_per_cent = 0};
  ForEachCharge(limit, options, [&](const std::vector<Spending>& spent) {
    for (const Spending& spending : spent) {
      const std::int64_t apart = spent.back().receipt.before - spending.receipt.before;
      ASSERT_TRUE(apart == 0 || apart >= Duration{seconds{10}}.count());
    }
  });
}

TEST(StretchTest, CalendarAdmitsAtMostTheLimitInAPeriod) {
  for (const int back_per_cent : {0, 10}) {
    const auto limit = Made(calendar::MakeLimit(20, calendar::Period::kDay, "America/Santiago"));
    const TraceOptions options{.start = testing::At(std::chrono::hours{24 * 365 * 54}),
                               .stride = std::chrono::hours{6},
                               .most_cost = 8,
                               .undo_per_cent = UndosBeside(back_per_cent),
                               .back_per_cent = back_per_cent};
    ForEachCharge(limit, options, [&](const std::vector<Spending>& spent) {
      ASSERT_LE(InLastWindow(spent), 20U);
      const calendar::Span span = SpanOf(limit, spent.back().now.wall);
      if (back_per_cent > 0) return;
      ASSERT_EQ(spent.back().receipt.before, span.start.time_since_epoch().count());
    });
  }
}

// Net units in the half-open window that ends with the last charge.
std::uint64_t InTrailing(const std::vector<Spending>& spent, Duration window) {
  std::uint64_t units = 0;
  for (const Spending& spending : spent) {
    if (spent.back().latest.steady - spending.latest.steady < window) units += spending.units;
  }
  return units;
}

TEST(StretchTest, SlidingCounterAdmitsAtMostTwiceTheLimitLessOneInAnyWindow) {
  std::uint64_t most = 0;
  for (const std::int64_t limit_units : {1, 2, 5, 10}) {
    const auto limit = Made(sliding_window_counter::MakeLimit(limit_units, seconds{10}));
    const TraceOptions options{.stride = seconds{3}, .most_cost = limit.limit, .undo_per_cent = 10};
    ForEachCharge(limit, options, [&](const std::vector<Spending>& spent) {
      const std::uint64_t units = InTrailing(spent, limit.window);
      ASSERT_LE(units, 2 * limit.limit - 1);
      if (limit_units == 10) most = std::max(most, units);
    });
  }
  EXPECT_GT(most, 10U) << "it is no exact window, and the traces should show it";
}

TEST(StretchTest, SlidingCounterCountsNoMoreThanTheLimitInOneCounterWhenTheClockStepsBack) {
  const auto limit = Made(sliding_window_counter::MakeLimit(10, seconds{10}));
  const TraceOptions options{
      .stride = seconds{3}, .most_cost = 5, .undo_per_cent = 0, .back_per_cent = 10};
  ForEachCharge(limit, options,
                [&](const std::vector<Spending>& spent) { ASSERT_LE(InLastWindow(spent), 10U); });
}

TEST(StretchTest, LogAdmitsAtMostTheLimitInAnyWindow) {
  for (const bool weighted : {false, true}) {
    for (const int back_per_cent : {0, 10}) {
      // 61 s: stamps of 50 ns, so that rounding takes part.
      for (const Duration window : {Duration{seconds{1}}, Duration{seconds{61}}}) {
        const auto limit = Made(sliding_window_log::MakeLimit(15, window, weighted));
        const TraceOptions options{.stride = window / 5,
                                   .most_cost = 6,
                                   .undo_per_cent = 25,
                                   .back_per_cent = back_per_cent};
        ForEachCharge(limit, options, [&](const std::vector<Spending>& spent) {
          ASSERT_LE(InTrailing(spent, window - Behind(options)), 15U);
        });
      }
    }
  }
}

TEST(StretchTest, StrictCounterAdmitsAtMostTheLimitInAnyWindow) {
  for (const int sub_windows : {1, 2, 4, 7, 16}) {
    for (const int back_per_cent : {0, 10}) {
      const auto limit = Made(sliding_window_strict::MakeLimit(15, seconds{10}, sub_windows));
      const TraceOptions options{.stride = seconds{2},
                                 .most_cost = 6,
                                 .undo_per_cent = 25,
                                 .back_per_cent = back_per_cent};
      ForEachCharge(limit, options, [&](const std::vector<Spending>& spent) {
        ASSERT_LE(InTrailing(spent, limit.window - Behind(options)), 15U);
      });
    }
  }
}

// --- concurrency ---

TEST(StretchTest, ConcurrencyNeverHasMoreThanTheLimitInFlight) {
  const auto limit = Made(concurrency::MakeLimit(10, seconds{5}));
  const TraceOptions options{.stride = seconds{1}, .most_cost = 4, .undo_per_cent = 30};
  ForEachCharge(limit, options, [&](const std::vector<Spending>& spent) {
    std::uint64_t in_flight = 0;
    for (const Spending& spending : spent) {
      if (spending.receipt.units == 0) continue;  // released, wholly, whatever the part
      if (spent.back().now.steady - spending.now.steady < seconds{5}) in_flight += spending.units;
    }
    ASSERT_LE(in_flight, 10U);
  });
}

}  // namespace
}  // namespace sluice
