// The token bucket against an exact model, decision by decision; and thirty years of uptime.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "sluice/algorithm/internal/arithmetic.h"
#include "sluice/algorithm/testing/trace.h"
#include "sluice/algorithm/token_bucket.h"

namespace sluice::token_bucket {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::Random;

constexpr Duration kYear = hours{24 * 365};

// A bucket as a level of water, in whole numbers: units owed * period. It leaks `count` of these a
// nanosecond. No instant, no tick, no rounding but in the answers.
class Level {
 public:
  Level(Rate rate, std::uint64_t burst)
      : count_(rate.count), period_(rate.period.count()), capacity_(Int128{burst} * period_) {}

  Decision Decide(std::uint64_t cost, Time now) const {
    const Int128 level = LevelAt(now);
    const Int128 wanted = level + Int128{cost} * period_;
    if (Int128{cost} * period_ > capacity_) return Answer(Verdict::kNever, level, kNever);
    if (cost > 0 && wanted > capacity_) {
      return Answer(Verdict::kLimited, level, Duration{Ceil(wanted - capacity_, count_)});
    }
    return Answer(Verdict::kAllowed, wanted, Duration{0});
  }

  Decision Acquire(std::uint64_t cost, Time now) {
    const Decision decision = Decide(cost, now);
    if (decision.allowed() && cost > 0) Add(cost, now);
    return decision;
  }

  void Add(std::uint64_t cost, Time now) {
    level_ = LevelAt(now) + Int128{cost} * period_;
    at_ = now;
  }

 private:
  static std::int64_t Ceil(Int128 a, Int128 b) {
    return static_cast<std::int64_t>((a + b - 1) / b);
  }

  // Before at_ (the clock stepped back) it is as much fuller as it would have leaked since.
  Int128 LevelAt(Time now) const {
    return std::max(Int128{0}, level_ - Int128{(now - at_).count()} * count_);
  }

  Decision Answer(Verdict verdict, Int128 level, Duration retry_after) const {
    const Int128 free = std::max(Int128{0}, capacity_ - level);
    return {.verdict = verdict,
            .remaining = static_cast<std::uint64_t>(free / period_),
            .retry_after = retry_after,
            .reset_after = Duration{Ceil(level, count_)}};
  }

  Int128 count_;
  Int128 period_;
  Int128 capacity_;
  Int128 level_ = 0;
  Time at_{};
};

void CompareWithModel(Rate rate, std::uint64_t burst, std::uint64_t seed) {
  SCOPED_TRACE(std::to_string(rate.count) + " per " + std::to_string(rate.period.count()) +
               " ns, burst " + std::to_string(burst) + ", seed " + std::to_string(seed));
  const Limit limit = MakeLimit(rate, burst).value();
  ASSERT_EQ(limit.units, 1U) << "only whole intervals are exact";
  Level level(rate, burst);
  State state;
  Random random(seed);
  const std::int64_t stride =
      std::max<std::int64_t>(2, ToDuration(limit, limit.capacity).count() / 4);
  const std::int64_t long_wait = std::min(stride, limit.last_ns / 160) * 40;
  const Time start{Duration{3 * stride}};
  Time now = start;
  for (int i = 0; i < 300 && !::testing::Test::HasFailure(); ++i) {
    if (random.Chance(60)) now += Duration{random.Between(0, stride)};
    if (random.Chance(5)) now -= Duration{random.Between(0, 2 * stride)};
    if (random.Chance(3)) now += Duration{random.Between(0, long_wait)};
    now = std::clamp(now, start - Duration{2 * stride}, Time{Duration{limit.last_ns}});
    const std::uint64_t cost = random.Below(burst + 2);
    ASSERT_EQ(Decide(limit, state, cost, now).decision, level.Decide(cost, now));
    if (random.Chance(10) && Debt(limit, state, now) + cost <= 2 * burst) {
      state = Charge(limit, state, cost, now, 2 * burst).next;
      if (cost > 0) level.Add(cost, now);
    } else {
      state = Decide(limit, state, cost, now).next;
      level.Acquire(cost, now);
    }
  }
}

TEST(TokenBucketModelTest, WholeIntervalsAnswerAsTheExactModel) {
  const struct {
    Rate rate;
    std::uint64_t burst;
  } rows[] = {
      {{3, seconds{1}}, 1},
      {{3, seconds{1}}, 7},
      {{7, seconds{60}}, 7},
      {{10'000'000, seconds{1}}, 50},
      {{700'000'000, seconds{1}}, 7},
      {{4'000'000'000, seconds{1}}, 8},
      {{1, hours{24}}, 3},
      {{10, milliseconds{13'000}}, 1},
      {{1, Duration{3'200'000'000'000'000'000}}, 1},
      {{1'000'000, seconds{3600}}, 1'000'000},
  };
  for (const auto& row : rows) {
    for (std::uint64_t seed = 0; seed < 30 && !HasFailure(); ++seed) {
      CompareWithModel(row.rate, row.burst, seed);
    }
  }
}

// Where the interval is not whole: never more generous than the exact model with a burst that is
// larger by what the rounding of the capacity can be worth, and never a tick a request behind.
TEST(TokenBucketModelTest, OtherRatesSpendNoMoreThanTheModelAndLoseATickARequest) {
  for (const Rate rate : {Rate{333, seconds{60}}, Rate{7919, seconds{1}}}) {
    const Limit limit = MakeLimit(rate, 20).value();
    ASSERT_GT(limit.units, 1U);
    ASSERT_EQ(limit.ticks_per_ns, 8);
    State state;
    Time now{hours{1}};
    std::uint64_t spent = 0;
    const Time start = now;
    for (int i = 0; i < 100'000; ++i) {  // always as soon as it may
      const Step<State> step = Decide(limit, state, 1 + static_cast<std::uint64_t>(i % 3), now);
      if (!step.decision.allowed()) {
        now += step.decision.retry_after;
        continue;
      }
      spent += step.receipt.units;
      state = step.next;
    }
    const Int128 elapsed = (now - start).count();
    const Int128 exact = elapsed * rate.count / rate.period.count();
    EXPECT_LE(Int128{spent}, exact + 20 + 1);
    // A tick and a nanosecond for each of at most 100,000 requests.
    const Int128 lost_ns = 100'000 * 2;
    EXPECT_GE(Int128{spent}, (elapsed - lost_ns) * rate.count / rate.period.count());
  }
}

struct Uptime {
  Rate rate;
  std::uint64_t burst;
};

class ThirtyYearsTest : public ::testing::TestWithParam<Uptime> {};

TEST_P(ThirtyYearsTest, TheLastSecondIsAsTheFirst) {
  const Limit limit = MakeLimit(GetParam().rate, GetParam().burst).value();
  EXPECT_GE(limit.last_ns, (30 * kYear).count());
  // The same steps at the start and after thirty years give the same answers.
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    State early;
    State late;
    Random random(seed);
    Duration offset{1};
    const std::int64_t stride =
        std::max<std::int64_t>(2, ToDuration(limit, limit.capacity).count() / 4);
    for (int i = 0; i < 200 && offset < kYear; ++i) {
      offset += Duration{random.Between(0, stride)};
      const std::uint64_t cost = random.Below(GetParam().burst + 2);
      const Step<State> a = Decide(limit, early, cost, Time{offset});
      const Step<State> b = Decide(limit, late, cost, Time{29 * kYear + offset});
      ASSERT_EQ(a.decision, b.decision);
      early = a.next;
      late = b.next;
    }
  }
}

TEST_P(ThirtyYearsTest, ASteadySpenderGetsBurstAndRateAndNoMore) {
  // Emptied at each of a hundred thousand instants over thirty years, most of them close together.
  const Rate rate = GetParam().rate;
  const Limit limit = MakeLimit(rate, GetParam().burst).value();
  const std::int64_t short_step = std::max<std::int64_t>(1, rate.period.count() / rate.count);
  Random random(7);
  State state;
  Time now{Duration{1}};
  Int128 spent = 0;
  Int128 forgone = 0;  // ns in which it was full already
  for (int i = 0; i < 100'000; ++i) {
    const Duration step = random.Chance(1) ? Duration{random.Between(0, 30 * kYear.count() / 1000)}
                                           : Duration{random.Between(0, 3 * short_step)};
    if (now + step > Time{30 * kYear}) break;
    now += step;
    const Decision look = Decide(limit, state, 0, now).decision;
    const std::int64_t idle = TicksAt(limit, now) - state.tat;
    if (idle > 0) forgone += ToDuration(limit, idle).count();
    if (look.remaining == 0) continue;
    const Step<State> taken = Decide(limit, state, look.remaining, now);
    ASSERT_TRUE(taken.decision.allowed());
    spent += taken.receipt.units;
    state = taken.next;
  }
  const Int128 elapsed = now.time_since_epoch().count() - 1;
  const Int128 exact = elapsed * rate.count / rate.period.count();
  EXPECT_LE(spent, exact + Int128{GetParam().burst} + 1);
  // All that was there to be had, but for a unit that is still filling and a tick a request.
  const Int128 had = (elapsed - forgone - 100'000) * rate.count / rate.period.count();
  EXPECT_GE(spent, had - Int128{GetParam().burst} - 1);
  EXPECT_GT(now, Time{12 * kYear});
}

INSTANTIATE_TEST_SUITE_P(Rates, ThirtyYearsTest,
                         ::testing::Values(Uptime{{3, seconds{1}}, 3}, Uptime{{7, seconds{1}}, 7},
                                           Uptime{{333, seconds{60}}, 333},
                                           Uptime{{10'000'000, seconds{1}}, 1000},
                                           Uptime{{7919, seconds{1}}, 7919},
                                           Uptime{{1, hours{24}}, 1}));

}  // namespace
}  // namespace sluice::token_bucket
