#include "sluice/transport/gateway/balancer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <string>

namespace sluice::gateway {
namespace {

using namespace std::chrono_literals;

constexpr Time kStart{Duration{1h}};

std::string Turns(Balancer& balancer, int count, Time now = kStart) {
  std::string turns;
  for (int i = 0; i < count; ++i) turns.push_back(static_cast<char>('a' + balancer.Choose(now)));
  return turns;
}

TEST(BalancerTest, SpreadsTheTurnsOfAHeavyUpstream) {
  Balancer balancer({5, 1, 1}, {});
  EXPECT_EQ(Turns(balancer, 14), "aabacaaaabacaa");
}

TEST(BalancerTest, EqualWeightsTakeTurns) {
  Balancer balancer({1, 1, 1}, {});
  EXPECT_EQ(Turns(balancer, 6), "abcabc");
}

// For each prefix of the turns: |chosen - turns * weight / sum| < 1 for two upstreams, and never
// more than the number of upstreams in general.
TEST(BalancerTest, NobodyIsFarFromItsShareInAnyStretch) {
  std::mt19937_64 random(7);
  for (int round = 0; round < 200; ++round) {
    std::vector<std::uint32_t> weights(2 + random() % 6);
    double sum = 0;
    for (std::uint32_t& weight : weights)
      sum += weight = 1 + static_cast<std::uint32_t>(random() % 20);
    Balancer balancer(weights, {});
    std::vector<int> chosen(weights.size());
    for (int turn = 1; turn <= 300; ++turn) {
      ++chosen[balancer.Choose(kStart)];
      for (std::size_t i = 0; i < weights.size(); ++i) {
        const double share = turn * weights[i] / sum;
        ASSERT_LE(std::abs(chosen[i] - share), static_cast<double>(weights.size() - 1));
      }
    }
  }
}

TEST(BalancerTest, LeavesOutWhoFailedInARowUntilItHasRested) {
  Balancer balancer({1, 1}, {.failures = 2, .rest = 10s});
  EXPECT_FALSE(balancer.Failed(0, kStart));
  EXPECT_FALSE(balancer.resting(0, kStart));
  EXPECT_TRUE(balancer.Failed(0, kStart));
  EXPECT_TRUE(balancer.resting(0, kStart));
  EXPECT_EQ(Turns(balancer, 3), "bbb");
  EXPECT_EQ(Turns(balancer, 3, kStart + 10s - 1ns), "bbb");
  EXPECT_THAT(Turns(balancer, 2, kStart + 10s), ::testing::HasSubstr("a"));
}

TEST(BalancerTest, AnAnswerInBetweenBeginsTheCountAnew) {
  Balancer balancer({1, 1}, {.failures = 2, .rest = 10s});
  EXPECT_FALSE(balancer.Failed(0, kStart));
  EXPECT_FALSE(balancer.Succeeded(0));
  EXPECT_FALSE(balancer.Failed(0, kStart));
  EXPECT_FALSE(balancer.resting(0, kStart));
}

TEST(BalancerTest, OneFailureAfterARestIsEnough) {
  Balancer balancer({1, 1}, {.failures = 3, .rest = 10s});
  for (int i = 0; i < 3; ++i) balancer.Failed(0, kStart);
  const Time later = kStart + 11s;
  EXPECT_FALSE(balancer.resting(0, later));
  EXPECT_FALSE(balancer.Failed(0, later)) << "that it is down is no news";
  EXPECT_TRUE(balancer.resting(0, later));
  EXPECT_TRUE(balancer.Succeeded(0)) << "that it is back is";
  EXPECT_FALSE(balancer.resting(0, later));
}

TEST(BalancerTest, WhoComesBackGetsItsShareAndNoMore) {
  Balancer balancer({1, 1}, {.failures = 1, .rest = 10s});
  balancer.Failed(0, kStart);
  Turns(balancer, 1000);
  balancer.Succeeded(0);
  const std::string turns = Turns(balancer, 10);
  EXPECT_EQ(std::count(turns.begin(), turns.end(), 'a'), 5) << turns;
}

TEST(BalancerTest, WhenAllRestTheOneThatRestedLongestIsTried) {
  Balancer balancer({1, 1, 1}, {.failures = 1, .rest = 10s});
  balancer.Failed(2, kStart);
  balancer.Failed(0, kStart + 1s);
  balancer.Failed(1, kStart + 2s);
  EXPECT_EQ(Turns(balancer, 2, kStart + 3s), "cc");
}

TEST(BalancerTest, ARequestDoesNotMeetTheSameUpstreamTwiceWhileThereIsAnother) {
  Balancer balancer({9, 1}, {.failures = 1, .rest = 10s});
  EXPECT_EQ(balancer.Choose(kStart, 0b01), 1u);
  EXPECT_EQ(balancer.Choose(kStart, 0b10), 0u);
  balancer.Failed(1, kStart);
  EXPECT_EQ(balancer.Choose(kStart, 0b01), 1u) << "one that rests before one that was tried";
}

TEST(BalancerTest, OneThatChecksFoundDownGetsNothingWhileAnotherIsUp) {
  Balancer balancer({9, 1, 1}, {.failures = 1, .rest = 10s});
  balancer.SetDown(0, true);
  EXPECT_EQ(Turns(balancer, 4), "bcbc");
  balancer.Failed(1, kStart);
  balancer.Failed(2, kStart + 1s);
  EXPECT_EQ(Turns(balancer, 2, kStart + 2s), "bb") << "it is up, though it rests";
  EXPECT_EQ(balancer.Choose(kStart + 2s, 0b110), 0u) << "the others were tried";
  balancer.SetDown(0, false);
  EXPECT_EQ(Turns(balancer, 2, kStart + 2s), "aa");
}

TEST(BalancerTest, WhenAllAreDownRequestsAreSharedAsIfAllWereUp) {
  Balancer balancer({2, 1, 1}, {.failures = 1, .rest = 10s});
  for (std::size_t i = 0; i < 3; ++i) balancer.SetDown(i, true);
  EXPECT_EQ(Turns(balancer, 4), "abca");
  balancer.Failed(0, kStart);
  EXPECT_THAT(Turns(balancer, 4), ::testing::Not(::testing::HasSubstr("a")));
  EXPECT_EQ(balancer.Choose(kStart, 0b110), 0u);
}

TEST(BalancerTest, TheOnlyUpstreamIsAlwaysTheOne) {
  Balancer balancer({3}, {.failures = 1, .rest = 10s});
  balancer.SetDown(0, true);
  balancer.Failed(0, kStart);
  EXPECT_EQ(Turns(balancer, 2), "aa");
}

}  // namespace
}  // namespace sluice::gateway
