#include "sluice/config/limit_numbers.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "sluice/base/int128.h"

namespace sluice::config {
namespace {

using namespace std::chrono_literals;

constexpr Algorithm kAll[] = {
    Algorithm::kTokenBucket,          Algorithm::kLeakyBucket,
    Algorithm::kFixedWindow,          Algorithm::kSlidingWindowLog,
    Algorithm::kSlidingWindowCounter, Algorithm::kSlidingWindowStrict,
    Algorithm::kConcurrency,          Algorithm::kCalendar,
};

TEST(PartOfTest, KeepsTheRateOfABucketExact) {
  const struct {
    std::int64_t count;
    Duration period;
    std::int64_t burst;
    Part part;
    std::int64_t expected_count;
    Duration expected_period;
    std::int64_t expected_burst;
  } rows[] = {
      {100, 1min, 20, {1, 2}, 50, 1min, 10},
      {100, 1min, 20, {1, 3}, 100, 3min, 6},
      {100, 1min, 20, {2, 3}, 200, 3min, 13},
      {10, 1s, 10, {1, 4}, 5, 2s, 2},
      {1, 1s, 3, {1, 3}, 1, 3s, 1},
      {7, 24h, 90, {3, 3}, 7, 24h, 90},
      // 100,000 times this period is longer than 292 years: at most 1 ns later for each unit.
      {7, 24h * 7, 100'000, {1, 100'000}, 1, 8'640'000'000'000'000'000ns, 1},
      {9'000'000'000'000'000'001, kMaxPeriod, 4, {1, 3}, 3'000'000'000'000'000'000, kMaxPeriod, 1},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.count);
    const LimitNumbers all{.count = row.count, .period = row.period, .burst = row.burst};
    const auto part = PartOf(all, row.part, Algorithm::kTokenBucket);
    ASSERT_TRUE(part.has_value());
    EXPECT_EQ(part->count, row.expected_count);
    EXPECT_EQ(part->period, row.expected_period);
    EXPECT_EQ(part->burst, row.expected_burst);
  }
}

TEST(PartOfTest, OthersLoseWhatCannotBeDivided) {
  for (const Algorithm algorithm : kAll) {
    if (algorithm == Algorithm::kTokenBucket || algorithm == Algorithm::kLeakyBucket) continue;
    const LimitNumbers all{.count = 11, .period = 1min};
    EXPECT_EQ(PartOf(all, {1, 3}, algorithm)->count, 3);
    EXPECT_EQ(PartOf(all, {2, 3}, algorithm)->count, 7);
    EXPECT_EQ(PartOf(all, {1, 3}, algorithm)->period, 1min);
    EXPECT_FALSE(PartOf(all, {1, 12}, algorithm).has_value());
    EXPECT_TRUE(PartOf(all, {1, 11}, algorithm).has_value());
  }
}

TEST(PartOfTest, AQueueIsShorterButWaitsAsLong) {
  const LimitNumbers all{.count = 10, .period = 1s, .queue = 5, .wait = 3s};
  const auto half = PartOf(all, {1, 2}, Algorithm::kLeakyBucket);
  EXPECT_EQ(half->queue, 2);
  EXPECT_EQ(half->wait, 3s);
  EXPECT_EQ(half->count, 5);
  EXPECT_EQ(PartOf(all, {1, 6}, Algorithm::kLeakyBucket)->queue, 0) << "nobody waits, some pass";
  const LimitNumbers endless{.count = 10, .period = 1s, .wait = 3s};
  EXPECT_EQ(PartOf(endless, {1, 2}, Algorithm::kLeakyBucket)->queue, INT64_MAX);
}

// Of a limit as it is compiled: its units, and its rate as a fraction.
struct Allowance {
  Uint128 units = 0;  // at one instant, or in a window; of a queue: those that wait
  Uint128 count = 0;  // of a bucket's rate, in
  Uint128 period = 1;
};

Allowance AllowanceOf(const LimitNumbers& numbers, const Limit& limit) {
  Allowance allowance{.units = CapacityOf(limit)};
  const auto* bucket = std::get_if<token_bucket::Limit>(&limit);
  if (const auto* queue = std::get_if<leaky_bucket::Limit>(&limit)) {
    bucket = &queue->pace;
    // Not those of the limit, which are of ticks, and rounded.
    allowance.units =
        std::min(static_cast<Uint128>(numbers.queue),
                 static_cast<Uint128>(numbers.wait.count()) * static_cast<Uint128>(numbers.count) /
                     static_cast<Uint128>(numbers.period.count()));
  }
  if (bucket != nullptr) {
    allowance.count = static_cast<Uint128>(bucket->rate.count);
    allowance.period = static_cast<Uint128>(bucket->rate.period.count());
  }
  return allowance;
}

TEST(PartOfTest, AllNodesTogetherNeverAllowMoreThanTheWhole) {
  std::mt19937_64 random(5);  // NOLINT: the same for everybody
  const auto draw = [&](std::int64_t least, std::int64_t most) {
    return std::uniform_int_distribution<std::int64_t>(least, most)(random);
  };
  int shared = 0;
  for (int i = 0; i < 20'000; ++i) {
    const Algorithm algorithm = kAll[draw(0, 7)];
    const std::int64_t most = draw(0, 1) == 0 ? 200 : 1'000'000;
    const LimitNumbers all{.count = draw(1, most),
                           .period = draw(1, 400) * (draw(0, 1) == 0 ? Duration{1s} : 7ms),
                           .burst = draw(1, most),
                           .queue = draw(0, 3) == 0 ? INT64_MAX : draw(0, most),
                           .wait = draw(0, 100'000) * 1ms};
    const Part part{.of = 1, .whole = draw(2, draw(0, 1) == 0 ? 9 : 1'000)};
    const AlgorithmOptions options{.algorithm = algorithm};
    const auto numbers = PartOf(all, part, algorithm);
    if (!numbers) continue;
    const auto whole = MakeLimit(all, options);
    const auto made = MakeLimit(*numbers, options);
    if (!whole.ok()) continue;
    ASSERT_TRUE(made.ok()) << made.status();
    ++shared;
    const Allowance one = AllowanceOf(*numbers, *made);
    const Allowance together = AllowanceOf(all, *whole);
    const auto nodes = static_cast<Uint128>(part.whole);
    ASSERT_TRUE(one.units * nodes <= together.units) << static_cast<int>(algorithm);
    ASSERT_TRUE(one.count * together.period * nodes <= together.count * one.period)
        << static_cast<int>(algorithm);
  }
  EXPECT_GT(shared, 5'000);
}

}  // namespace
}  // namespace sluice::config
