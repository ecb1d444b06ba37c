#include "sluice/algorithm/sliding_window_log.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "sluice/algorithm/testing/trace.h"
#include "sluice/algorithm/testing/vector_log.h"

namespace sluice::sliding_window_log {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;
using testing::Random;
using testing::VectorLog;

constexpr Duration kYear = hours{24 * 365};

Limit Make(std::int64_t limit, Duration window, bool weighted = false) {
  return MakeLimit(limit, window, weighted).value();
}

Answer Spend(const Limit& limit, VectorLog& log, std::uint64_t cost, Time now) {
  const Answer answer = Decide(limit, log, cost, now);
  log.Keep(limit, answer);
  return answer;
}

TEST(SlidingWindowLogTest, TicksAreTheSmallestRoundNumberThatFits31Bits) {
  const struct {
    Duration window;
    Duration tick;
  } rows[] = {
      {milliseconds{1}, Duration{1}},       {seconds{1}, Duration{1}},
      {Duration{(1LL << 31)}, Duration{1}}, {Duration{(1LL << 31) + 1}, Duration{2}},
      {seconds{10}, Duration{5}},           {minutes{1}, Duration{50}},
      {hours{1}, Duration{2'000}},          {hours{24}, Duration{50'000}},
      {kYear, Duration{20'000'000}},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.window.count());
    const Limit limit = Make(1, row.window);
    EXPECT_EQ(limit.tick, row.tick);
    // Whole seconds are whole ticks.
    EXPECT_EQ(Duration{seconds{1}} % limit.tick, Duration{0});
  }
}

TEST(SlidingWindowLogTest, AnEventLeavesUpToATickLaterNeverSooner) {
  const Limit limit = Make(1, minutes{1});  // 50 ns
  for (const std::int64_t ns : {0, 1, 49, 50, 51, 99, 100}) {
    SCOPED_TRACE(ns);
    VectorLog log;
    const Time at{hours{5} + Duration{ns}};
    Spend(limit, log, 1, at);
    const Decision decision = Decide(limit, log, 1, at).decision;
    EXPECT_GE(decision.retry_after, limit.window);
    EXPECT_LT(decision.retry_after, limit.window + limit.tick);
    EXPECT_TRUE(Decide(limit, log, 1, at + decision.retry_after).decision.allowed());
    EXPECT_FALSE(Decide(limit, log, 1, at + decision.retry_after - Duration{1}).decision.allowed());
  }
}

// The whole log as a model: exact times, forgets nothing.
struct Exact {
  std::vector<std::pair<Time, std::uint64_t>> charges;
  std::uint64_t SumAfter(Time since) const {
    std::uint64_t sum = 0;
    for (const auto& [at, units] : charges) {
      if (at > since) sum += units;
    }
    return sum;
  }
};

TEST(SlidingWindowLogTest, AgreesWithAnExactLogButForATick) {
  for (const bool weighted : {false, true}) {
    for (const Duration window : {Duration{seconds{1}}, Duration{seconds{61}}, Duration{kYear}}) {
      const Limit limit = Make(20, window, weighted);
      for (std::uint64_t seed = 0; seed < 60 && !HasFailure(); ++seed) {
        SCOPED_TRACE("window " + std::to_string(window.count()) + ", seed " + std::to_string(seed));
        Random random(seed);
        VectorLog log;
        Exact exact;
        Time now{hours{5}};
        for (int i = 0; i < 200 && !HasFailure(); ++i) {
          // Up to several times the window: stamps wrap around between two calls.
          now += Duration{
              random.Between(0, random.Chance(3) ? 5 * window.count() : window.count() / 10)};
          const std::uint64_t cost = 1 + random.Below(5);
          const Answer answer = Spend(limit, log, cost, now);
          const std::uint64_t sum = exact.SumAfter(now - window);
          const std::uint64_t sum_late = exact.SumAfter(now - window - 2 * limit.tick);
          ASSERT_GE(20 - answer.decision.remaining, sum + (answer.decision.allowed() ? cost : 0));
          ASSERT_LE(20 - answer.decision.remaining,
                    sum_late + (answer.decision.allowed() ? cost : 0));
          if (answer.decision.allowed()) exact.charges.emplace_back(now, cost);
        }
      }
    }
  }
}

TEST(SlidingWindowLogTest, ALogThatIsWhollyOverIsNotTakenForAWrappedOne) {
  const Limit limit = Make(3, seconds{1});  // 2^32 ticks are 4.29 s
  const Duration wrap{1LL << 32};
  for (const Duration later : {Duration{seconds{1}}, wrap / 2, wrap - Duration{seconds{1}}, wrap,
                               wrap + Duration{milliseconds{1}}, 3 * wrap, Duration{kYear}}) {
    SCOPED_TRACE(later.count());
    VectorLog log;
    const Time start{hours{5}};
    Spend(limit, log, 3, start);
    const Answer answer = Decide(limit, log, 3, start + later);
    EXPECT_TRUE(answer.decision.allowed());
    EXPECT_EQ(answer.expired, 3U);
  }
}

TEST(SlidingWindowLogTest, AClockThatStepsBackDatesNothingEarlier) {
  const Limit limit = Make(2, seconds{10});
  VectorLog log;
  const Time start{hours{5}};
  Spend(limit, log, 1, start);
  const Time back = start - Duration{seconds{4}};
  const Answer answer = Spend(limit, log, 1, back);
  EXPECT_TRUE(answer.decision.allowed());
  EXPECT_EQ(answer.latest, start);
  EXPECT_EQ(Decide(limit, log, 1, back).decision.retry_after, Duration{seconds{14}});
  EXPECT_EQ(Decide(limit, log, 2, start + seconds{10} - Duration{1}).decision.remaining, 0U);
  EXPECT_TRUE(Decide(limit, log, 2, start + seconds{10}).decision.allowed());
}

TEST(SlidingWindowLogTest, UndoTakesUnitsOfItsOwnInstantOnly) {
  for (const bool weighted : {false, true}) {
    SCOPED_TRACE(weighted ? "weighted" : "unit");
    const Limit limit = Make(10, seconds{10}, weighted);
    VectorLog log;
    const Time start{hours{5}};
    const Receipt first = Spend(limit, log, 3, start).receipt;
    const Receipt twin = Spend(limit, log, 2, start).receipt;  // of the same instant
    const Receipt later = Spend(limit, log, 4, start + seconds{1}).receipt;

    Undo(limit, log, first, 1, start + seconds{2});
    EXPECT_EQ(Debt(limit, log, start + seconds{2}), 8U);
    Undo(limit, log, twin, 2, start + seconds{2});
    EXPECT_EQ(Debt(limit, log, start + seconds{2}), 6U);
    Undo(limit, log, later, 99, start + seconds{2});  // no more than was charged
    EXPECT_EQ(Debt(limit, log, start + seconds{2}), 2U);

    // What is over is over, and another event in its place is not touched.
    Spend(limit, log, 5, start + seconds{10});
    Undo(limit, log, first, 2, start + seconds{10});
    EXPECT_EQ(Debt(limit, log, start + seconds{10}), 5U);
  }
}

TEST(SlidingWindowLogTest, ReceiptsOfAnEarlierWrapRemoveNothing) {
  const Limit limit = Make(5, seconds{1});
  const Duration wrap{1LL << 32};
  VectorLog log;
  const Time start{hours{5}};
  const Receipt old = Spend(limit, log, 1, start).receipt;
  const Receipt young = Spend(limit, log, 1, start + wrap).receipt;  // the same 32 bits
  EXPECT_EQ(static_cast<std::uint32_t>(old.before), static_cast<std::uint32_t>(young.before));
  Undo(limit, log, old, 1, start + wrap);
  EXPECT_EQ(Debt(limit, log, start + wrap), 1U);
  Undo(limit, log, young, 1, start + wrap);
  EXPECT_EQ(Debt(limit, log, start + wrap), 0U);
}

TEST(SlidingWindowLogTest, TheWaitRunsOverAPrefixOfEvents) {
  for (const bool weighted : {false, true}) {
    const Limit limit = Make(10, seconds{10}, weighted);
    VectorLog log;
    const Time start{hours{5}};
    for (int i = 0; i < 5; ++i) Spend(limit, log, 2, start + i * seconds{1});
    const Time now = start + seconds{5};
    const int waits[] = {0, 5, 5, 6, 6, 7, 7, 8, 8, 9, 9};
    for (std::uint64_t cost = 1; cost <= 10; ++cost) {
      EXPECT_EQ(Decide(limit, log, cost, now).decision.retry_after, Duration{seconds{waits[cost]}})
          << cost;
    }
  }
}

TEST(SlidingWindowLogTest, EventsKeepTheirTimesOverAReload) {
  const Limit seconds_log = Make(5, seconds{10});         // 5 ns
  const Limit days_log = Make(5, hours{24 * 100}, true);  // 5 ms
  VectorLog log;
  const Time start{hours{5} + Duration{3}};
  Spend(seconds_log, log, 2, start);
  Spend(seconds_log, log, 3, start + seconds{4});
  log.Rescale(seconds_log, days_log, start + seconds{5});
  EXPECT_EQ(Debt(days_log, log, start + seconds{5}), 5U);
  const Decision denied = Decide(days_log, log, 1, start + seconds{5}).decision;
  EXPECT_GE(denied.retry_after, days_log.window - seconds{5});
  EXPECT_LE(denied.retry_after, days_log.window - seconds{5} + days_log.tick + seconds_log.tick);
  // And back, within one of the coarser ticks: still not sooner.
  log.Rescale(days_log, seconds_log, start + seconds{6});
  EXPECT_EQ(Debt(seconds_log, log, start + seconds{6}), 5U);
  EXPECT_EQ(Debt(seconds_log, log, start + seconds{10} - Duration{1}), 5U);
  EXPECT_EQ(Debt(seconds_log, log, start + seconds{10} + 2 * days_log.tick), 3U);
}

TEST(SlidingWindowLogTest, ForcedChargesStopAtTheirBound) {
  const Limit limit = Make(3, seconds{10}, true);
  VectorLog log;
  const Time now{hours{5}};
  const Answer answer = Charge(limit, log, ~std::uint64_t{0}, now, 6);
  EXPECT_EQ(answer.event.cost, 6U);
  EXPECT_EQ(answer.receipt.units, 6U);
  log.Keep(limit, answer);
  EXPECT_EQ(Charge(limit, log, 1, now, 6).receipt.units, 0U);
  EXPECT_LE(Charge(limit, VectorLog{}, ~std::uint64_t{0}, now, ~std::uint64_t{0}).event.cost,
            4U * static_cast<std::uint32_t>(kMaxLimit));
}

TEST(SlidingWindowLogTest, LimitsBeyondTheLogAreRefusedWithWhatToTake) {
  EXPECT_TRUE(MakeLimit(kMaxLimit, seconds{1}, false).ok());
  const auto refused = MakeLimit(kMaxLimit + 1, seconds{1}, false);
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(refused.status().ToString().find("sliding-window-strict"), std::string::npos);
}

}  // namespace
}  // namespace sluice::sliding_window_log
