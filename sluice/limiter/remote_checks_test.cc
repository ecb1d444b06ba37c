#include "sluice/limiter/remote_checks.h"

#include <gtest/gtest.h>

#include "sluice/limiter/remote_fixture.h"

namespace sluice {
namespace {

TEST_F(RemoteChecksTest, TheAnswerComesWhenTheStoresDoes) {
  Use({Shared("r", Bucket(1, 1min, 2))});
  EXPECT_FALSE(Begin());
  EXPECT_EQ(answered_, 0);
  shared_->Answer(clock_.Read());
  EXPECT_EQ(answered_, 1);
  EXPECT_TRUE(outcome_.allowed());
  EXPECT_EQ(outcome_.decisive_result()->answered_by, AnsweredBy::kStore);
  EXPECT_EQ(outcome_.ClaimOf(outcome_.results[0])->decision.remaining, 1u);
  EXPECT_TRUE(AskShared().allowed());
  EXPECT_EQ(AskShared().answer, Answer::kLimited);
  EXPECT_EQ(outcome_.retry_after, 1min);
}

TEST_F(RemoteChecksTest, TwoNodesShareOneLimit) {
  Use({Shared("r", Bucket(1, 1min, 3))});
  SharedStore other(*counters_, clock_.Read());
  Limiter second({.store = *store_,
                  .hash_key = store_->hash_key(),
                  .clock = clock_,
                  .observer = nullptr,
                  .remote = &other},
                 limiter_->rules());
  Outcome outcome;
  EXPECT_TRUE(AskShared().allowed());
  for (const bool allowed : {true, true, false}) {
    EXPECT_FALSE(
        second.Check({.method = "GET", .target = "/", .headers = headers_}, outcome, [] {}));
    other.Answer(clock_.Read());
    EXPECT_EQ(outcome.allowed(), allowed);
  }
  EXPECT_FALSE(AskShared().allowed());
}

TEST_F(RemoteChecksTest, RulesThatAllCountInMemoryAnswerAtOnce) {
  Use({OfNode("r", Bucket(1, 1min, 1))});
  EXPECT_TRUE(Begin());
  EXPECT_TRUE(outcome_.allowed());
  EXPECT_TRUE(Begin());
  EXPECT_EQ(outcome_.answer, Answer::kLimited);
  EXPECT_EQ(answered_, 0);
}

TEST_F(RemoteChecksTest, ADenialInMemorySparesTheSharedStore) {
  Use({Shared("shared", Bucket(1, 1min, 9)), OfNode("node", Bucket(1, 1min, 1))});
  EXPECT_TRUE(AskShared().allowed());
  EXPECT_EQ(shared_->asked(), 1u);
  EXPECT_TRUE(Begin());
  EXPECT_EQ(outcome_.answer, Answer::kLimited);
  EXPECT_EQ(shared_->asked(), 1u);
  EXPECT_EQ(outcome_.results[0].answered_by, AnsweredBy::kNobody);
  EXPECT_FALSE(outcome_.Violated(outcome_.results[0]));
  EXPECT_EQ(outcome_.decisive, 1);
}

TEST_F(RemoteChecksTest, ARuleThatChargesDenialsIsAskedThoughMemoryDenied) {
  Rule charging = Shared("shared", Bucket(1, 1min, 9));
  charging.charge_denied = true;
  Use({charging, Shared("other", Bucket(1, 1min, 9)), OfNode("node", Bucket(1, 1min, 1))});
  EXPECT_TRUE(AskShared().allowed());
  EXPECT_EQ(AskShared().answer, Answer::kLimited);
  EXPECT_EQ(outcome_.ClaimOf(outcome_.results[0])->decision.remaining, 7u);
  EXPECT_EQ(outcome_.results[1].claim, -1);
  EXPECT_EQ(AskShared("ann", /*look=*/true).ClaimOf(outcome_.results[1])->decision.remaining, 8u);
}

TEST_F(RemoteChecksTest, ADenialOfTheSharedStoreGivesBackWhatMemoryCharged) {
  Rule charging = OfNode("charging", Bucket(1, 1min, 9));
  charging.charge_denied = true;
  Rule shadow = OfNode("shadow", Bucket(1, 1min, 9));
  shadow.mode = RuleMode::kShadow;
  Use({Shared("shared", Bucket(1, 1min, 1)), OfNode("node", Bucket(1, 1min, 9)), charging, shadow});
  EXPECT_TRUE(AskShared().allowed());
  EXPECT_EQ(AskShared().answer, Answer::kLimited);
  EXPECT_EQ(RemainingInMemory("node"), 8u);  // as is told with the denial, too
  EXPECT_EQ(RemainingInMemory("shadow"), 8u);
  EXPECT_EQ(RemainingInMemory("charging"), 7u);
  EXPECT_EQ(AskShared().answer, Answer::kLimited);
  EXPECT_EQ(RemainingInMemory("node"), 8u);
}

TEST_F(RemoteChecksTest, ARefusedRequestIsNotAskedFor) {
  Rule deny = MakeRule("deny", GlobalSource(), Bucket(1, 1s, 1));
  deny.deny = true;
  deny.limits.clear();
  Use({Shared("shared", Bucket(1, 1min, 9)), deny});
  EXPECT_TRUE(Begin());
  EXPECT_EQ(outcome_.answer, Answer::kDenied);
  EXPECT_EQ(shared_->asked(), 0u);
}

TEST_F(RemoteChecksTest, AnOpenRulePassesWhileTheStoreIsSilent) {
  Use({Shared("open", Bucket(1, 1min, 1), OnStoreFailure::kOpen)});
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(AskWithoutAnswer().answer, Answer::kAllowed);
    EXPECT_EQ(outcome_.results[0].answered_by, AnsweredBy::kOpen);
    EXPECT_EQ(outcome_.decisive, -1);
  }
  EXPECT_TRUE(AskShared().allowed());  // nothing was charged meanwhile
}

TEST_F(RemoteChecksTest, AClosedRuleDeniesWhileTheStoreIsSilent) {
  Use({Shared("closed", Bucket(1, 1min, 5), OnStoreFailure::kClosed),
       OfNode("node", Bucket(1, 1min, 5))});
  EXPECT_EQ(AskWithoutAnswer().answer, Answer::kUnavailable);
  EXPECT_FALSE(outcome_.allowed());
  EXPECT_EQ(outcome_.retry_after, 1s);
  EXPECT_EQ(outcome_.decisive, 0);
  EXPECT_TRUE(outcome_.Violated(outcome_.results[0]));
  EXPECT_EQ(RemainingInMemory("node"), 5u);  // came back
  EXPECT_TRUE(AskShared().allowed());
}

TEST_F(RemoteChecksTest, AClosedShadowRulePasses) {
  Rule rule = Shared("closed", Bucket(1, 1min, 5), OnStoreFailure::kClosed);
  rule.mode = RuleMode::kShadow;
  Use({rule});
  EXPECT_EQ(AskWithoutAnswer().answer, Answer::kAllowed);
  EXPECT_FALSE(outcome_.Violated(outcome_.results[0]));
}

TEST_F(RemoteChecksTest, ALocalRuleCountsInMemoryWhileTheStoreIsSilent) {
  Rule half = Shared("half", Bucket(4, 1min, 4));
  half.limits[0].local = Bucket(2, 1min, 2);
  Use({half});
  EXPECT_TRUE(AskWithoutAnswer().allowed());
  EXPECT_EQ(outcome_.results[0].answered_by, AnsweredBy::kLocal);
  EXPECT_TRUE(AskWithoutAnswer().allowed());
  EXPECT_EQ(AskWithoutAnswer().answer, Answer::kLimited);
  EXPECT_EQ(outcome_.retry_after, 30s);
  EXPECT_EQ(AskShared().ClaimOf(outcome_.results[0])->decision.remaining, 3u);
}

TEST_F(RemoteChecksTest, LocalRulesThatDenyGiveBackWhatWasChargedBefore) {
  Use({Shared("a", Bucket(1, 1min, 1)), Shared("b", Bucket(1, 1min, 9)),
       OfNode("node", Bucket(1, 1min, 9))});
  EXPECT_TRUE(AskWithoutAnswer().allowed());
  EXPECT_EQ(AskWithoutAnswer().answer, Answer::kLimited);
  EXPECT_EQ(RemainingInMemory("node"), 8u);
  EXPECT_EQ(RemainingInMemory("b"), 8u);
}

TEST_F(RemoteChecksTest, AClosedRuleKeepsLocalOnesFromCharging) {
  Use({Shared("local", Bucket(1, 1min, 9)),
       Shared("closed", Bucket(1, 1min, 9), OnStoreFailure::kClosed)});
  for (int i = 0; i < 20; ++i) EXPECT_EQ(AskWithoutAnswer().answer, Answer::kUnavailable);
  EXPECT_EQ(RemainingInMemory("local"), 9u);
}

TEST_F(RemoteChecksTest, ARealDenialIsToldRatherThanThatTheStoreIsSilent) {
  Use({Shared("local", Bucket(1, 1min, 1)),
       Shared("open", Bucket(1, 1min, 1), OnStoreFailure::kOpen)});
  EXPECT_TRUE(AskWithoutAnswer().allowed());
  EXPECT_EQ(AskWithoutAnswer().answer, Answer::kLimited);
  EXPECT_EQ(outcome_.decisive_result()->rule->name, "local");
}

TEST_F(RemoteChecksTest, AStoreThatRefusesAnswersByFailureModesAtOnce) {
  Use({Shared("local", Bucket(1, 1min, 1))});
  shared_->Refuse(absl::UnavailableError("gone"));
  EXPECT_TRUE(Begin());
  EXPECT_TRUE(outcome_.allowed());
  EXPECT_TRUE(Begin());
  EXPECT_EQ(outcome_.answer, Answer::kLimited);
  EXPECT_EQ(answered_, 0);
}

TEST_F(RemoteChecksTest, ADoorThatDoesNotWaitGetsTheFailureModes) {
  Use({Shared("closed", Bucket(1, 1min, 1), OnStoreFailure::kClosed)});
  Begin();
  shared_->Fail(absl::CancelledError(""));
  limiter_->Check({.method = "GET", .target = "/", .headers = headers_}, outcome_);
  EXPECT_EQ(outcome_.answer, Answer::kUnavailable);
}

// Both nodes hear a denial before either block has begun; the other's comes first for one of two
// rules, and does not keep the second from beginning.
TEST_F(RemoteChecksTest, ABlockBeginsThoughAnotherNodeWasFasterWithAnother) {
  Rule one = Shared("one", Bucket(1, 1s, 1));
  one.block_for = 1h;
  Rule two = MakeRule("two", HeaderSource("Other"), Bucket(1, 1s, 1));
  two.block_for = 1h;
  Use({one, two});
  SharedStore other(*counters_, clock_.Read());
  Limiter second({.store = *store_,
                  .hash_key = store_->hash_key(),
                  .clock = clock_,
                  .observer = nullptr,
                  .remote = &other},
                 limiter_->rules());
  const std::vector<Field> ann = {{"K", "ann"}, {"Other", "x"}};
  const std::vector<Field> also_ann = {{"K", "ann"}, {"Other", "y"}};
  const std::vector<Field> bob = {{"K", "bob"}, {"Other", "y"}};
  const auto ask = [](Limiter& limiter, SharedStore& store, const std::vector<Field>& headers,
                      Outcome& outcome) {
    (void)limiter.Check({.method = "GET", .target = "/", .headers = headers}, outcome, [] {});
    return [&store, this_clock = ManualClock()] { store.Answer(this_clock.Read()); };
  };
  Outcome first_answer;
  Outcome second_answer;
  ask(*limiter_, *shared_, ann, first_answer)();
  ask(*limiter_, *shared_, bob, first_answer)();
  const auto answer_one = ask(*limiter_, *shared_, ann, first_answer);
  const auto answer_two = ask(second, other, also_ann, second_answer);
  answer_one();  // both are denied ...
  answer_two();
  answer_one();  // ... then ann's block begins here
  answer_two();  // and that of y there
  EXPECT_EQ(first_answer.retry_after, 1h);
  EXPECT_EQ(second_answer.retry_after, 1h);
  clock_.Advance(10min);
  shared_->SetNow(clock_.Read());
  const std::vector<Field> eve = {{"K", "eve"}, {"Other", "y"}};
  (void)limiter_->Check({.method = "GET", .target = "/", .headers = eve}, first_answer, [] {});
  shared_->Answer(clock_.Read());
  EXPECT_EQ(first_answer.answer, Answer::kLimited);
  EXPECT_EQ(first_answer.retry_after, 50min);
}

TEST_F(RemoteChecksTest, UndoGivesBackInBothStoresOnce) {
  Use({Shared("shared", Bucket(1, 1min, 5)), OfNode("node", Bucket(1, 1min, 5))});
  EXPECT_TRUE(AskShared().allowed());
  limiter_->Undo(outcome_);
  limiter_->Undo(outcome_);
  EXPECT_EQ(shared_->undone(), 1u);
  AskShared("ann", /*look=*/true);
  EXPECT_EQ(RemainingInMemory("shared"), 5u);
  EXPECT_EQ(RemainingInMemory("node"), 5u);
}

TEST_F(RemoteChecksTest, SlotsOfTheSharedStoreAreRenewedAndComeBackWhenTheRequestEnds) {
  Use({Shared("slots", Slots(1, 10s)), Shared("bucket", Bucket(1, 1min, 5))});
  EXPECT_TRUE(AskShared().allowed());
  Outcome held = outcome_;
  EXPECT_EQ(AskShared().answer, Answer::kLimited);
  EXPECT_TRUE(limiter_->Renew(held));
  EXPECT_EQ(shared_->renewed(), 1u);
  limiter_->Finish(held);
  limiter_->Finish(held);
  EXPECT_EQ(shared_->undone(), 1u);  // the bucket stays charged
  EXPECT_TRUE(AskShared().allowed());
}

TEST_F(RemoteChecksTest, AReloadMeanwhileLeavesTheRequestItsRules) {
  Use({Shared("old", Bucket(1, 1min, 5), OnStoreFailure::kClosed)});
  EXPECT_FALSE(Begin());
  auto set = std::make_shared<const RuleSet>(std::vector<Rule>{OfNode("new", Bucket(1, 1min, 5))},
                                             RuleSetOptions{}, ++generation_);
  limiter_->Replace(*ActiveRules::Make(std::move(set), *store_, clock_, shared_.get()));
  shared_->Fail(absl::UnavailableError("lost"));
  EXPECT_EQ(outcome_.answer, Answer::kUnavailable);
  EXPECT_EQ(outcome_.results[0].rule->name, "old");
  EXPECT_TRUE(Begin());
  EXPECT_EQ(outcome_.results[0].rule->name, "new");
}

TEST_F(RemoteChecksTest, WhoeverIsCalledMayAskAnew) {
  Use({Shared("r", Bucket(1, 1min, 5))});
  headers_ = {{"K", "ann"}};
  int answers = 0;
  const LimitRequest request{.method = "GET", .target = "/", .headers = headers_};
  ASSERT_FALSE(limiter_->Check(request, outcome_, [&] {
    ++answers;
    EXPECT_FALSE(limiter_->Check(request, outcome_, [&] { ++answers; }));
  }));
  shared_->Answer(clock_.Read());
  EXPECT_EQ(answers, 1);
  shared_->Answer(clock_.Read());
  EXPECT_EQ(answers, 2);
  EXPECT_EQ(RemainingInMemory("r"), 3u);
}

}  // namespace
}  // namespace sluice
