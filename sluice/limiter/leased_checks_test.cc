// Rules that lease, through the engine; leases themselves: store/lease/leases_test.cc.
#include <gtest/gtest.h>

#include "sluice/limiter/remote_fixture.h"
#include "tests/allocations/counting_new.h"

namespace sluice {
namespace {

class LeasedChecksTest : public RemoteChecksTest {
 protected:
  static Rule Leased(std::string name, const Limit& limit) {
    Rule rule = Shared(std::move(name), limit);
    rule.lease = RuleLease{};
    return rule;
  }
  // Until something is held.
  void WarmUp(int requests = 10) {
    for (int i = 0; i < requests; ++i) {
      clock_.Advance(1us);
      EXPECT_TRUE(AskShared().allowed());
      if (shared_->waiting() > 0) shared_->Answer(clock_.Read());  // a lease was asked for
    }
    ASSERT_GT(Held(), 0u);
  }
  [[nodiscard]] std::uint64_t Held() const {
    const LeaseCounters& counters = leases_->counters();
    return counters.units.value() - counters.taken.value() + counters.put_back.value() -
           counters.returned.value();
  }
  [[nodiscard]] AnsweredBy By(std::size_t result) const {
    return outcome_.results[result].answered_by;
  }
};

TEST_F(LeasedChecksTest, AHotKeyIsAnsweredAtOnceFromWhatIsHeld) {
  Use({Leased("r", Bucket(10'000, 1s, 10'000))});
  std::size_t at_once = 0;
  for (int i = 0; i < 2'000; ++i) {
    if (Begin()) {
      ++at_once;
      EXPECT_EQ(By(0), AnsweredBy::kLease);
    }
    EXPECT_TRUE(outcome_.allowed() || shared_->waiting() > 0);
    if (shared_->waiting() > 0) shared_->Answer(clock_.Read());
    clock_.Advance(100us);
  }
  EXPECT_GT(at_once, 1'980u);
  EXPECT_LT(shared_->asked(), 60u);
}

TEST_F(LeasedChecksTest, NoMoreThanTheLimitPassesAtOneInstant) {
  Use({Leased("r", Bucket(1'000, 1s, 1'000))});
  int passed = 0;
  for (int i = 0; i < 3'000; ++i) passed += AskShared().allowed() ? 1 : 0;
  EXPECT_LE(passed, 1'000);
  EXPECT_GT(passed, 950) << "at most a lease's length of the rate, 20 ms, goes unused";
}

TEST_F(LeasedChecksTest, WhoIsDeniedInMemoryPutsBackWhatItTook) {
  Use({Leased("r", Bucket(10'000, 1s, 10'000)), OfNode("node", Bucket(1, 1h, 10))});
  WarmUp();
  const std::uint64_t held = Held();
  ASSERT_TRUE(Begin());
  EXPECT_FALSE(outcome_.allowed());
  EXPECT_EQ(outcome_.decisive_result()->rule->name, "node");
  EXPECT_EQ(Held(), held);
  EXPECT_EQ(outcome_.ClaimOf(outcome_.results[0])->receipt.units, 0u);
  limiter_->Undo(outcome_);
  EXPECT_EQ(Held(), held);
}

TEST_F(LeasedChecksTest, WhoIsDeniedByTheStorePutsBackWhatItTook) {
  Use({Leased("r", Bucket(10'000, 1s, 10'000)), Shared("other", Bucket(1, 1h, 10))});
  WarmUp();
  const std::uint64_t held = Held();
  EXPECT_FALSE(AskShared().allowed());
  EXPECT_EQ(By(0), AnsweredBy::kLease);
  EXPECT_EQ(By(1), AnsweredBy::kStore);
  EXPECT_EQ(Held(), held);
  EXPECT_EQ(outcome_.ClaimOf(outcome_.results[0])->decision.verdict, Verdict::kAllowed);
}

TEST_F(LeasedChecksTest, WhatIsHeldAndWhatTheStoreCountsAreChargedTogether) {
  Use({Leased("r", Bucket(10'000, 1s, 10'000)), Shared("other", Bucket(1, 1h, 100))});
  WarmUp();
  const std::uint64_t held = Held();
  EXPECT_FALSE(Begin());
  EXPECT_EQ(Held(), held - 1);
  while (shared_->waiting() > 0) shared_->Answer(clock_.Read());
  EXPECT_TRUE(outcome_.allowed());
  EXPECT_EQ(RemainingInMemory("other"), 100u - 11);
  limiter_->Undo(outcome_);
  EXPECT_GE(Held(), held);
  EXPECT_EQ(shared_->undone(), 1u) << "of `other` alone";
}

TEST_F(LeasedChecksTest, UndoneAfterTheLeaseHasEndedItGoesToTheStore) {
  Use({Leased("r", Bucket(10'000, 1s, 10'000))});
  WarmUp();
  ASSERT_TRUE(Begin());
  leases_->ReturnAll();
  const std::size_t undone = shared_->undone();
  limiter_->Undo(outcome_);
  EXPECT_EQ(shared_->undone(), undone + 1);
  limiter_->Undo(outcome_);
  EXPECT_EQ(shared_->undone(), undone + 1) << "once";
}

TEST_F(LeasedChecksTest, AnOutcomeAndItsCopyAreUndoneOnce) {
  Use({Leased("r", Bucket(10'000, 1s, 10'000))});
  WarmUp();
  ASSERT_TRUE(Begin());
  const std::uint64_t held = Held();
  Outcome copy = outcome_;
  limiter_->Undo(copy);
  limiter_->Undo(outcome_);
  EXPECT_EQ(Held(), held + 1);
}

TEST_F(LeasedChecksTest, WhileTheStoreIsGoneWhatIsHeldAnswersFirst) {
  Rule closed = Leased("r", Bucket(10'000, 1s, 10'000));
  closed.on_store_failure = OnStoreFailure::kClosed;
  Use({closed});
  WarmUp();
  shared_->Refuse(absl::UnavailableError("gone"));
  const std::uint64_t held = Held();
  for (std::uint64_t i = 0; i < held; ++i) {
    EXPECT_TRUE(Begin());
    EXPECT_TRUE(outcome_.allowed());
  }
  EXPECT_TRUE(Begin());
  EXPECT_EQ(outcome_.answer, Answer::kUnavailable);
}

TEST_F(LeasedChecksTest, OneRuleFailsClosedAndTheOthersLeaseComesBack) {
  Use({Leased("r", Bucket(10'000, 1s, 10'000)),
       Shared("other", Bucket(1, 1h, 100), OnStoreFailure::kClosed)});
  WarmUp();
  const std::uint64_t held = Held();
  EXPECT_FALSE(AskWithoutAnswer().allowed());
  EXPECT_EQ(outcome_.answer, Answer::kUnavailable);
  EXPECT_EQ(Held(), held);
}

TEST_F(LeasedChecksTest, WhatIsHeldDoesNotCareForARememberedDenial) {
  denials_ = std::make_unique<DenialMemory>(64);
  Rule rule = Leased("r", Bucket(100, 1s, 100));
  rule.cost.header = HeaderSource("Cost");
  rule.cost.max = 1'000;
  Use({rule});
  const auto ask = [this](std::string_view cost) {
    headers_ = {{"K", "ann"}, {"Cost", cost}};
    const bool at_once = limiter_->Check({.method = "GET", .target = "/", .headers = headers_},
                                         outcome_, [this] { ++answered_; });
    if (shared_->waiting() > 0) shared_->Answer(clock_.Read());
    return at_once;
  };
  for (int i = 0; i < 9; ++i) ask("1");
  ASSERT_GT(Held(), 1u);
  EXPECT_FALSE(ask("95"));
  EXPECT_FALSE(outcome_.allowed());
  EXPECT_TRUE(ask("95")) << "it is remembered";
  EXPECT_EQ(By(0), AnsweredBy::kMemory);
  EXPECT_TRUE(ask("1"));
  EXPECT_TRUE(outcome_.allowed());
  EXPECT_EQ(By(0), AnsweredBy::kLease);
}

TEST_F(LeasedChecksTest, ALookTakesNothing) {
  Use({Leased("r", Bucket(10'000, 1s, 10'000))});
  WarmUp();
  const std::uint64_t held = Held();
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(AskShared("ann", /*look=*/true).allowed());
  EXPECT_EQ(Held(), held);
}

TEST_F(LeasedChecksTest, ABatchIsAnsweredFromWhatIsHeldToo) {
  Use({Leased("r", Bucket(10'000, 1s, 10'000))});
  WarmUp();
  limiter_->Check({.method = "GET", .target = "/", .headers = headers_}, outcome_);
  EXPECT_EQ(By(0), AnsweredBy::kLease);
}

TEST_F(LeasedChecksTest, NewRulesGiveBackWhatWasHeldUnderTheOld) {
  Use({Leased("r", Bucket(10'000, 1s, 10'000))});
  WarmUp();
  Use({Leased("r", Bucket(20'000, 1s, 20'000))});
  EXPECT_EQ(Held(), 0u);
  EXPECT_FALSE(Begin());
  shared_->Answer(clock_.Read());
  EXPECT_EQ(By(0), AnsweredBy::kStore);
}

TEST_F(LeasedChecksTest, RulesThatCanHaveNoLeaseAreRefused) {
  const auto made = [this](const Rule& rule) {
    auto set = std::make_shared<const RuleSet>(std::vector<Rule>{rule}, RuleSetOptions{}, 7);
    return ActiveRules::Make(std::move(set), *store_, clock_, shared_.get()).status();
  };
  Rule rule = Leased("r", Bucket(10'000, 1s, 10'000));
  EXPECT_TRUE(made(rule).ok());
  rule.mode = RuleMode::kShadow;
  EXPECT_TRUE(absl::IsInvalidArgument(made(rule)));
  rule.mode = RuleMode::kEnforce;
  rule.charge_denied = true;
  EXPECT_TRUE(absl::IsInvalidArgument(made(rule)));
  rule.charge_denied = false;
  rule.block_for = 1s;
  EXPECT_TRUE(absl::IsInvalidArgument(made(rule)));
}

TEST_F(LeasedChecksTest, FromWhatIsHeldItAllocatesNothing) {
  Use({Leased("r", Bucket(1'000'000, 1s, 1'000'000)), OfNode("node", Bucket(1'000'000, 1s, 10))});
  WarmUp(500);
  ASSERT_GT(Held(), 100u);
  int passed = 0;
  CountAllocationsOfThisThread();
  const std::uint64_t before = CountedAllocations();
  for (int i = 0; i < 100; ++i) {
    clock_.Advance(1us);
    const bool at_once = limiter_->Check({.method = "GET", .target = "/", .headers = headers_},
                                         outcome_, [this] { ++answered_; });
    passed += at_once && outcome_.allowed() ? 1 : 0;
  }
  EXPECT_EQ(CountedAllocations(), before);
  EXPECT_GT(passed, 50);
  EXPECT_LT(passed, 101);
}

}  // namespace
}  // namespace sluice
