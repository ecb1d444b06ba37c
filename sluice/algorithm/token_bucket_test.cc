#include "sluice/algorithm/token_bucket.h"

#include <gtest/gtest.h>

#include <string_view>

#include "absl/status/statusor.h"

namespace sluice::token_bucket {
namespace {

using std::chrono::milliseconds;
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

TEST(TokenBucketTest, ALeaseIsChargedAsOfItsEndAndRoomIsLookedForNow) {
  const Limit limit = Make(10, seconds{1}, 10);  // a unit each 100 ms
  const Time start{seconds{1000}};
  const struct {
    std::int64_t owed_ms;  // before
    std::uint64_t cost;
    std::int64_t lease_ms;
    Verdict verdict;
    std::uint64_t remaining;
    std::int64_t retry_ms;
    std::int64_t reset_ms;
  } rows[] = {
      {0, 4, 200, Verdict::kAllowed, 4, 0, 600},    // two are paid back until its end
      {0, 4, 0, Verdict::kAllowed, 6, 0, 400},      // as a charge
      {0, 8, 200, Verdict::kAllowed, 0, 0, 1000},   // all there is
      {0, 9, 200, Verdict::kNever, 10, -1, 0},      // never more than that
      {0, 1, 901, Verdict::kNever, 10, -1, 0},      //
      {0, 11, 0, Verdict::kNever, 10, -1, 0},       //
      {150, 4, 200, Verdict::kAllowed, 4, 0, 600},  // the debt is paid back within the lease
      {300, 4, 200, Verdict::kAllowed, 3, 0, 700},  // or not
      {300, 8, 200, Verdict::kLimited, 7, 100, 300},
      {-5000, 4, 200, Verdict::kAllowed, 4, 0, 600},  // nothing is saved up
      {300, 0, 200, Verdict::kAllowed, 7, 0, 300},    // a look
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(std::to_string(row.owed_ms) + " " + std::to_string(row.cost));
    const State before{TicksAt(limit, start + milliseconds{row.owed_ms})};
    const Step<State> step =
        DecideLease(limit, before, row.cost, start, milliseconds{row.lease_ms});
    EXPECT_EQ(step.decision.verdict, row.verdict);
    EXPECT_EQ(step.decision.remaining, row.remaining);
    EXPECT_EQ(step.decision.retry_after, row.retry_ms < 0 ? kNever : milliseconds{row.retry_ms});
    EXPECT_EQ(step.decision.reset_after, milliseconds{row.reset_ms});
    if (row.verdict == Verdict::kAllowed && row.cost > 0) {
      EXPECT_EQ(step.next.tat, TicksAt(limit, start + milliseconds{row.reset_ms}));
      EXPECT_EQ(step.receipt.units, row.cost);
      EXPECT_EQ(step.receipt.before, before.tat);
      EXPECT_EQ(step.receipt.charged_at, TicksAt(limit, start + milliseconds{row.lease_ms}));
    } else {
      EXPECT_EQ(step.next, before);
      EXPECT_EQ(step.receipt.units, 0U);
    }
    if (row.retry_ms <= 0) continue;
    const Time passes = start + step.decision.retry_after;
    const auto then = [&](Time now) {
      return DecideLease(limit, before, row.cost, now, milliseconds{row.lease_ms});
    };
    EXPECT_TRUE(then(passes).decision.allowed());
    EXPECT_FALSE(then(passes - Duration{1}).decision.allowed());
  }
}

TEST(TokenBucketTest, TheMostThatIsLeasedIsWhatALeaseOfAnIdleKeyPassesWith) {
  for (const Limit& limit : {Make(10, seconds{1}, 10), Make(7919, seconds{1}, 100),
                             Make(333, seconds{60}, 20), Make(700'000'001, seconds{1}, 50)}) {
    const Time now{seconds{1000}};
    const Duration full = ToDuration(limit, limit.capacity);
    for (const Duration length : {Duration{0}, Duration{1}, full / 7, full / 2, full - Duration{1},
                                  full, 2 * full, Duration::max()}) {
      const std::uint64_t most = MostLeased(limit, length);
      EXPECT_LE(most, limit.burst);
      if (most > 0) {
        EXPECT_TRUE(DecideLease(limit, State{}, most, now, length).decision.allowed());
      }
      EXPECT_EQ(DecideLease(limit, State{}, most + 1, now, length).decision.verdict,
                Verdict::kNever);
    }
  }
}

TEST(TokenBucketTest, AnUndoLeavesTheInstantAtTheLatestLeasesEnd) {
  const Limit limit = Make(10, seconds{1}, 10);
  const Time start{seconds{1000}};
  const Step<State> charge = Decide(limit, State{}, 2, start);
  const Step<State> lease = DecideLease(limit, charge.next, 3, start, milliseconds{400});
  const std::int64_t end = lease.receipt.charged_at;
  ASSERT_EQ(lease.next.tat, TicksAt(limit, start + milliseconds{700}));
  // The charge will be paid back by the lease's end: to give it back would let others spend before
  // it what is spent then.
  EXPECT_EQ(UndoLeased(limit, lease.next, charge.receipt, 2, start, 0, end).ticks, 0U);
  // What of the lease is not spent comes back whole, in parts, until its end.
  const Undone one = UndoLeased(limit, lease.next, lease.receipt, 1, start, 0, end);
  EXPECT_EQ(one.ticks, 100'000'000U);
  const Undone two =
      UndoLeased(limit, one.next, lease.receipt, 2, start + milliseconds{400}, one.ticks, end);
  EXPECT_EQ(two.ticks, 200'000'000U);
  EXPECT_EQ(two.next.tat, end);
  // And from then on less and less.
  const auto after = [&](std::int64_t ms) {
    return UndoLeased(limit, lease.next, lease.receipt, 3, start + milliseconds{ms}, 0, end).ticks;
  };
  EXPECT_EQ(after(400), 300'000'000U);
  EXPECT_EQ(after(500), 200'000'000U);
  EXPECT_EQ(after(701), 0U);
}

}  // namespace
}  // namespace sluice::token_bucket
