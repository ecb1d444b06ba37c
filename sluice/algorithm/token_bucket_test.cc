#include "sluice/algorithm/token_bucket.h"

#include <gtest/gtest.h>

#include <string_view>

#include "absl/status/statusor.h"

namespace sluice::token_bucket {
namespace {

using std::chrono::nanoseconds;
using std::chrono::seconds;

Limit Make(std::int64_t count, Duration period, std::uint64_t burst) {
  absl::StatusOr<Limit> limit = MakeLimit({count, period}, burst);
  EXPECT_TRUE(limit.ok()) << limit.status();
  return limit.value_or(Limit{});
}

TEST(TokenBucketTest, TicksAreTheFewestThatMakeTheIntervalWhole) {
  const struct {
    std::int64_t count;
    Duration period;
    int ticks_per_ns;
    std::int64_t interval;
    std::uint64_t units;  // 1: whole
  } rows[] = {
      {10, seconds{1}, 1, 100'000'000, 1},
      {3, seconds{1}, 3, 1'000'000'000, 1},
      {7, seconds{60}, 7, 60'000'000'000, 1},
      {10'000'000, seconds{1}, 1, 100, 1},
      {700'000'000, seconds{1}, 7, 10, 1},
      {4'000'000'000, seconds{1}, 4, 1, 1},
      {333, seconds{60}, 8, 1'441'441'442, 111},  // 60e9 * 8 / 333, rounded up
      {7919, seconds{1}, 8, 1'010'229, 7919},
      {8'000'000'000, seconds{1}, 8, 1, 1},
      {7'999'999'999, seconds{1}, 8, 2, 7'999'999'999},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.count);
    const Limit limit = Make(row.count, row.period, 1);
    EXPECT_EQ(limit.ticks_per_ns, row.ticks_per_ns);
    EXPECT_EQ(limit.interval, row.interval);
    EXPECT_EQ(limit.units, row.units);
  }
}

TEST(TokenBucketTest, ALongBurstTakesACoarserTickRatherThanBeingRefused) {
  // 333/min with a burst of 100 years fits in whole nanoseconds, not in eighths of them.
  const Limit limit = Make(333, seconds{60}, 333ULL * 60 * 24 * 365 * 100);
  EXPECT_LT(limit.ticks_per_ns, 8);
  EXPECT_GE(limit.ticks_per_ns, 1);
}

TEST(TokenBucketTest, MoreThanEightUnitsANanosecondAreRefused) {
  const auto refused = MakeLimit({8'000'000'001, seconds{1}}, 1);
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(refused.status().message().find("at most 8 units a nanosecond"),
            absl::string_view::npos);
}

TEST(TokenBucketTest, MinusOneAndTheEndOfTimeAreNoMoreThanAStandstill) {
  const Limit limit = Make(3, seconds{1}, 3);
  for (const Time now : {Time::min(), Time{Duration{-1}}, Time{Duration{1LL << 62}}, Time::max()}) {
    SCOPED_TRACE(now.time_since_epoch().count());
    const Step<State> all = Decide(limit, State{}, 3, now);
    EXPECT_TRUE(all.decision.allowed());
    const Step<State> more = Decide(limit, all.next, 1, now);
    EXPECT_EQ(more.decision.verdict, Verdict::kLimited);
    EXPECT_EQ(more.decision.retry_after, nanoseconds{333'333'334});
    EXPECT_EQ(more.next, all.next);
  }
}

TEST(TokenBucketTest, ForcedChargeStopsAtTheDebtItMayMake) {
  const Limit limit = Make(10, seconds{1}, 10);
  const Time now{seconds{100}};
  const Step<State> step = Charge(limit, State{}, ~0ULL, now, 20);
  EXPECT_EQ(step.decision.verdict, Verdict::kNever);
  EXPECT_EQ(Debt(limit, step.next, now), 20U);
  EXPECT_EQ(step.receipt.units, 20U);  // what it really took
  const Step<State> again = Charge(limit, step.next, 5, now, 20);
  EXPECT_EQ(again.next, step.next);
  EXPECT_EQ(again.receipt.units, 0U);
  EXPECT_EQ(Charge(limit, State{}, ~0ULL, now, ~0ULL).next.tat,
            Time::max().time_since_epoch().count());
}

TEST(TokenBucketTest, LateUndoMintsNothing) {
  const Limit limit = Make(1, seconds{1}, 10);
  const Time start{seconds{1000}};
  const Step<State> charged = Decide(limit, State{}, 5, start);
  // After 3 s only two units are still owed; after 5 s none.
  const Undone undone = Undo(limit, charged.next, charged.receipt, 5, start + seconds{3}, 0);
  EXPECT_EQ(Debt(limit, undone.next, start + seconds{3}), 0U);
  EXPECT_EQ(undone.ticks, 2'000'000'000U);
  const Step<State> other = Decide(limit, charged.next, 5, start + seconds{4});
  EXPECT_EQ(Undo(limit, other.next, charged.receipt, 5, start + seconds{6}, 0).ticks, 0U);
}

TEST(TokenBucketTest, APartUndoneLeavesWhatTheRestCosts) {
  // 7,919/s has no whole interval: parts are rounded so that the rest stays paid for in full.
  const Limit limit = Make(7919, seconds{1}, 100);
  ASSERT_GT(limit.units, 1U);
  const Time now{seconds{1000}};
  for (std::uint64_t cost = 1; cost <= 100; ++cost) {
    const Step<State> charged = Decide(limit, State{}, cost, now);
    for (std::uint64_t part = 1; part <= cost; ++part) {
      const Undone undone = Undo(limit, charged.next, charged.receipt, part, now, 0);
      const std::int64_t left = undone.next.tat - TicksAt(limit, now);
      ASSERT_GE(static_cast<std::uint64_t>(left) * limit.units, (cost - part) * limit.period_ticks)
          << part << " of " << cost;
    }
  }
}

TEST(TokenBucketTest, UndosInAnyOrderRestoreTheInstant) {
  const Limit limit = Make(7919, seconds{1}, 100);
  const Time now{seconds{1000}};
  const Step<State> first = Decide(limit, State{}, 7, now);
  const Step<State> second = Decide(limit, first.next, 11, now);
  const Undone one = Undo(limit, second.next, first.receipt, 7, now, 0);
  const Undone both = Undo(limit, one.next, second.receipt, 11, now, one.ticks);
  EXPECT_EQ(both.next.tat, TicksAt(limit, now));
  // A larger total than the key's own gives back less, never more.
  EXPECT_GE(Undo(limit, one.next, second.receipt, 11, now, one.ticks + 1'000'000).next.tat,
            both.next.tat);
}

}  // namespace
}  // namespace sluice::token_bucket
