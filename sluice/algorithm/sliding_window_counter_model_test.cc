// The sliding window counter against its reference model, decision by decision. The model keeps
// every charge, counts its two windows by looking at all of them, compares fractions by
// multiplying out, and finds waits by trying instants.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "sluice/algorithm/internal/arithmetic.h"
#include "sluice/algorithm/sliding_window_counter.h"
#include "sluice/algorithm/testing/trace.h"

namespace sluice::sliding_window_counter {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::Random;

class Reference {
 public:
  Reference(std::uint64_t limit, Duration window, Duration offset)
      : limit_(limit), window_(window.count()), offset_(offset.count()) {}

  Decision Decide(std::uint64_t cost, std::int64_t now) {
    Decision decision{.remaining = 0};
    if (cost > limit_) {
      decision.verdict = Verdict::kNever;
      decision.retry_after = kNever;
    } else if (!Fits(cost, now)) {
      decision.verdict = Verdict::kLimited;
      decision.retry_after = Duration{FirstAt(now, [&](auto t) { return Fits(cost, t); }) - now};
    } else if (cost > 0) {
      charges_.push_back({now, cost});
    }
    while (decision.remaining < limit_ && Fits(decision.remaining + 1, now)) ++decision.remaining;
    decision.reset_after = Duration{FirstAt(now, [&](auto t) { return Estimate(t) == 0; }) - now};
    return decision;
  }

 private:
  struct Charge {
    std::int64_t at;
    std::uint64_t units;
  };

  std::int64_t StartOf(std::int64_t t) const {
    return t - internal::FloorMod(t - offset_, window_);
  }

  // The estimate times the window's length.
  Int128 Estimate(std::int64_t t) const {
    const std::int64_t start = StartOf(t);
    Int128 current = 0;
    Int128 previous = 0;
    for (const Charge& charge : charges_) {
      if (charge.at >= start) current += charge.units;
      if (charge.at >= start - window_ && charge.at < start) previous += charge.units;
    }
    return previous * (window_ - (t - start)) + current * window_;
  }

  bool Fits(std::uint64_t cost, std::int64_t t) const {
    return cost == 0 || Estimate(t) + Int128{cost} * window_ <= Int128{limit_} * window_;
  }

  // The first instant from `now` on at which something holds that then goes on to hold.
  template <typename F>
  std::int64_t FirstAt(std::int64_t now, const F& holds) const {
    std::int64_t low = now;
    std::int64_t high = now + 2 * window_;
    while (low < high) {
      const std::int64_t middle = low + (high - low) / 2;
      if (holds(middle)) {
        high = middle;
      } else {
        low = middle + 1;
      }
    }
    return low;
  }

  std::uint64_t limit_;
  std::int64_t window_;
  std::int64_t offset_;
  std::vector<Charge> charges_;
};

TEST(SlidingWindowCounterModelTest, EveryDecisionIsTheReferencesDecision) {
  const struct {
    std::int64_t limit;
    Duration window;
    Duration offset;
  } rows[] = {
      {1, seconds{1}, {}},           {10, seconds{10}, {}},
      {7, seconds{60}, seconds{17}}, {100, milliseconds{1}, Duration{333'333}},
      {5, Duration{1'000'003}, {}},  // a prime
  };
  for (const auto& row : rows) {
    const Limit limit = MakeLimit(row.limit, row.window, row.offset).value();
    for (std::uint64_t seed = 0; seed < 60 && !HasFailure(); ++seed) {
      SCOPED_TRACE(std::to_string(row.limit) + " per " + std::to_string(row.window.count()) +
                   " ns, seed " + std::to_string(seed));
      Reference reference(limit.limit, row.window, row.offset);
      Random random(seed);
      State state;
      Now now = testing::At(std::chrono::hours{24 * 365 * 50});
      for (int i = 0; i < 150 && !HasFailure(); ++i) {
        const std::int64_t most =
            random.Chance(10) ? 3 * row.window.count() : row.window.count() / 5;
        if (random.Chance(70)) now = testing::After(now, Duration{random.Between(0, most)});
        const std::uint64_t cost = random.Below(1 + limit.limit / (random.Chance(30) ? 1 : 3) + 1);
        const Step<State> step = Decide(limit, state, cost, now);
        ASSERT_EQ(step.decision, reference.Decide(cost, now.wall.time_since_epoch().count()));
        ASSERT_FALSE(step.damaged);
        state = step.next;
      }
    }
  }
}

TEST(SlidingWindowCounterModelTest, ProductsBeyond64BitsAreExact) {
  // 2^62 units in 100 years: limit * window has 124 bits.
  const std::uint64_t units = std::uint64_t{1} << 62;
  const Duration window = std::chrono::hours{876'600};
  const Limit limit = MakeLimit(static_cast<std::int64_t>(units), window).value();
  const WallTime half{window / 2};
  State state = Decide(limit, {}, units, {Time{}, WallTime{}}).next;
  const Now now{Time{}, WallTime{window} + half.time_since_epoch()};
  const Step<State> step = Decide(limit, state, units / 2, now);
  EXPECT_TRUE(step.decision.allowed());
  EXPECT_EQ(step.decision.remaining, 0U);
  const Decision denied = Decide(limit, step.next, 1, now).decision;
  EXPECT_EQ(denied.verdict, Verdict::kLimited);
  EXPECT_EQ(denied.retry_after, Duration{1});  // a unit fades in less than a nanosecond
}

}  // namespace
}  // namespace sluice::sliding_window_counter
