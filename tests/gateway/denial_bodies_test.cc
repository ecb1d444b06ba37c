// The bodies that a thread writes for its denials, against those that are written from scratch.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <string>

#include "sluice/limiter/limiter_fixture.h"
#include "sluice/transport/problem.h"

namespace sluice::transport {
namespace {

class DenialBodiesTest : public LimiterFixture {
 protected:
  static Rule With(Rule rule, void (*change)(Rule&)) {
    change(rule);
    return rule;
  }
  // Rules of every kind of text, with limits of this size.
  static std::vector<Rule> Rules(std::int64_t limit) {
    return {
        MakeRule("plain \"quoted\"", HeaderSource("K"), Bucket(limit, 60s, 2)),
        MakeRule("others' traffic", GlobalSource(), Window(limit, 55s)),
        With(MakeRule("hidden", HeaderSource("K"), Window(limit, 30s)),
             [](Rule& rule) { rule.hide = true; }),
        With(MakeRule("in words", HeaderSource("K"), Window(limit, 45s)),
             [](Rule& rule) { rule.message = "Ask \"sales\"."; }),
        With(MakeRule("later", HeaderSource("K"), Window(limit + 1, 50s)),
             [](Rule& rule) { rule.retry_jitter = 9s; }),
        MakeRule("slots", HeaderSource("K"), Slots(limit)),
        MakeRule("slots that end", HeaderSource("K"), Slots(limit, 40s)),
    };
  }
  static std::string FromScratch(const Outcome& outcome, BodyForm form) {
    std::string body;
    AppendDenialBody(outcome, form, &body);
    return body;
  }
};

TEST_F(DenialBodiesTest, ReadAsIfEachWereWrittenFromScratch) {
  std::mt19937_64 random(11);
  DenialBodies problems(BodyForm::kProblem);
  DenialBodies plain(BodyForm::kJson);
  std::map<std::string, int> denials;  // by the rule that is shown
  for (int reload = 0; reload < 60; ++reload) {
    std::vector<Rule> rules = Rules(1 + reload % 3);
    std::shuffle(rules.begin(), rules.end(), random);
    rules.resize(3);
    Use(std::move(rules));
    for (int i = 0; i < 60; ++i) {
      clock_.Advance(Duration(static_cast<std::int64_t>(random() % 3'000'000'000)));
      if (Ask("ann" + std::to_string(random() % 2)).allowed()) continue;
      ++denials[outcome_.decisive_result()->rule->name];
      std::string body;
      problems.Append(outcome_, &body);
      ASSERT_EQ(body, FromScratch(outcome_, BodyForm::kProblem));
      body.clear();
      plain.Append(outcome_, &body);
      ASSERT_EQ(body, FromScratch(outcome_, BodyForm::kJson));
    }
  }
  for (const Rule& rule : Rules(1)) EXPECT_GT(denials[rule.name], 3) << rule.name;
}

TEST_F(DenialBodiesTest, ACallersOwnPlanIsToldByItsOwnNumbers) {
  Rule rule = MakeRule("api", HeaderSource("K"), Window(1, 60s));
  rule.limits.push_back({.plan = "pro", .limit = Window(2, 60s)});
  RuleSetOptions options;
  options.plans = PlanTable(HeaderSource("K"), "");
  options.plans.Set("eve", "pro");
  Use({rule}, std::move(options));
  DenialBodies problems(BodyForm::kProblem);
  for (int i = 0; i < 5; ++i) {
    for (const char* key : {"ann", "eve"}) {
      if (Ask(key).allowed()) continue;
      std::string body;
      problems.Append(outcome_, &body);
      const std::string says = key == std::string("ann") ? "allows 1 in 60 s" : "allows 2 in 60 s";
      EXPECT_NE(body.find(says), std::string::npos) << key << ": " << body;
    }
  }
}

}  // namespace
}  // namespace sluice::transport
