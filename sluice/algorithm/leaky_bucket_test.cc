#include "sluice/algorithm/leaky_bucket.h"

#include <gtest/gtest.h>

#include "sluice/algorithm/internal/arithmetic.h"

namespace sluice::leaky_bucket {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr Time kStart{std::chrono::hours{5}};

Limit Make(std::int64_t count, Duration period, std::uint64_t queue, Duration wait) {
  return MakeLimit({count, period}, queue, wait).value();
}

TEST(LeakyBucketTest, TheQueueIsBoundedByRequestsAndByTime) {
  const struct {
    std::uint64_t queue;
    Duration wait;
    Duration max_delay;
    std::uint64_t max_cost;
  } rows[] = {
      {5, seconds{10}, milliseconds{500}, 6},         // five requests are the bound
      {50, milliseconds{250}, milliseconds{250}, 3},  // the wait is
      {0, seconds{10}, Duration{0}, 1},               // strict spacing
      {5, Duration{0}, Duration{0}, 1},
      {~std::uint64_t{0}, seconds{1}, seconds{1}, 11},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.queue);
    const Limit limit = Make(10, seconds{1}, row.queue, row.wait);
    EXPECT_EQ(token_bucket::ToDuration(limit.pace, limit.max_delay), row.max_delay);
    EXPECT_EQ(limit.max_cost, row.max_cost);
    EXPECT_EQ(limit.pace.burst, row.max_cost);
  }
}

TEST(LeakyBucketTest, ACostLongerThanTheQueueIsNeverMet) {
  const Limit limit = Make(10, seconds{1}, 5, seconds{10});
  EXPECT_TRUE(Decide(limit, {}, 6, kStart).decision.allowed());
  EXPECT_EQ(Decide(limit, {}, 7, kStart).decision.verdict, Verdict::kNever);
  EXPECT_EQ(Decide(limit, {}, 7, kStart).decision.retry_after, kNever);
}

TEST(LeakyBucketTest, OnlyTheLastInTheQueueCanGiveItsPlaceBack) {
  const Limit limit = Make(10, seconds{1}, 5, seconds{10});
  const Step<State> first = Decide(limit, {}, 1, kStart);
  const Step<State> second = Decide(limit, first.next, 2, kStart);
  const Step<State> third = Decide(limit, second.next, 1, kStart);
  EXPECT_EQ(third.decision.delay, Duration{milliseconds{300}});
  // The third was promised 300 ms: what the second gives back is no use to anybody.
  EXPECT_EQ(Undo(limit, third.next, second.receipt, 2, kStart), third.next);
  // From the end they leave one by one, in parts too.
  State state = Undo(limit, third.next, third.receipt, 1, kStart);
  EXPECT_EQ(state, second.next);
  state = Undo(limit, state, second.receipt, 1, kStart);
  EXPECT_EQ(Decide(limit, state, 1, kStart).decision.delay, Duration{milliseconds{200}});
}

TEST(LeakyBucketTest, ALateUndoLeavesNoIdleTimeBehind) {
  const Limit limit = Make(10, seconds{1}, 5, seconds{10});
  const Step<State> step = Decide(limit, {}, 4, kStart);
  const Time later = kStart + milliseconds{150};
  const State undone = Undo(limit, step.next, step.receipt, 4, later);
  EXPECT_EQ(Debt(limit, undone, later), 0U);
  EXPECT_EQ(Decide(limit, undone, 1, later).decision.verdict, Verdict::kAllowed);
  EXPECT_EQ(Undo(limit, step.next, step.receipt, 4, kStart + seconds{9}), step.next);
}

TEST(LeakyBucketTest, ForcedChargesLengthenTheQueueToTheirBound) {
  const Limit limit = Make(10, seconds{1}, 2, seconds{10});
  const Step<State> step = Charge(limit, {}, 100, kStart, 6);
  EXPECT_EQ(step.decision.verdict, Verdict::kNever);
  EXPECT_EQ(Debt(limit, step.next, kStart), 6U);
  EXPECT_EQ(step.receipt.units, 6U);
  const Step<State> more = Charge(limit, step.next, 1, kStart, 7);
  EXPECT_EQ(more.decision.verdict, Verdict::kLimited);
  EXPECT_EQ(more.decision.retry_after, Duration{milliseconds{500}});
  EXPECT_EQ(Charge(limit, {}, ~std::uint64_t{0}, kStart, ~std::uint64_t{0}).next.next_free,
            internal::kMaxInt64);
}

TEST(LeakyBucketTest, AReloadKeepsTheQueueAsFarAsTheNewOneIsLong) {
  const Limit fast = Make(10, seconds{1}, 9, seconds{10});
  const Limit slow = Make(1, seconds{1}, 3, seconds{10});
  const State state = Decide(fast, {}, 3, kStart).next;
  EXPECT_EQ(Debt(slow, Convert(fast, state, slow, kStart), kStart), 3U);
  const State full = Owing(fast, 10, kStart);
  EXPECT_EQ(Debt(slow, Convert(fast, full, slow, kStart), kStart), 4U);
  EXPECT_EQ(Convert(fast, State{}, slow, kStart), State{});
}

TEST(LeakyBucketTest, ImpossibleQueuesAreRefused) {
  EXPECT_FALSE(MakeLimit({0, seconds{1}}, 1, seconds{1}).ok());
  EXPECT_FALSE(MakeLimit({1, seconds{0}}, 1, seconds{1}).ok());
  EXPECT_FALSE(MakeLimit({1, seconds{1}}, 1, Duration{-1}).ok());
  // A queue of 131 years is longer than the clock.
  EXPECT_FALSE(MakeLimit({1, std::chrono::hours{24 * 365 * 50}}, 9, Duration::max()).ok());
}

}  // namespace
}  // namespace sluice::leaky_bucket
