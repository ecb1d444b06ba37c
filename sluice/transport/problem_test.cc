#include "sluice/transport/problem.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>

namespace sluice::transport {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using ::testing::Not;

// An outcome that one rule denies.
class DenialTest : public ::testing::Test {
 protected:
  DenialTest() {
    rule_.name = "api";
    rule_.key = {{.kind = SourceKind::kHeader, .name = "K", .label = "api_key"}};
    rule_.limits = {{.plan = "", .limit = *fixed_window::MakeLimit(100, 60s)}};
  }

  const Outcome& Denied(Answer answer, Duration retry_after) {
    outcome_ = Outcome{};
    outcome_.answer = answer;
    outcome_.decisive = 0;
    outcome_.retry_after = retry_after;
    RuleResult& result = outcome_.results.emplace_back(RuleResult{.rule = &rule_});
    if (answer == Answer::kMissingIdentity) {
      result.match = MatchOutcome::kMissingKey;
      result.missing = &rule_.key[0];
    } else if (answer == Answer::kDenied) {
      result.match = MatchOutcome::kDenies;
    } else if (answer == Answer::kUnavailable) {
      result.answered_by = AnsweredBy::kClosed;
    } else {
      result.claim = 0;
      Claim& claim = outcome_.claims.emplace_back();
      claim.limit = &rule_.limits[0].limit;
      claim.decision.verdict = answer == Answer::kLimited ? Verdict::kLimited : Verdict::kNever;
      claim.decision.retry_after = retry_after;
    }
    return outcome_;
  }
  static std::string Body(const Outcome& outcome, BodyForm form = BodyForm::kProblem) {
    std::string body;
    AppendDenialBody(outcome, form, &body);
    return body;
  }
  static std::string Fields(const Outcome& outcome) {
    std::string fields;
    AppendDenialFields(outcome, &fields);
    return fields;
  }

  Rule rule_;
  Outcome outcome_;
};

TEST_F(DenialTest, ARuleThatFailsClosedIsA429OfAKindOfItsOwn) {
  const Outcome& outcome = Denied(Answer::kUnavailable, kRetryUnavailable);
  EXPECT_EQ(DenialStatus(outcome), 429);
  EXPECT_THAT(Fields(outcome), HasSubstr("Retry-After: 1\r\n"));
  EXPECT_EQ(
      Body(outcome),
      "{\"type\":\"https://iana.org/assignments/http-problem-types#temporary-reduced-capacity\","
      "\"title\":\"Temporary reduced capacity\",\"status\":429,"
      "\"detail\":\"Requests can't be counted just now. Try again in 1 s.\","
      "\"retry_after_ms\":1000}\n");
  EXPECT_THAT(Body(outcome, BodyForm::kJson),
              HasSubstr("\"error\":\"temporary_reduced_capacity\""));
}

TEST_F(DenialTest, ALimitIsA429ThatSaysWhenToComeBack) {
  const Outcome& outcome = Denied(Answer::kLimited, 2400ms + 1ns);
  EXPECT_EQ(DenialStatus(outcome), 429);
  EXPECT_EQ(Body(outcome),
            "{\"type\":\"https://iana.org/assignments/http-problem-types#quota-exceeded\","
            "\"title\":\"Quota exceeded\",\"status\":429,"
            "\"detail\":\"Rule \\\"api\\\" allows 100 in 60 s. Try again in 3 s.\","
            "\"retry_after_ms\":2401,\"violated-policies\":[\"api\"]}\n");
  EXPECT_EQ(Fields(outcome), "Retry-After: 3\r\nCache-Control: no-store\r\n");
}

TEST_F(DenialTest, AWaitThatNobodyKnowsIsNotPromised) {
  const Outcome& outcome = Denied(Answer::kLimited, kUnknown);
  EXPECT_THAT(Body(outcome), Not(HasSubstr("retry_after_ms")));
  EXPECT_EQ(Fields(outcome), "Cache-Control: no-store\r\n");
}

TEST_F(DenialTest, AMissingIdentityIsA401ThatNamesIt) {
  const Outcome& outcome = Denied(Answer::kMissingIdentity, 0s);
  EXPECT_EQ(DenialStatus(outcome), 401);
  EXPECT_THAT(Body(outcome), HasSubstr("This request needs the header `K`"));
  EXPECT_THAT(Fields(outcome), HasSubstr("WWW-Authenticate: Sluice identity=\"api_key\"\r\n"));
  EXPECT_THAT(Fields(outcome), Not(HasSubstr("Retry-After")));
}

TEST_F(DenialTest, ADenyRuleIsA403AndACostAboveTheCeilingA422) {
  EXPECT_EQ(DenialStatus(Denied(Answer::kDenied, 0s)), 403);
  const Outcome& outcome = Denied(Answer::kNeverPasses, kNever);
  EXPECT_EQ(DenialStatus(outcome), 422);
  EXPECT_THAT(Body(outcome), HasSubstr("\"max_cost\":100"));
  EXPECT_EQ(Fields(outcome), "Cache-Control: no-store\r\n");
}

TEST_F(DenialTest, ARulesOwnMessageIsToldAndEscaped) {
  rule_.message = "Slow down,\n\"friend\"";
  EXPECT_THAT(Body(Denied(Answer::kLimited, 1s)),
              HasSubstr("\"detail\":\"Slow down,\\u000a\\\"friend\\\"\""));
}

TEST_F(DenialTest, OthersTrafficIsToldByNameAndHiddenRulesNotAtAll) {
  rule_.key = {{.kind = SourceKind::kGlobal, .label = "global"}};
  std::string body = Body(Denied(Answer::kLimited, 1s));
  EXPECT_THAT(body, HasSubstr("api"));
  EXPECT_THAT(body, Not(HasSubstr("allows")));
  rule_.hide = true;
  body = Body(Denied(Answer::kLimited, 1s));
  EXPECT_THAT(body, Not(HasSubstr("api")));
  EXPECT_THAT(body, HasSubstr("Try again in 1 s."));
}

TEST_F(DenialTest, PlainJsonSaysTheSameInFewerWords) {
  constexpr BodyForm kJson = BodyForm::kJson;
  EXPECT_EQ(ContentTypeOf(kJson), "application/json");
  EXPECT_EQ(ContentTypeOf(BodyForm::kProblem), "application/problem+json");
  EXPECT_EQ(Body(Denied(Answer::kLimited, 2400ms + 1ns), kJson),
            "{\"error\":\"rate_limited\","
            "\"message\":\"Rule \\\"api\\\" allows 100 in 60 s. Try again in 3 s.\","
            "\"rule\":\"api\",\"retry_after_ms\":2401}\n");
  EXPECT_EQ(Body(Denied(Answer::kMissingIdentity, 0s), kJson),
            "{\"error\":\"missing_identity\","
            "\"message\":\"This request needs the header `K`: send it exactly once.\","
            "\"rule\":\"api\"}\n");
  EXPECT_THAT(Body(Denied(Answer::kDenied, 0s), kJson), HasSubstr("{\"error\":\"denied\","));
  const std::string never = Body(Denied(Answer::kNeverPasses, kNever), kJson);
  EXPECT_THAT(never, HasSubstr("{\"error\":\"cost_above_limit\","));
  EXPECT_THAT(never, HasSubstr(",\"max_cost\":100}"));
}

TEST_F(DenialTest, AMissingIdentityIsNamedAsTheClientSendsIt) {
  const struct {
    Source source;
    std::string needs;
  } rows[] = {
      {{.kind = SourceKind::kHeader, .name = "X-Key", .label = "api_key"}, "the header `X-Key`"},
      {{.kind = SourceKind::kCookie, .name = "sid", .label = "session"}, "the cookie `sid`"},
      {{.kind = SourceKind::kQuery, .name = "k", .label = "query.k"}, "the query parameter `k`"},
      {{.kind = SourceKind::kAttribute, .name = "team", .label = "team"}, "`team`"},
      {{.kind = SourceKind::kHost, .name = "", .label = "host"}, "`host`"},
  };
  for (const auto& row : rows) {
    rule_.key = {row.source};
    EXPECT_THAT(Body(Denied(Answer::kMissingIdentity, 0s)),
                HasSubstr("This request needs " + row.needs + ": send it exactly once."));
    EXPECT_THAT(Fields(outcome_), HasSubstr("identity=\"" + row.source.label + "\""));
  }
}

TEST_F(DenialTest, PlainJsonKeepsWhatIsHiddenAndTellsARulesOwnMessage) {
  rule_.message = "Ask \"sales\" for more.";
  EXPECT_EQ(Body(Denied(Answer::kLimited, kUnknown), BodyForm::kJson),
            "{\"error\":\"rate_limited\",\"message\":\"Ask \\\"sales\\\" for more.\","
            "\"rule\":\"api\"}\n");
  rule_.hide = true;
  rule_.message = "";
  EXPECT_EQ(Body(Denied(Answer::kLimited, 1s), BodyForm::kJson),
            "{\"error\":\"rate_limited\",\"message\":\"Too many requests. Try again in 1 s.\","
            "\"retry_after_ms\":1000}\n");
}

}  // namespace
}  // namespace sluice::transport
