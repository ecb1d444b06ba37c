#include "sluice/limiter/limiter.h"

#include <gtest/gtest.h>

#include <thread>

#include "sluice/limiter/limiter_fixture.h"

namespace sluice {
namespace {

class LimiterTest : public LimiterFixture {};

PathPattern Pattern(std::string_view text) { return *PathPattern::Compile(text); }

TEST_F(LimiterTest, ARequestThatNoRuleMeetsPasses) {
  Use({});
  EXPECT_EQ(Ask("ann").answer, Answer::kAllowed);
  EXPECT_EQ(outcome_.decisive, -1);
}

TEST_F(LimiterTest, CountsEachKeyByItself) {
  Use({MakeRule("r", HeaderSource("K"), Bucket(10, 1s, 2))});
  const struct {
    Duration wait;
    std::string_view key;
    bool allowed;
    std::uint64_t remaining;
  } steps[] = {
      {0ms, "ann", true, 1},   {0ms, "ann", true, 0},
      {0ms, "ann", false, 0},  {0ms, "bob", true, 1},  // Ann's debt is not Bob's
      {100ms, "ann", true, 0},
  };
  for (const auto& step : steps) {
    SCOPED_TRACE(step.key);
    clock_.Advance(step.wait);
    EXPECT_EQ(Ask(step.key).allowed(), step.allowed);
    EXPECT_EQ(outcome_.claims[0].decision.remaining, step.remaining);
  }
}

TEST_F(LimiterTest, HeadersInAnyCaseAreOneKey) {
  Use({MakeRule("r", HeaderSource("X-Api-Key"), Window(2, 1min))});
  int passed = 0;
  for (const char* name : {"X-API-KEY", "x-api-key", "X-Api-Key", "x-API-key"}) {
    const std::vector<Field> headers = {{name, "a"}};
    limiter_->Check({.method = "GET", .target = "/", .headers = headers}, outcome_);
    passed += outcome_.allowed() ? 1 : 0;
  }
  EXPECT_EQ(passed, 2);
}

TEST_F(LimiterTest, ChargesAllRulesOrNone) {
  // Five requests that both rules meet: three pass, and those denied leave the wide rule alone.
  Rule group = MakeRule("group", HeaderSource("K"), Window(10, 1min));
  Rule special = MakeRule("special", HeaderSource("K"), Window(3, 1min));
  special.match.paths = {Pattern("/special")};
  Use({group, special});
  EXPECT_EQ(Passing("ann", 5, "/special"), 3);
  EXPECT_EQ(Passing("ann", 8, "/other"), 7);
}

TEST_F(LimiterTest, TwoRulesOnOneKeyAndPeriodHaveCountersOfTheirOwn) {
  Rule all = MakeRule("all", HeaderSource("K"), Window(1000, 1min));
  Rule narrow = MakeRule("narrow", HeaderSource("K"), Window(10, 1min));
  Use({all, narrow});
  EXPECT_EQ(Passing("ann", 12), 10);
}

TEST_F(LimiterTest, ADefaultRuleThatExemptsAnothersRequestsIsLeftAlone) {
  const Match product{.methods = {},
                      .paths = {},
                      .hosts = {},
                      .headers = {{.name = "K", .values = {"p"}}},
                      .clients = {}};
  Rule named = MakeRule("named", GlobalSource(), Window(10, 1min));
  named.match = product;
  Rule fallback = MakeRule("default", GlobalSource(), Window(1, 1min));
  fallback.exempt = {product};
  Use({named, fallback});
  EXPECT_EQ(Passing("p", 11), 10);
  EXPECT_EQ(Passing("other", 2), 1);
}

TEST_F(LimiterTest, ShowsTheRuleThatDeniesAndItsNumbers) {
  Use({MakeRule("minute", HeaderSource("K"), Window(60, 1min)),
       MakeRule("hour", HeaderSource("K"), Window(1, 1h))});
  EXPECT_TRUE(Allowed("ann"));
  EXPECT_EQ(outcome_.decisive_result()->rule->name, "hour");  // the smallest share left
  EXPECT_FALSE(Allowed("ann"));
  EXPECT_EQ(outcome_.decisive_result()->rule->name, "hour");
  EXPECT_EQ(outcome_.ClaimOf(*outcome_.decisive_result())->decision.remaining, 0u);
  EXPECT_EQ(outcome_.retry_after, 1h);
}

TEST_F(LimiterTest, WaitsForTheLongestOfAllRulesThatDeny) {
  Use({MakeRule("ten-seconds", HeaderSource("K"), Window(1, 10s)),
       MakeRule("minute", HeaderSource("K"), Window(1, 1min))});
  EXPECT_TRUE(Allowed("ann"));
  EXPECT_EQ(Ask("ann").answer, Answer::kLimited);
  EXPECT_EQ(outcome_.retry_after, 1min);
  EXPECT_EQ(outcome_.decisive_result()->rule->name, "minute");
}

TEST_F(LimiterTest, ACostAboveTheCapacityNeverPassesAndChargesNothing) {
  Rule rule = MakeRule("r", HeaderSource("K"), Bucket(10, 1s, 5));
  rule.cost.fixed = 6;
  Use({rule, MakeRule("other", HeaderSource("K"), Window(100, 1min))});
  EXPECT_EQ(Ask("ann").answer, Answer::kNeverPasses);
  EXPECT_EQ(outcome_.retry_after, kNever);
  EXPECT_EQ(outcome_.claims[1].decision.remaining, 100u);  // nothing was charged
  EXPECT_EQ(outcome_.claims[1].receipt.units, 0u);
}

TEST_F(LimiterTest, AMissingIdentityIsDeniedWithoutChargingAnybody) {
  Use({MakeRule("all", GlobalSource(), Window(2, 1min)),
       MakeRule("keyed", HeaderSource("K"), Window(100, 1min))});
  EXPECT_EQ(Ask("").answer, Answer::kMissingIdentity);
  EXPECT_EQ(outcome_.decisive_result()->missing->label, "header.K");
  EXPECT_EQ(outcome_.retry_after, 0s);
  EXPECT_EQ(Passing("ann", 3), 2);
}

TEST_F(LimiterTest, AShadowRuleNeverDenies) {
  Rule shadow = MakeRule("shadow", HeaderSource("K"), Window(5, 1min));
  shadow.mode = RuleMode::kShadow;
  Rule keyless = MakeRule("keyless", HeaderSource("Other"), Window(5, 1min));
  keyless.mode = RuleMode::kShadow;
  Use({shadow, keyless});
  int violated = 0;
  for (int i = 0; i < 20; ++i) {
    EXPECT_TRUE(Allowed("ann"));
    violated += outcome_.Violated(outcome_.results[0]) ? 1 : 0;
  }
  EXPECT_EQ(violated, 15);
}

TEST_F(LimiterTest, AnExemptRequestMeetsOnlyRulesThatDeny) {
  Rule ban = MakeRule("ban", GlobalSource(), Bucket(1, 1s, 1));
  ban.match.paths = {*PathPattern::Compile("/closed")};
  ban.deny = true;
  ban.limits.clear();
  Use({MakeRule("all", GlobalSource(), Window(1, 1min)),
       MakeRule("keyed", HeaderSource("K"), Window(1, 1min)), ban});
  const auto ask_exempt = [this](std::string_view target) {
    limiter_->Check({.method = "OPTIONS", .target = target, .exempt = true}, outcome_);
    return outcome_.answer;
  };
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(ask_exempt("/"), Answer::kAllowed);  // although no K is given
    EXPECT_TRUE(outcome_.results.empty());
    EXPECT_TRUE(outcome_.claims.empty());
  }
  EXPECT_EQ(ask_exempt("/closed"), Answer::kDenied);
  EXPECT_TRUE(Allowed("ann"));
}

TEST_F(LimiterTest, ADenyRuleDeniesAndNothingIsCharged) {
  Rule ban;
  ban.name = "ban";
  ban.deny = true;
  ban.match.paths = {Pattern("/secret")};
  Use({MakeRule("r", HeaderSource("K"), Window(1, 1min)), ban});
  EXPECT_EQ(Ask("ann", "/secret").answer, Answer::kDenied);
  EXPECT_TRUE(Allowed("ann", "/open"));
}

TEST_F(LimiterTest, DeniedRequestsAreFreeUnlessTheRuleChargesThem) {
  // Limit 5; 8 requests at once, then what a raised limit of 10 still lets through: all that was
  // not used, less the three denials where the rule charges them.
  const auto passing_after_a_raise = [this](bool charge_denied) {
    const char* name = charge_denied ? "charged" : "free";
    Rule rule = MakeRule(name, HeaderSource("K"), Window(5, 1min));
    rule.charge_denied = charge_denied;
    Use({rule});
    EXPECT_EQ(Passing("ann", 8), 5);
    rule.limits[0].limit = Window(10, 1min);
    Use({rule});
    return Passing("ann", 8);
  };
  EXPECT_EQ(passing_after_a_raise(false), 5);
  EXPECT_EQ(passing_after_a_raise(true), 2);
}

TEST_F(LimiterTest, AChargingRuleKeepsAClientOutWhoNeverPauses) {
  Rule rule = MakeRule("r", HeaderSource("K"), Bucket(1, 1s, 1));
  rule.charge_denied = true;
  Use({rule});
  EXPECT_TRUE(Allowed("ann"));
  for (int i = 0; i < 10; ++i) {
    clock_.Advance(900ms);
    EXPECT_FALSE(Allowed("ann"));
  }
  clock_.Advance(3s);
  EXPECT_TRUE(Allowed("ann"));
}

TEST_F(LimiterTest, ALookChargesNothing) {
  Use({MakeRule("r", HeaderSource("K"), Window(1, 1min))});
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(Ask("ann", "/", "GET", true).allowed());
  EXPECT_TRUE(Allowed("ann"));
  EXPECT_FALSE(Ask("ann", "/", "GET", true).allowed());
}

TEST_F(LimiterTest, UndoGivesEverythingBackOnce) {
  Use({MakeRule("a", HeaderSource("K"), Window(1, 1min)),
       MakeRule("b", HeaderSource("K"), Bucket(1, 1min, 1))});
  EXPECT_TRUE(Allowed("ann"));
  limiter_->Undo(outcome_);
  limiter_->Undo(outcome_);
  EXPECT_EQ(Passing("ann", 3), 1);
}

TEST_F(LimiterTest, FinishReturnsSlotsAndNothingElse) {
  Use({MakeRule("slots", HeaderSource("K"), Slots(1)),
       MakeRule("minute", HeaderSource("K"), Window(2, 1min))});
  Outcome first = Ask("ann");
  EXPECT_TRUE(first.allowed());
  EXPECT_EQ(Ask("ann").answer, Answer::kLimited);
  EXPECT_EQ(outcome_.retry_after, kUnknown);
  limiter_->Finish(first);
  limiter_->Finish(first);
  Outcome second = Ask("ann");
  EXPECT_TRUE(second.allowed());
  EXPECT_FALSE(Allowed("ann"));
  limiter_->Finish(second);
  EXPECT_EQ(Ask("ann").decisive_result()->rule->name, "minute");
}

TEST_F(LimiterTest, ADeniedRequestHoldsNoSlot) {
  // Two in flight by key, ten over all: fifty refusals leave nothing behind in the wide rule.
  Use({MakeRule("narrow", HeaderSource("K"), Slots(2)),
       MakeRule("wide", GlobalSource(), Slots(10))});
  Outcome held[2] = {Ask("ann"), Ask("ann")};
  for (int i = 0; i < 50; ++i) EXPECT_FALSE(Allowed("ann"));
  for (Outcome& outcome : held) limiter_->Finish(outcome);
  for (int i = 0; i < 10; ++i) {
    EXPECT_TRUE(Allowed("key" + std::to_string(i))) << i;
  }
}

TEST_F(LimiterTest, SequentialRequestsNeverRunOutOfSlots) {
  Use({MakeRule("global", GlobalSource(), Slots(100)),
       MakeRule("route", HeaderSource("K"), Slots(100))});
  for (int i = 0; i < 400; ++i) {
    ASSERT_TRUE(Allowed("ann")) << i;
    limiter_->Finish(outcome_);
  }
}

TEST_F(LimiterTest, RenewKeepsASlotAndTellsWhenItIsOver) {
  Use({MakeRule("slots", HeaderSource("K"), Slots(1, 10s))});
  Outcome held = Ask("ann");
  clock_.Advance(9s);
  EXPECT_TRUE(limiter_->Renew(held));
  clock_.Advance(9s);
  EXPECT_FALSE(Allowed("ann"));
  clock_.Advance(1s);
  EXPECT_FALSE(limiter_->Renew(held));
  Outcome next = Ask("ann");
  EXPECT_TRUE(next.allowed());
  limiter_->Finish(held);  // late: must not free the other's slot
  EXPECT_FALSE(Allowed("ann"));
}

TEST_F(LimiterTest, ALeakyBucketDelaysAndTheLongestDelayCounts) {
  const Limit queue = *leaky_bucket::MakeLimit({.count = 10, .period = 1s}, 3, 1h);
  Use({MakeRule("queue", HeaderSource("K"), queue),
       MakeRule("other", HeaderSource("K"), Window(100, 1min))});
  for (const Duration delay : {0ms, 100ms, 200ms, 300ms}) {
    Ask("ann");
    EXPECT_EQ(outcome_.answer, delay == 0ms ? Answer::kAllowed : Answer::kDelayed);
    EXPECT_EQ(outcome_.delay, delay);
  }
  EXPECT_EQ(Ask("ann").answer, Answer::kLimited);
  EXPECT_EQ(outcome_.retry_after, 100ms);
  EXPECT_EQ(outcome_.delay, 0ms);
}

TEST_F(LimiterTest, ABatchDecidesInOrderLikeSingleCalls) {
  Use({MakeRule("r", HeaderSource("K"), Bucket(1, 1h, 3))});
  const std::vector<Field> ann = {{"K", "ann"}};
  const std::vector<Field> bob = {{"K", "bob"}};
  std::vector<LimitRequest> requests;
  for (int i = 0; i < 100; ++i) {
    requests.push_back({.method = "GET", .target = "/", .headers = i % 2 == 0 ? ann : bob});
  }
  std::vector<Outcome> outcomes(requests.size());
  limiter_->Check(requests, outcomes);
  for (int i = 0; i < 100; ++i)
    EXPECT_EQ(outcomes[static_cast<std::size_t>(i)].allowed(), i < 6) << i;
}

TEST_F(LimiterTest, ReadsTheClockOnceForADecision) {
  class TwoFacedClock final : public Clock {
   public:
    Now Read() const override {
      const Duration at = reads_++ == 0 ? 59'999ms : 60'001ms;
      return {Time{1h + at}, WallTime{24h + at}};
    }
    mutable int reads_ = 0;
  };
  const TwoFacedClock clock;
  auto set = std::make_shared<const RuleSet>(
      std::vector{MakeRule("a", HeaderSource("K"), Window(1, 1min)),
                  MakeRule("b", HeaderSource("K"), Window(1, 1min))},
      RuleSetOptions{}, 1);
  auto active = ActiveRules::Make(std::move(set), *store_, clock_);
  Limiter limiter({.store = *store_, .hash_key = store_->hash_key(), .clock = clock}, *active);
  const std::vector<Field> headers = {{"K", "ann"}};
  limiter.Check({.method = "GET", .target = "/", .headers = headers}, outcome_);
  EXPECT_TRUE(outcome_.allowed());
  EXPECT_EQ(clock.reads_, 1);
  EXPECT_EQ(outcome_.claims[0].decision.reset_after, 1ms);
  EXPECT_EQ(outcome_.claims[1].decision.reset_after, 1ms);
}

}  // namespace
}  // namespace sluice
