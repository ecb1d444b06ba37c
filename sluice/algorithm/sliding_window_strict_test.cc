#include "sluice/algorithm/sliding_window_strict.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace sluice::sliding_window_strict {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::seconds;

struct Key {
  explicit Key(const Limit& limit) : counts(static_cast<std::size_t>(limit.sub_windows) + 1) {}
  View view() { return {newest, counts}; }

  std::int64_t newest = 0;
  std::vector<std::uint64_t> counts;
};

TEST(SlidingWindowStrictTest, SubWindowsCoverTheWindowWhateverItsLength) {
  for (const int k : {1, 3, 7, 16, 60}) {
    for (const Duration window : {Duration{milliseconds{1}}, Duration{1'000'003},
                                  Duration{seconds{61}}, Duration{hours{876'600}}}) {
      const Limit limit = MakeLimit(5, window, k).value();
      EXPECT_GE(limit.step * k, window);
      EXPECT_LT(limit.step * k, window + Duration{k});
    }
  }
}

TEST(SlidingWindowStrictTest, WhatIsSpentComesBackBetweenWindowAndWindowAndAStep) {
  const Limit limit = MakeLimit(5, seconds{10}, 5).value();
  for (const milliseconds at : {milliseconds{0}, milliseconds{1}, milliseconds{1999}}) {
    Key key(limit);
    const Time now{hours{1} + at};
    const Answer spent = Charge(limit, key.view(), 5, now, 5);
    EXPECT_TRUE(spent.decision.allowed());
    EXPECT_EQ(spent.decision.reset_after, Duration{seconds{12} - at});
    EXPECT_FALSE(Decide(limit, key.view(), 1, now + seconds{10}).decision.allowed());
  }
}

TEST(SlidingWindowStrictTest, DecideTouchesNothing) {
  const Limit limit = MakeLimit(5, seconds{10}, 5).value();
  Key key(limit);
  Charge(limit, key.view(), 3, Time{hours{1}}, 5);
  const std::vector<std::uint64_t> counts = key.counts;
  const std::int64_t newest = key.newest;
  static_cast<void>(Decide(limit, key.view(), 1, Time{hours{1} + seconds{5}}));
  static_cast<void>(Decide(limit, key.view(), 9, Time{hours{9}}));
  static_cast<void>(Debt(limit, key.view(), Time{hours{9}}));
  EXPECT_EQ(key.counts, counts);
  EXPECT_EQ(key.newest, newest);
}

TEST(SlidingWindowStrictTest, WhatACountersPlaceHeldBeforeIsGone) {
  const Limit limit = MakeLimit(100, seconds{10}, 5).value();
  // A jump of every length, across the place of every counter.
  for (int jump = 0; jump < 15; ++jump) {
    Key key(limit);
    Time now{hours{1}};
    for (int i = 0; i < 7; ++i) {
      Charge(limit, key.view(), 1, now, 100);
      now += limit.step;
    }
    now += (jump - 1) * limit.step;
    const std::uint64_t left = jump >= 6 ? 0 : static_cast<std::uint64_t>(6 - jump);
    EXPECT_EQ(Debt(limit, key.view(), now), left) << jump;
    Charge(limit, key.view(), 10, now, 100);
    EXPECT_EQ(Debt(limit, key.view(), now), left + 10) << jump;
  }
}

TEST(SlidingWindowStrictTest, SumsBeyond64BitsAreNoTrap) {
  const Limit limit = MakeLimit(INT64_MAX, seconds{10}, 2).value();
  Key key(limit);
  const Time now{hours{1}};
  const std::uint64_t most = ~std::uint64_t{0};
  Charge(limit, key.view(), INT64_MAX, now, most);
  const Answer forced = Charge(limit, key.view(), most, now + limit.step, most);
  EXPECT_EQ(Debt(limit, key.view(), now + limit.step), most);
  EXPECT_EQ(forced.receipt.units, most - INT64_MAX);
  EXPECT_EQ(forced.decision.remaining, 0U);
}

TEST(SlidingWindowStrictTest, ImpossibleNumbersAreRefused) {
  EXPECT_FALSE(MakeLimit(-1, seconds{1}).ok());
  EXPECT_FALSE(MakeLimit(1, Duration{1}).ok());
  for (const int k : {-1, 0, 61}) {
    const auto refused = MakeLimit(1, seconds{1}, k);
    EXPECT_NE(refused.status().ToString().find("from 1 to 60, got " + std::to_string(k)),
              std::string::npos);
  }
}

}  // namespace
}  // namespace sluice::sliding_window_strict
