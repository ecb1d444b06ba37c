// What denied clients are told where a rule has a jitter, from the engine's own decisions.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <random>
#include <set>
#include <string>

#include "sluice/limiter/limiter_fixture.h"
#include "sluice/transport/headers.h"
#include "sluice/transport/problem.h"
#include "sluice/transport/told_wait.h"

namespace sluice::transport {
namespace {

class RetryJitterTest : public LimiterFixture {
 protected:
  static Rule WithJitter(Rule rule, Duration jitter) {
    rule.retry_jitter = jitter;
    return rule;
  }
  std::string Fields(HeaderDialects dialects) {
    std::string lines;
    RateLimitFields(dialects).Append(outcome_, &lines);
    return lines;
  }
  // The number that follows `before`.
  static std::uint64_t NumberAfter(const std::string& text, std::string_view before) {
    const std::size_t at = text.find(before);
    EXPECT_NE(at, std::string::npos) << before << " in " << text;
    return at == std::string::npos ? 0 : std::stoull(text.substr(at + before.size()));
  }
};

std::uint64_t Ceil(Duration wait, Duration unit) {
  return static_cast<std::uint64_t>((wait + unit - 1ns) / unit);
}

// All places in which a wait is told, against the exact wait and the bound.
TEST_F(RetryJitterTest, NeverSoonerThanTheExactWaitNeverMoreThanTheJitterBeyond) {
  std::mt19937_64 random(7);
  const auto any = [&](std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution<std::int64_t>(low, high)(random);
  };
  int denials = 0;
  for (int trial = 0; trial < 60; ++trial) {
    const Duration jitter(any(1, 20'000) * any(1, 1'000'000));
    const Duration other(trial % 3 == 0 ? any(1, 9'000'000'000) : 0);
    Use({WithJitter(MakeRule("a", HeaderSource("K"), Bucket(any(1, 20), 1s * any(1, 90), 3)),
                    jitter),
         WithJitter(MakeRule("b", HeaderSource("K"), Window(any(1, 9), 1s * any(1, 90))), other)});
    const Duration bound = std::max(jitter, other);
    for (int i = 0; i < 60; ++i) {
      clock_.Advance(Duration(any(0, 2'000'000'000)));
      const std::string key = "ann" + std::to_string(any(0, 3));
      if (Ask(key).allowed()) continue;
      ++denials;
      const Duration exact = outcome_.retry_after;
      const Duration told = ToldWait(outcome_);
      ASSERT_GE(told, exact);
      ASSERT_LE(told, exact + bound);
      EXPECT_EQ(RetryAfterSeconds(outcome_), Ceil(told, 1s));
      std::string body;
      AppendDenialBody(outcome_, BodyForm::kJson, &body);
      EXPECT_EQ(NumberAfter(body, "\"retry_after_ms\":"), Ceil(told, 1ms));
      // The rule that waits longest is shown first; none is beyond Retry-After.
      const std::uint64_t t = NumberAfter(Fields({.draft_11 = true}), ";t=");
      EXPECT_GE(t, Ceil(exact, 1s));
      EXPECT_LE(t, Ceil(told, 1s));
      EXPECT_EQ(NumberAfter(Fields({.draft_07 = true}), "reset="), t);
      for (const RuleResult& result : outcome_.results) {
        const Decision& decision = outcome_.ClaimOf(result)->decision;
        const Decision of_rule = ToldDecision(outcome_, result);
        EXPECT_GE(of_rule.retry_after, decision.retry_after);
        EXPECT_LE(of_rule.retry_after, decision.retry_after + result.rule->retry_jitter);
        EXPECT_LE(of_rule.retry_after, told);
        if (decision.allowed()) {
          EXPECT_EQ(of_rule.retry_after, 0ns);
        }
      }
    }
  }
  EXPECT_GT(denials, 500);
}

TEST_F(RetryJitterTest, WhoWaitsAsToldPasses) {
  Use({WithJitter(MakeRule("a", HeaderSource("K"), Bucket(1, 10s, 2)), 7s)});
  for (int i = 0; i < 100; ++i) {
    const std::string key = "client" + std::to_string(i);
    EXPECT_EQ(Passing(key, 3), 2);
    clock_.Advance(ToldWait(outcome_));
    EXPECT_TRUE(Allowed(key));
  }
}

TEST_F(RetryJitterTest, ThoseWhoAreDeniedTogetherAreSpreadEvenly) {
  Use({WithJitter(MakeRule("a", HeaderSource("K"), Window(1, 1min)), 10s)});
  std::array<int, 10> seconds{};
  std::set<Duration> different;
  constexpr int kClients = 10'000;
  for (int i = 0; i < kClients; ++i) {
    (void)Passing("client" + std::to_string(i), 2);
    const Duration beyond = ToldWait(outcome_) - outcome_.retry_after;
    ++seconds[static_cast<std::size_t>(std::min<Duration>(beyond, 10s - 1ns) / 1s)];
    different.insert(beyond);
  }
  EXPECT_GT(different.size(), kClients * 99U / 100);
  for (const int count : seconds) EXPECT_NEAR(count, kClients / 10, 150);  // 5 standard deviations
}

// A rule that counts everybody has one key for all: the instant tells them apart, or another rule.
TEST_F(RetryJitterTest, AlsoThoseWhoShareACounter) {
  Use({WithJitter(MakeRule("all", GlobalSource(), Window(1, 1min)), 10s)});
  std::set<Duration> told;
  (void)Ask("ann");
  for (int i = 0; i < 100; ++i) {
    clock_.Advance(1ns);
    told.insert(ToldWait(Ask("ann")) - outcome_.retry_after);
  }
  EXPECT_GT(told.size(), 95U);
  Use({WithJitter(MakeRule("all", GlobalSource(), Window(1, 1min)), 10s),
       MakeRule("each", HeaderSource("K"), Window(9, 1min))});
  told.clear();
  for (int i = 0; i < 100; ++i) told.insert(ToldWait(Ask(std::to_string(i))));
  EXPECT_GT(told.size(), 95U);
}

TEST_F(RetryJitterTest, TheSameRequestAtTheSameInstantIsToldTheSame) {
  Use({WithJitter(MakeRule("a", HeaderSource("K"), Window(1, 1min)), 10s)});
  EXPECT_EQ(Passing("ann", 2), 1);
  const Duration told = ToldWait(outcome_);
  EXPECT_EQ(ToldWait(outcome_), told);
  EXPECT_EQ(ToldWait(Ask("ann")), told);
}

TEST_F(RetryJitterTest, WhatIsNoWaitStaysAsItIs) {
  Rule shadow = WithJitter(MakeRule("shadow", HeaderSource("K"), Window(1, 1h)), 1h);
  shadow.mode = RuleMode::kShadow;
  Use({shadow, MakeRule("exact", HeaderSource("K"), Window(2, 1min))});
  EXPECT_EQ(Passing("ann", 2), 2);
  EXPECT_EQ(ToldWait(outcome_), 0ns);
  EXPECT_FALSE(Allowed("ann"));
  EXPECT_EQ(ToldWait(outcome_), outcome_.retry_after);  // a shadow rule's jitter is nobody's wait

  Use({WithJitter(MakeRule("slots", HeaderSource("K"), Slots(1)), 1s)});
  EXPECT_EQ(Passing("bob", 2), 1);
  EXPECT_EQ(ToldWait(outcome_), kUnknown);
  Rule dear = WithJitter(MakeRule("dear", HeaderSource("K"), Window(1, 1min)), 1s);
  dear.cost.fixed = 2;
  Use({dear});
  EXPECT_EQ(ToldWait(Ask("cid")), kNever);
}

}  // namespace
}  // namespace sluice::transport
