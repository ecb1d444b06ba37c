// What a node remembers of a shared store's denials, through the engine; the memory itself:
// denial_memory_test.cc.
#include <gtest/gtest.h>

#include "sluice/limiter/remote_fixture.h"

namespace sluice {
namespace {

class RememberedDenialsTest : public RemoteChecksTest {
 protected:
  void SetUp() override {
    RemoteChecksTest::SetUp();
    denials_ = std::make_unique<DenialMemory>(64);
  }
  // How often the store is asked by requests that come each 10 ms for `length`.
  std::size_t AskedDuring(Duration length) {
    const std::size_t before = shared_->asked();
    for (Duration passed{0}; passed < length; passed += 10ms, clock_.Advance(10ms)) {
      EXPECT_FALSE(AskShared().allowed());
    }
    return shared_->asked() - before;
  }
};

TEST_F(RememberedDenialsTest, AFloodReachesTheStoreOnceASecond) {
  Use({Shared("r", Bucket(1, 1h, 1))});
  EXPECT_TRUE(AskShared().allowed());
  EXPECT_EQ(AskedDuring(1s), 1u);
  EXPECT_EQ(AskedDuring(5s), 5u);
  EXPECT_EQ(outcome_.answer, Answer::kLimited);
  EXPECT_EQ(outcome_.results[0].answered_by, AnsweredBy::kMemory);
  EXPECT_EQ(outcome_.retry_after, 1h - 6s + 10ms);
  EXPECT_TRUE(AskShared("bob").allowed());
}

TEST_F(RememberedDenialsTest, ADenialIsOverAtTheInstantThatItTold) {
  Use({Shared("r", Bucket(1, 200ms, 1))});
  EXPECT_TRUE(AskShared().allowed());
  EXPECT_FALSE(AskShared().allowed());
  clock_.Advance(outcome_.retry_after - 1ns);
  EXPECT_FALSE(AskShared().allowed());
  EXPECT_EQ(outcome_.results[0].answered_by, AnsweredBy::kMemory);
  clock_.Advance(1ns);
  EXPECT_TRUE(AskShared().allowed());
}

TEST_F(RememberedDenialsTest, ACostThatIsNeverMetIsNotToldToWait) {
  Rule rule = Shared("r", Bucket(1, 1h, 2));
  rule.cost.header = HeaderSource("Cost");
  rule.cost.max = 100;
  Use({rule});
  const auto ask = [this](std::string_view cost) {
    headers_ = {{"K", "ann"}, {"Cost", cost}};
    if (!limiter_->Check({.method = "GET", .target = "/", .headers = headers_}, outcome_, [] {})) {
      shared_->Answer(clock_.Read());
    }
    return outcome_.answer;
  };
  EXPECT_EQ(ask("2"), Answer::kAllowed);
  EXPECT_EQ(ask("1"), Answer::kLimited);
  EXPECT_EQ(ask("2"), Answer::kLimited);
  EXPECT_EQ(ask("3"), Answer::kNeverPasses);
  EXPECT_EQ(outcome_.results[0].answered_by, AnsweredBy::kMemory);
  EXPECT_EQ(outcome_.retry_after, kNever);
}

TEST_F(RememberedDenialsTest, WhatIsRememberedChargesNothingElsewhere) {
  Rule charging = Shared("charging", Bucket(1, 1h, 9));
  charging.charge_denied = true;
  Use({Shared("r", Bucket(1, 1h, 1)), charging, Shared("other", Bucket(1, 1h, 9)),
       OfNode("node", Bucket(1, 1h, 9))});
  EXPECT_TRUE(AskShared().allowed());
  for (int i = 0; i < 3; ++i) EXPECT_FALSE(AskShared().allowed());
  EXPECT_EQ(outcome_.decisive_result()->rule->name, "r");
  EXPECT_EQ(RemainingInMemory("node"), 8u);
  EXPECT_EQ(RemainingInMemory("charging"), 5u);  // it is asked each time
  EXPECT_EQ(outcome_.results[2].answered_by, AnsweredBy::kNobody);
  shared_->Refuse(absl::UnavailableError("gone"));
  EXPECT_TRUE(Begin());
  EXPECT_EQ(outcome_.answer, Answer::kLimited);
  EXPECT_EQ(outcome_.decisive_result()->rule->name, "r");
  EXPECT_EQ(RemainingInMemory("charging"), 8u);  // by itself, in memory
}

TEST_F(RememberedDenialsTest, SlotsShadowsAndRulesThatChargeDenialsAreAlwaysAsked) {
  Rule shadow = Shared("r", Bucket(1, 1h, 1));
  shadow.mode = RuleMode::kShadow;
  Rule charging = Shared("r", Bucket(1, 1h, 1));
  charging.charge_denied = true;
  for (const Rule& rule : {Shared("r", Slots(1)), shadow, charging}) {
    Use({rule});
    AskShared();
    const std::size_t before = shared_->asked();
    for (int i = 0; i < 5; ++i) AskShared();
    EXPECT_EQ(shared_->asked() - before, 5u);
  }
}

TEST_F(RememberedDenialsTest, ALookIsNeitherRememberedNorAnsweredFromMemory) {
  Use({Shared("r", Bucket(1, 1h, 1))});
  EXPECT_TRUE(AskShared().allowed());
  EXPECT_FALSE(AskShared("ann", /*look=*/true).allowed());
  EXPECT_FALSE(AskShared().allowed());
  EXPECT_EQ(shared_->asked(), 3u);
  EXPECT_FALSE(AskShared("ann", /*look=*/true).allowed());
  EXPECT_EQ(shared_->asked(), 4u);
}

TEST_F(RememberedDenialsTest, AnUndoOnThisNodeIsSeenAtOnce) {
  Use({Shared("r", Bucket(1, 1h, 1))});
  EXPECT_TRUE(AskShared().allowed());
  Outcome taken = outcome_;
  EXPECT_FALSE(AskShared().allowed());
  limiter_->Undo(taken);
  EXPECT_TRUE(AskShared().allowed());
}

TEST_F(RememberedDenialsTest, NewRulesAreAskedForAnew) {
  Use({Shared("r", Bucket(1, 1h, 1))});
  EXPECT_TRUE(AskShared().allowed());
  EXPECT_FALSE(AskShared().allowed());
  Use({Shared("r", Bucket(1, 1h, 5))});
  EXPECT_TRUE(AskShared().allowed());
}

TEST_F(RememberedDenialsTest, ABlockIsRememberedWithItsWait) {
  Rule rule = Shared("r", Bucket(1, 100ms, 1));
  rule.block_for = 10s;
  Use({rule});
  EXPECT_TRUE(AskShared().allowed());
  EXPECT_FALSE(AskShared().allowed());
  EXPECT_EQ(AskedDuring(4s), 3u);  // the first second is remembered already
  EXPECT_EQ(outcome_.retry_after, 10s - 4s + 10ms);
}

}  // namespace
}  // namespace sluice
