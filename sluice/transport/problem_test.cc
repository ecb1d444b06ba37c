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
    } else {
      result.claim = 0;
      Claim& claim = outcome_.claims.emplace_back();
      claim.limit = &rule_.limits[0].limit;
      claim.decision.verdict = answer == Answer::kLimited ? Verdict::kLimited : Verdict::kNever;
      claim.decision.retry_after = retry_after;
    }
    return outcome_;
  }
  static std::string Body(const Outcome& outcome) {
    std::string body;
    AppendDenialBody(outcome, &body);
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
  EXPECT_THAT(Body(outcome), HasSubstr("This request needs `api_key`"));
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

}  // namespace
}  // namespace sluice::transport
