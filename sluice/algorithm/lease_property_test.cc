// What DecideLease promises in each algorithm's header, on random traces: after every unit that is
// spent, over every stretch that ends with it, net of what was undone until then. Each trace has
// several nodes' leases, spent at any moment while they are good and given back in parts at any
// time, among charges and undos of charges.
//
// The same traces with leases that are charged as of the moment of taking break the bound; so these
// tests can see it.
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <string>

#include "sluice/algorithm/internal/arithmetic.h"
#include "sluice/algorithm/testing/lease_trace.h"

namespace sluice {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::LeaseTrace;
using testing::LeaseTraceOptions;
using testing::Spent;

constexpr int kTraces = 4000;

template <typename L>
L Made(absl::StatusOr<L> limit) {
  EXPECT_TRUE(limit.ok()) << limit.status();
  return *std::move(limit);
}

// Whether the bound holds in every stretch that ends with the last that was spent.
using Bound = std::function<bool(const LeaseTrace&)>;

bool Holds(const Limit& limit, const LeaseTraceOptions& options, std::uint64_t seed,
           const Bound& bound) {
  LeaseTrace trace(limit, options, seed);
  bool holds = true;
  while (trace.Step()) holds = holds && bound(trace);
  if (!options.charged_when_taken) {
    EXPECT_GT(trace.spent().size(), 4U) << "a trace that spends next to nothing shows nothing";
    EXPECT_GT(trace.leases(), 0);
  }
  return holds;
}

// Of kTraces traces, how many break the bound.
int Broken(const Limit& limit, const LeaseTraceOptions& options, const Bound& bound) {
  int broken = 0;
  for (int seed = 0; seed < kTraces; ++seed) {
    broken += Holds(limit, options, static_cast<std::uint64_t>(seed), bound) ? 0 : 1;
  }
  return broken;
}

void Check(const std::string& name, const Limit& limit, LeaseTraceOptions options,
           const Bound& bound, bool can_break = true) {
  SCOPED_TRACE(name);
  EXPECT_EQ(Broken(limit, options, bound), 0);
  options.charged_when_taken = true;
  const int broken = Broken(limit, options, bound);
  if (can_break) {
    EXPECT_GT(broken, kTraces / 100) << "these traces can not tell";
  }
  ::testing::Test::RecordProperty(name + "_broken_when_charged_at_the_taking", broken);
  std::printf("%-28s %5d of %d traces break the bound when leases are charged as they are taken\n",
              name.c_str(), broken, kTraces);
}

// units <= burst + rate * t, in whole numbers of unit-nanoseconds; where the interval is not whole,
// t may be longer by `burst` ticks.
Bound WithinBucket(const token_bucket::Limit& limit) {
  return [&limit](const LeaseTrace& trace) {
    const std::vector<Spent>& spent = trace.spent();
    const Int128 period{limit.rate.period.count()};
    const Int128 early = limit.units == 1 ? Int128{0} : Int128{limit.burst};  // ticks
    Int128 units = 0;
    for (auto i = spent.rbegin(); i != spent.rend(); ++i) {
      units += i->units;
      const Duration t = spent.back().at - i->at;
      if ((units - Int128{limit.burst}) * period * limit.ticks_per_ns >
          Int128{limit.rate.count} * (Int128{t.count()} * limit.ticks_per_ns + early)) {
        return false;
      }
    }
    return true;
  };
}

void CheckBucket(std::int64_t count, Duration period, std::uint64_t burst) {
  const auto limit = Made(token_bucket::MakeLimit({count, period}, burst));
  const Duration full = token_bucket::ToDuration(limit, limit.capacity);
  const LeaseTraceOptions options{
      .stride = full / 4, .length = full / 2, .most_cost = std::max<std::uint64_t>(1, burst / 3)};
  Check("bucket " + std::to_string(count) + "/" + std::to_string(period / milliseconds{1}) +
            "ms burst " + std::to_string(burst),
        limit, options, WithinBucket(limit));
}

TEST(LeasePropertyTest, TokenBucketKeepsItsBoundWhenLeasesAreSpentAtAnyTime) {
  CheckBucket(3, seconds{1}, 3);
  CheckBucket(3, seconds{1}, 10);
  CheckBucket(10'000'000, seconds{1}, 100);
  CheckBucket(1, hours{24}, 5);
}

TEST(LeasePropertyTest, TokenBucketWithoutAWholeTickIsEarlyByBurstTicksAtMost) {
  CheckBucket(333, seconds{60}, 333);
  CheckBucket(7919, seconds{1}, 100);
}

// Net units in the half-open window that ends with the last that was spent.
Bound WithinAnyWindow(std::uint64_t limit, Duration window) {
  return [=](const LeaseTrace& trace) {
    const std::vector<Spent>& spent = trace.spent();
    std::uint64_t units = 0;
    for (const Spent& some : spent) {
      if (spent.back().at - some.at < window) units += some.units;
    }
    return units <= limit;
  };
}

TEST(LeasePropertyTest, LogKeepsItsBoundInAnyWindow) {
  for (const bool weighted : {false, true}) {
    for (const Duration window : {Duration{seconds{1}}, Duration{seconds{61}}}) {
      const auto limit = Made(sliding_window_log::MakeLimit(15, window, weighted));
      const LeaseTraceOptions options{.stride = window / 5, .length = window / 2, .most_cost = 6};
      Check(std::string("log ") + (weighted ? "weighted " : "") +
                std::to_string(window / seconds{1}) + "s",
            limit, options, WithinAnyWindow(15, window));
    }
  }
}

TEST(LeasePropertyTest, StrictCounterKeepsItsBoundInAnyWindow) {
  for (const int sub_windows : {1, 2, 4, 7, 16}) {
    const auto limit = Made(sliding_window_strict::MakeLimit(15, seconds{10}, sub_windows));
    const LeaseTraceOptions options{.stride = seconds{2}, .length = seconds{5}, .most_cost = 6};
    Check("strict " + std::to_string(sub_windows), limit, options,
          WithinAnyWindow(15, limit.window), sub_windows > 2);
  }
}

// What was spent in the window of the last one, by its time and by its receipt.
Bound WithinWindow(std::uint64_t limit, const std::function<std::int64_t(Time)>& window_of) {
  return [=](const LeaseTrace& trace) {
    const std::vector<Spent>& spent = trace.spent();
    std::map<std::int64_t, std::uint64_t> by_time;
    for (const Spent& some : spent) by_time[window_of(some.at)] += some.units;
    return by_time[window_of(spent.back().at)] <= limit;
  };
}

TEST(LeasePropertyTest, WindowsHoldWhatWasSpentInThem) {
  const auto limit = Made(fixed_window::MakeLimit(12, seconds{10}));
  const LeaseTraceOptions options{.stride = seconds{1}, .length = seconds{5}, .most_cost = 5};
  Check("fixed window", limit, options,
        WithinWindow(12, [](Time at) { return at.time_since_epoch() / seconds{10}; }),
        /*can_break=*/false);
}

TEST(LeasePropertyTest, WindowsFromTheFirstHitHoldWhatWasSpentInThem) {
  const auto limit = Made(fixed_window::MakeLimit(12, seconds{10}, fixed_window::Align::kFirstHit));
  const LeaseTraceOptions options{.stride = seconds{1}, .length = seconds{5}, .most_cost = 5};
  // Spent within the window that it was charged to, whose start the receipt has.
  Check(
      "first hit", limit, options,
      [](const LeaseTrace& trace) {
        const std::vector<Spent>& spent = trace.spent();
        std::uint64_t units = 0;
        for (const Spent& some : spent) {
          if (some.window == spent.back().window) units += some.units;
        }
        const Duration in = spent.back().at.time_since_epoch() - Duration{spent.back().window};
        return units <= 12 && in >= Duration{0} && in < Duration{seconds{10}};
      },
      /*can_break=*/false);
}

TEST(LeasePropertyTest, CalendarPeriodsHoldWhatWasSpentInThem) {
  const auto limit = Made(calendar::MakeLimit(20, calendar::Period::kDay, "America/Santiago"));
  const LeaseTraceOptions options{.stride = hours{3}, .length = hours{12}, .most_cost = 8};
  Check("calendar", limit, options,
        WithinWindow(20,
                     [&](Time at) {
                       const WallTime wall{at.time_since_epoch()};
                       return SpanOf(limit, wall).start.time_since_epoch().count();
                     }),
        /*can_break=*/false);
}

// --- over a change of rules ---

TEST(LeasePropertyTest, ABucketKeepsItsBoundWhenTheRateChangesUnderALease) {
  for (const auto& [before, after] : {std::pair{3, 30}, std::pair{30, 3}, std::pair{7, 8}}) {
    const auto from = Made(token_bucket::MakeLimit({before, seconds{1}}, 10));
    const auto to = Made(token_bucket::MakeLimit({after, seconds{1}}, 10));
    const LeaseTraceOptions options{
        .stride = milliseconds{500}, .length = milliseconds{1500}, .most_cost = 4, .reload_to = to};
    // units <= burst + the sum of rate * time, and one for each side's rounding.
    const Bound bound = [before = before, after = after](const LeaseTrace& trace) {
      const std::vector<Spent>& spent = trace.spent();
      const Time end = spent.back().at;
      std::int64_t units = 0;
      for (auto i = spent.rbegin(); i != spent.rend(); ++i) {
        units += static_cast<std::int64_t>(i->units);
        const Time reloaded = std::clamp(trace.reloaded(), i->at, end);
        const std::int64_t paid =
            before * (reloaded - i->at).count() + after * (end - reloaded).count();
        if ((units - 10) * 1'000'000'000 > paid + before + after) return false;
      }
      return true;
    };
    EXPECT_EQ(Broken(from, options, bound), 0) << before << " to " << after;
  }
}

TEST(LeasePropertyTest, LogsAndStrictCountersKeepTheWiderBoundWhenNumbersChangeUnderALease) {
  const Limit limits[] = {Made(sliding_window_log::MakeLimit(15, seconds{10}, true)),
                          Made(sliding_window_log::MakeLimit(10, seconds{15}, true)),
                          Made(sliding_window_strict::MakeLimit(15, seconds{10}, 8)),
                          Made(sliding_window_strict::MakeLimit(10, seconds{15}, 5))};
  for (const Limit& from : limits) {
    for (const Limit& to : limits) {
      const LeaseTraceOptions options{
          .stride = seconds{2}, .length = seconds{5}, .most_cost = 6, .reload_to = to};
      EXPECT_EQ(Broken(from, options, WithinAnyWindow(15, seconds{10})), 0)
          << std::string(AlgorithmName(from)) << " to " << std::string(AlgorithmName(to));
    }
  }
}

}  // namespace
}  // namespace sluice
