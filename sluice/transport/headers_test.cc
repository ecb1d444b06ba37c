#include "sluice/transport/headers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <vector>

namespace sluice::transport {
namespace {

using namespace std::chrono_literals;

Limit Window(std::int64_t limit, Duration window) {
  return *fixed_window::MakeLimit(limit, window);
}

// The rows of the draft-11 dialect that every implementation has to write alike.
struct Row {
  std::string_view id;
  std::string_view name;
  std::int64_t limit;
  Duration window;
  Decision decision;
  std::string_view policy;
  std::string_view item;
  std::optional<std::uint64_t> retry_after;
};

const Row kRows[] = {
    {"HD01",
     "default",
     100,
     60s,
     {Verdict::kAllowed, 50, 0ns, 30s},
     R"("default";q=100;w=60)",
     R"("default";r=50;t=30)",
     std::nullopt},
    {"HD02",
     "default",
     100,
     60s,
     {Verdict::kLimited, 0, 1ns, 1ns},
     R"("default";q=100;w=60)",
     R"("default";r=0;t=1)",
     1},
    {"HD03",
     "burst",
     10,
     1s,
     {Verdict::kLimited, 0, 100ms, 900ms},
     R"("burst";q=10;w=1)",
     R"("burst";r=0;t=1)",
     1},
    {"HD04",
     "daily",
     5000,
     24h,
     {Verdict::kAllowed, 100, 0ns, 10h},
     R"("daily";q=5000;w=86400)",
     R"("daily";r=100;t=36000)",
     std::nullopt},
    {"HD05",
     "big",
     10,
     60s,
     {Verdict::kNever, 3, kNever, 2s},
     R"("big";q=10;w=60)",
     R"("big";r=3;t=2)",
     std::nullopt},
    {"HD06",
     "a\"b",
     5,
     10s,
     {Verdict::kAllowed, 1, 0ns, 1000000001ns},
     R"("a\"b";q=5;w=10)",
     R"("a\"b";r=1;t=2)",
     std::nullopt},
};

TEST(RateLimitItemTest, WritesEachVector) {
  for (const Row& row : kRows) {
    SCOPED_TRACE(row.id);
    std::string policy;
    AppendPolicyItem(row.name, Window(row.limit, row.window), &policy);
    EXPECT_EQ(policy, row.policy);
    std::string item;
    AppendLimitItem(QuotedName(row.name), row.decision, Window(row.limit, row.window), &item);
    EXPECT_EQ(item, row.item);
    Outcome outcome;
    if (row.decision.verdict == Verdict::kLimited) outcome.answer = Answer::kLimited;
    if (row.decision.verdict == Verdict::kNever) outcome.answer = Answer::kNeverPasses;
    outcome.retry_after = row.decision.retry_after;
    EXPECT_EQ(RetryAfterSeconds(outcome), row.retry_after);
  }
}

TEST(RateLimitItemTest, WhatNobodyKnowsIsLeftOut) {
  const Limit slots = *concurrency::MakeLimit(8, 0s);
  std::string text;
  AppendPolicyItem("parallel", slots, &text);
  EXPECT_EQ(text, R"("parallel";q=8;qu="concurrent-requests")");
  text.clear();
  AppendLimitItem("\"parallel\"", {Verdict::kLimited, 0, kUnknown, kUnknown}, slots, &text);
  EXPECT_EQ(text, R"("parallel";r=0)");
  Outcome outcome;
  outcome.answer = Answer::kLimited;
  outcome.retry_after = kUnknown;
  EXPECT_EQ(RetryAfterSeconds(outcome), std::nullopt);
}

TEST(RateLimitItemTest, NumbersFitAStructuredField) {
  const Limit huge = *token_bucket::MakeLimit({.count = 1, .period = 1ns}, 1'000'000'000'000'000);
  std::string text;
  AppendLimitItem("\"n\"", {Verdict::kAllowed, ~std::uint64_t{0}, 0ns, 0ns}, huge, &text);
  EXPECT_EQ(text, R"("n";r=999999999999999;t=0)");
}

TEST(CeilSecondsTest, NeverTellsTooLittle) {
  EXPECT_EQ(CeilSeconds(0ns), 0U);
  EXPECT_EQ(CeilSeconds(1ns), 1U);
  EXPECT_EQ(CeilSeconds(1ms), 1U);
  EXPECT_EQ(CeilSeconds(999ms), 1U);
  EXPECT_EQ(CeilSeconds(1001ms), 2U);
  EXPECT_EQ(CeilSeconds(1500ms), 2U);
  EXPECT_EQ(CeilSeconds(1s), 1U);
  EXPECT_EQ(CeilSeconds(1s + 1ns), 2U);
  EXPECT_EQ(CeilSeconds(kUnknown), std::nullopt);
  EXPECT_EQ(CeilSeconds(kNever), std::nullopt);
}

}  // namespace
}  // namespace sluice::transport
