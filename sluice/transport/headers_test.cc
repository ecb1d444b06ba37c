#include "sluice/transport/headers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <chrono>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "sluice/base/clock.h"
#include "sluice/limiter/active_rules.h"

namespace sluice::transport {
namespace {

using namespace std::chrono_literals;

Limit Window(std::int64_t limit, Duration window) {
  return *fixed_window::MakeLimit(limit, window);
}
Limit Slots(std::int64_t limit, Duration ttl = 0s) { return *concurrency::MakeLimit(limit, ttl); }

Rule MakeRule(std::string name, SourceKind kind, const Limit& limit) {
  Rule rule;
  rule.name = std::move(name);
  rule.key = {{.kind = kind, .name = "K", .label = "key"}};
  rule.limits = {{.plan = "", .limit = limit}};
  return rule;
}
Rule OfAnn(std::string name, const Limit& limit) {
  return MakeRule(std::move(name), SourceKind::kHeader, limit);
}

// Knows every limit and keeps nothing: the tests say themselves what was decided.
class NoStore final : public Store {
 public:
  absl::StatusOr<LimitId> Register(const Limit& /*limit*/) override { return LimitId{1}; }
  void Release(LimitId /*id*/, Now /*now*/) override {}
  void Apply(std::span<ClaimGroup> /*groups*/, Now /*now*/) noexcept override {}
  void Undo(Claim& /*claim*/, std::uint64_t /*units*/, Now /*now*/) noexcept override {}
  bool Renew(const Claim& /*claim*/, Now /*now*/) noexcept override { return false; }
};

HeaderDialects DialectOf(std::string_view name) {
  return {.draft_11 = name == "draft-11",
          .draft_07 = name == "draft-07",
          .draft_06 = name == "draft-06",
          .envoy = name == "envoy",
          .x_delta = name == "x-delta",
          .x_epoch = name == "x-epoch"};
}

// An outcome as the engine would give it, for one claim of each rule.
class LimitFieldsTest : public ::testing::Test {
 protected:
  void Allow(std::vector<Rule> rules, std::vector<Decision> decisions) {
    auto set = std::make_shared<const RuleSet>(std::move(rules), RuleSetOptions{}, 1);
    outcome_ = Outcome{};
    outcome_.rules = ActiveRules::Make(std::move(set), store_, clock_).value();
    outcome_.now.wall = WallTime(1'700'000'000s);
    const auto& all = outcome_.rules->rules().rules();
    for (std::size_t i = 0; i < all.size(); ++i) {
      outcome_.results.push_back({.rule = &all[i],
                                  .rule_index = static_cast<std::uint32_t>(i),
                                  .claim = static_cast<std::int32_t>(i)});
      outcome_.claims.emplace_back().limit = &all[i].limits[0].limit;
      outcome_.claims.back().decision = decisions[i];
    }
    outcome_.decisive = 0;
  }
  void Deny(std::vector<Rule> rules, std::vector<Decision> decisions, int decisive) {
    Allow(std::move(rules), std::move(decisions));
    outcome_.answer = Answer::kLimited;
    outcome_.decisive = decisive;
    outcome_.retry_after = outcome_.claims[static_cast<std::size_t>(decisive)].decision.retry_after;
  }
  // The lines in the dialects; `said` are lines of the upstream's, "Name: value".
  std::string Lines(HeaderDialects dialects, const std::vector<std::string>& said = {}) {
    RateLimitFields fields(dialects);
    UpstreamLimits upstream;
    std::string lines;
    for (const std::string& line : said) {
      const std::size_t colon = line.find(": ");
      const bool taken = fields.Take(line.substr(0, colon), line.substr(colon + 2), &upstream);
      if (!taken) lines += line + "\r\n";
    }
    fields.Append(outcome_, upstream, &lines);
    return lines;
  }

  NoStore store_;
  ManualClock clock_;
  Outcome outcome_;
};

TEST_F(LimitFieldsTest, EachVectorInEachDialect) {
  namespace json = boost::json;
  std::ifstream file(SLUICE_SOURCE_DIR "/tests/vectors/headers.json");
  const json::value vectors = json::parse(
      std::string(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()));
  int lines = 0;
  for (const json::value& value : vectors.at("headers").as_array()) {
    const json::object& row = value.as_object();
    const std::string id(row.at("id").as_string());
    SCOPED_TRACE(id);
    Decision decision;
    decision.remaining = row.at("remaining").to_number<std::uint64_t>();
    decision.reset_after = Duration(row.at("reset_after_ns").to_number<std::int64_t>());
    const json::value& retry = row.at("retry_after_ns");
    decision.retry_after = retry.is_string() ? kNever : Duration(retry.to_number<std::int64_t>());
    if (decision.retry_after > 0ns) decision.verdict = Verdict::kLimited;
    if (retry.is_string()) decision.verdict = Verdict::kNever;
    Allow({OfAnn(std::string(row.at("policy").as_string()),
                 Window(row.at("limit").to_number<std::int64_t>(),
                        std::chrono::seconds(row.at("window_s").to_number<int>())))},
          {decision});
    outcome_.now.wall = WallTime(std::chrono::seconds(row.at("now_epoch_s").to_number<int>()));
    if (decision.verdict == Verdict::kLimited) outcome_.answer = Answer::kLimited;
    if (decision.verdict == Verdict::kNever) outcome_.answer = Answer::kNeverPasses;
    outcome_.retry_after = decision.retry_after;
    std::optional<std::uint64_t> retry_after;
    for (const auto& [dialect, expected] : row.at("expect").as_object()) {
      if (dialect == "Retry-After") {
        if (!expected.is_null()) retry_after = std::stoull(std::string(expected.as_string()));
        continue;
      }
      SCOPED_TRACE(dialect);
      std::string text;
      for (const auto& [name, field] : expected.as_object()) {
        text += std::string(name) + ": " + std::string(field.as_string()) + "\r\n";
        ++lines;
      }
      EXPECT_EQ(Lines(DialectOf(dialect)), text);
    }
    EXPECT_EQ(RetryAfterSeconds(outcome_), retry_after);
  }
  EXPECT_EQ(lines, 6 * 17);
}

TEST_F(LimitFieldsTest, OlderDialectsSpeakOfTheTightestRuleAndNameAllWindows) {
  Allow({OfAnn("minute", Window(60, 1min)), OfAnn("hour", Window(100, 1h))},
        {{Verdict::kAllowed, 30, 0ns, 30s}, {Verdict::kAllowed, 10, 0ns, 20min}});
  EXPECT_EQ(Lines(DialectOf("draft-07")),
            "RateLimit-Policy: 100;w=3600, 60;w=60\r\n"
            "RateLimit: limit=100, remaining=10, reset=1200\r\n");
  EXPECT_EQ(Lines(DialectOf("envoy")),
            "x-ratelimit-limit: 100, 100;w=3600, 60;w=60\r\n"
            "x-ratelimit-remaining: 10\r\nx-ratelimit-reset: 1200\r\n");
}

TEST_F(LimitFieldsTest, OfSeveralThatDenyTheLongestWaitComesFirst) {
  Deny({OfAnn("open", Window(9, 1min)), OfAnn("second", Window(2, 1s)),
        OfAnn("hour", Window(5, 1h))},
       {{Verdict::kAllowed, 1, 0ns, 1min},
        {Verdict::kLimited, 0, 1s, 1s},
        {Verdict::kLimited, 0, 10min, 10min}},
       2);
  EXPECT_EQ(Lines(DialectOf("draft-11")),
            "RateLimit-Policy: \"hour\";q=5;w=3600, \"second\";q=2;w=1, \"open\";q=9;w=60\r\n"
            "RateLimit: \"hour\";r=0;t=600, \"second\";r=0;t=1, \"open\";r=1;t=60\r\n");
  EXPECT_EQ(Lines(DialectOf("x-delta")),
            "X-RateLimit-Limit: 5\r\nX-RateLimit-Remaining: 0\r\nX-RateLimit-Reset: 600\r\n");
}

TEST_F(LimitFieldsTest, AnEpochIsTheFirstWholeSecondAfterTheWait) {
  Deny({OfAnn("a", Window(1, 1min))}, {{Verdict::kLimited, 0, 1500ms, 1500ms}}, 0);
  const auto reset = [this](Duration since) {
    outcome_.now.wall = WallTime(since);
    const std::string lines = Lines(DialectOf("x-epoch"));
    return lines.substr(lines.find("Reset: ") + 7);
  };
  EXPECT_EQ(reset(1'700'000'000s), "1700000002\r\n");
  EXPECT_EQ(reset(1'700'000'000s + 500ms), "1700000002\r\n");  // not one later for two roundings
  EXPECT_EQ(reset(1'700'000'000s + 500ms + 1ns), "1700000003\r\n");
}

TEST_F(LimitFieldsTest, SlotsAreShownInDraft11Alone) {
  Deny({OfAnn("slots", Slots(2)), OfAnn("a", Window(60, 1min))},
       {{Verdict::kLimited, 0, kUnknown, kUnknown}, {Verdict::kAllowed, 30, 0ns, 30s}}, 0);
  EXPECT_EQ(Lines(DialectOf("draft-11")),
            "RateLimit-Policy: \"slots\";q=2;qu=\"concurrent-requests\", \"a\";q=60;w=60\r\n"
            "RateLimit: \"slots\";r=0, \"a\";r=30;t=30\r\n");
  EXPECT_EQ(Lines(DialectOf("draft-06")),
            "RateLimit-Policy: 60;w=60\r\nRateLimit-Limit: 60\r\n"
            "RateLimit-Remaining: 30\r\nRateLimit-Reset: 30\r\n");
  Deny({OfAnn("slots", Slots(2, 10s))}, {{Verdict::kLimited, 0, 4s, 10s}}, 0);
  for (const auto* older : {"draft-07", "draft-06", "envoy", "x-delta", "x-epoch"}) {
    EXPECT_EQ(Lines(DialectOf(older)), "") << older;
  }
}

TEST_F(LimitFieldsTest, RulesThatNobodyIsToldOfStandInNoDialect) {
  Rule hidden = OfAnn("hidden", Window(9, 1min));
  hidden.hide = true;
  Rule shadow = OfAnn("shadow", Window(9, 1min));
  shadow.mode = RuleMode::kShadow;
  const Rule all = MakeRule("all", SourceKind::kGlobal, Window(9, 1min));
  const Decision decision{Verdict::kLimited, 0, 1s, 1s};
  Deny({hidden, shadow, all}, {decision, decision, decision}, 0);
  for (const auto* any : {"draft-11", "draft-07", "draft-06", "envoy", "x-delta", "x-epoch"}) {
    EXPECT_EQ(Lines(DialectOf(any)), "") << any;
  }
}

TEST_F(LimitFieldsTest, DialectsStandTogetherAndThePolicyIsTheNewestOnes) {
  Allow({OfAnn("a", Window(60, 1min))}, {{Verdict::kAllowed, 30, 0ns, 30s}});
  const std::string numbers =
      "RateLimit-Limit: 60\r\nRateLimit-Remaining: 30\r\nRateLimit-Reset: 30\r\n";
  EXPECT_EQ(Lines({.draft_11 = true, .draft_06 = true, .x_epoch = true}),
            "RateLimit-Policy: \"a\";q=60;w=60\r\nRateLimit: \"a\";r=30;t=30\r\n" + numbers +
                "X-RateLimit-Limit: 60\r\nX-RateLimit-Remaining: 30\r\n"
                "X-RateLimit-Reset: 1700000030\r\n");
  EXPECT_EQ(Lines({.draft_07 = true, .draft_06 = true}),
            "RateLimit-Policy: 60;w=60\r\n"
            "RateLimit: limit=60, remaining=30, reset=30\r\n" +
                numbers);
}

TEST_F(LimitFieldsTest, WhatAnUpstreamSaysNeverContradictsUs) {
  Allow({OfAnn("a", Window(60, 1min))}, {{Verdict::kAllowed, 30, 0ns, 30s}});
  const std::string policy11 = "RateLimit-Policy: \"a\";q=60;w=60";
  const std::string limit11 = "RateLimit: \"a\";r=30;t=30";
  const std::string ours7 =
      "RateLimit-Policy: 60;w=60\r\nRateLimit: limit=60, remaining=30, reset=30\r\n";
  const std::string ours_x =
      "X-RateLimit-Limit: 60\r\nX-RateLimit-Remaining: 30\r\nX-RateLimit-Reset: 30\r\n";
  const std::string epoch_x =
      "X-RateLimit-Limit: 60\r\nX-RateLimit-Remaining: 30\r\nX-RateLimit-Reset: 1700000030\r\n";
  const struct {
    std::string_view what;
    std::string_view dialect;
    std::vector<std::string> said;
    std::string lines;
  } rows[] = {
      {"a list follows ours",
       "draft-11",
       {"ratelimit: \"u\";r=1", "ratelimit: \"v\";r=2"},
       policy11 + "\r\n" + limit11 + ", \"u\";r=1, \"v\";r=2\r\n"},
      {"an older form would spoil the list",
       "draft-11",
       {"RateLimit: limit=9, remaining=1, reset=3", "RateLimit-Policy: 9;w=60"},
       policy11 + "\r\n" + limit11 + "\r\n"},
      {"fields that we do not write are none of our business",
       "draft-11",
       {"X-RateLimit-Remaining: 900"},
       "X-RateLimit-Remaining: 900\r\n" + policy11 + "\r\n" + limit11 + "\r\n"},
      {"more is left there",
       "draft-07",
       {"RateLimit: limit=99, remaining=31, reset=3", "RateLimit-Policy: 99;w=60"},
       ours7},
      {"as much is left there", "draft-07", {"RateLimit: limit=99, remaining=30, reset=3"}, ours7},
      {"less is left there",
       "draft-07",
       {"RateLimit-Policy: 99;w=60", "RateLimit: limit=99, remaining=29, reset=3"},
       "RateLimit-Policy: 99;w=60\r\nRateLimit: limit=99, remaining=29, reset=3\r\n"},
      {"less, in a form that the client does not expect",
       "draft-07",
       {"RateLimit: \"u\";r=1;t=2"},
       ours7},
      {"less, with policies",
       "draft-06",
       {"RateLimit-Policy: 9;w=60", "RateLimit-Limit: 9", "RateLimit-Remaining: 0",
        "RateLimit-Reset: 60"},
       "RateLimit-Policy: 9;w=60\r\nRateLimit-Limit: 9\r\nRateLimit-Remaining: 0\r\n"
       "RateLimit-Reset: 60\r\n"},
      {"less",
       "x-delta",
       {"x-ratelimit-reset: 50", "x-ratelimit-limit: 9", "x-ratelimit-remaining: 2"},
       "X-RateLimit-Limit: 9\r\nX-RateLimit-Remaining: 2\r\nX-RateLimit-Reset: 50\r\n"},
      {"more", "x-delta", {"X-RateLimit-Remaining: 200", "X-RateLimit-Reset: 50"}, ours_x},
      {"an epoch among deltas",
       "x-delta",
       {"X-RateLimit-Remaining: 2", "X-RateLimit-Reset: 1700000050"},
       ours_x},
      {"a delta among epochs",
       "x-epoch",
       {"X-RateLimit-Remaining: 2", "X-RateLimit-Reset: 50"},
       epoch_x},
      {"without a reset nobody knows", "x-epoch", {"X-RateLimit-Remaining: 2"}, epoch_x},
      {"less",
       "x-epoch",
       {"X-RateLimit-Remaining: 2", "X-RateLimit-Reset: 1700000050"},
       "X-RateLimit-Remaining: 2\r\nX-RateLimit-Reset: 1700000050\r\n"},
  };
  for (const auto& row : rows)
    EXPECT_EQ(Lines(DialectOf(row.dialect), row.said), row.lines) << row.what;
}

TEST_F(LimitFieldsTest, WithoutARuleOfOursTheUpstreamsWordPasses) {
  Allow({}, {});
  EXPECT_EQ(Lines({.draft_11 = true, .draft_06 = true, .x_delta = true},
                  {"RateLimit: limit=9, remaining=1, reset=3", "RateLimit-Remaining: 900",
                   "X-RateLimit-Reset: soon"}),
            "RateLimit: limit=9, remaining=1, reset=3\r\nRateLimit-Remaining: 900\r\n"
            "X-RateLimit-Reset: soon\r\n");
  EXPECT_EQ(Lines({}, {"RateLimit: a", "X-RateLimit-Reset: 3"}),
            "RateLimit: a\r\nX-RateLimit-Reset: 3\r\n");
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
