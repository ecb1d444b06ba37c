#include "sluice/store/redis/internal/breaker.h"

#include <gtest/gtest.h>

#include <vector>

namespace sluice::redis {
namespace {

using namespace std::chrono_literals;

class BreakerTest : public ::testing::Test {
 protected:
  // Whether one is admitted.
  bool Admits() {
    Breaker::Ticket ticket = 0;
    if (!breaker_.Admit(&ticket)) return false;
    tickets_.push_back(ticket);
    return true;
  }
  Breaker::Ticket Ticket() {
    EXPECT_TRUE(Admits());
    return tickets_.back();
  }
  void Open() {
    while (breaker_.state() == BreakerState::kClosed) breaker_.Failed(Ticket(), now_);
  }
  void HalfOpen() {
    Open();
    EXPECT_TRUE(breaker_.ProbeAnswered(now_));
  }

  Time now_{1h};
  Breaker breaker_{{.failures = 3, .trials = 2, .probe_every = 100ms, .idle = 1s}};
  std::vector<Breaker::Ticket> tickets_;
};

TEST_F(BreakerTest, OpensAfterSoManyFailuresInARow) {
  EXPECT_FALSE(breaker_.Failed(Ticket(), now_));
  EXPECT_FALSE(breaker_.Failed(Ticket(), now_));
  EXPECT_FALSE(breaker_.Succeeded(Ticket()));  // and begins anew
  EXPECT_FALSE(breaker_.Failed(Ticket(), now_));
  breaker_.Neither(Ticket());  // which says nothing
  EXPECT_FALSE(breaker_.Failed(Ticket(), now_));
  EXPECT_TRUE(Admits());
  EXPECT_TRUE(breaker_.Failed(Ticket(), now_));
  EXPECT_EQ(breaker_.state(), BreakerState::kOpen);
  EXPECT_FALSE(Admits());
}

TEST_F(BreakerTest, ProbesAreWantedAtOnceAndThenAtIntervals) {
  EXPECT_FALSE(breaker_.WantsProbe(now_ + 1h)) << "not while it is closed";
  Open();
  EXPECT_TRUE(breaker_.WantsProbe(now_));
  breaker_.ProbeSent(now_);
  EXPECT_FALSE(breaker_.WantsProbe(now_ + 99ms));
  EXPECT_TRUE(breaker_.WantsProbe(now_ + 100ms));
  EXPECT_EQ(breaker_.next_probe(), now_ + 100ms);
  // And so each time it opens.
  breaker_.ProbeAnswered(now_ + 1ms);
  EXPECT_TRUE(breaker_.Succeeded(Ticket()));
  now_ += 10ms;
  Open();
  EXPECT_TRUE(breaker_.WantsProbe(now_));
}

TEST_F(BreakerTest, AProbeThatIsAnsweredLetsAFewTry) {
  Open();
  EXPECT_FALSE(breaker_.ProbeFailed(now_));
  EXPECT_FALSE(Admits());
  EXPECT_TRUE(breaker_.ProbeAnswered(now_));
  EXPECT_EQ(breaker_.state(), BreakerState::kHalfOpen);
  EXPECT_TRUE(Admits());
  EXPECT_TRUE(Admits());
  EXPECT_FALSE(Admits());
  EXPECT_TRUE(breaker_.Succeeded(tickets_.back()));
  EXPECT_EQ(breaker_.state(), BreakerState::kClosed);
  EXPECT_TRUE(Admits());
}

TEST_F(BreakerTest, ATrialThatFailsOpensItAgain) {
  HalfOpen();
  breaker_.ProbeSent(now_);
  EXPECT_TRUE(breaker_.Failed(Ticket(), now_ + 10ms));
  EXPECT_EQ(breaker_.state(), BreakerState::kOpen);
  EXPECT_FALSE(breaker_.WantsProbe(now_ + 10ms)) << "the last was good, and then it failed";
  EXPECT_TRUE(breaker_.WantsProbe(now_ + 100ms));
}

TEST_F(BreakerTest, ATrialThatSaysNothingMakesPlaceForAnother) {
  HalfOpen();
  const Breaker::Ticket first = Ticket();
  Ticket();
  breaker_.Neither(first);
  EXPECT_TRUE(Admits());
  EXPECT_FALSE(Admits());
}

TEST_F(BreakerTest, TrialsThatRunWhenItOpensTakeNoPlaceLater) {
  HalfOpen();
  const Breaker::Ticket first = Ticket();
  const Breaker::Ticket second = Ticket();
  EXPECT_TRUE(breaker_.Failed(first, now_));
  EXPECT_TRUE(breaker_.ProbeAnswered(now_));
  EXPECT_TRUE(Admits());
  EXPECT_TRUE(Admits());
  breaker_.Neither(second);
  EXPECT_FALSE(Admits());
}

TEST_F(BreakerTest, AProbeThatFailsOpensItAgain) {
  HalfOpen();
  EXPECT_TRUE(breaker_.ProbeFailed(now_));
  EXPECT_EQ(breaker_.state(), BreakerState::kOpen);
}

TEST_F(BreakerTest, WhereNobodyAsksGoodProbesCloseItInTheEnd) {
  HalfOpen();
  EXPECT_FALSE(breaker_.ProbeAnswered(now_ + 999ms));
  EXPECT_TRUE(breaker_.ProbeAnswered(now_ + 1s));
  EXPECT_EQ(breaker_.state(), BreakerState::kClosed);
}

TEST_F(BreakerTest, WhereTheServerSaidNoOnlyATrialClosesIt) {
  while (breaker_.state() == BreakerState::kClosed) breaker_.Failed(Ticket(), now_, true);
  EXPECT_TRUE(breaker_.ProbeAnswered(now_));
  EXPECT_FALSE(breaker_.ProbeAnswered(now_ + 1min)) << "a probe writes nothing";
  EXPECT_TRUE(breaker_.Failed(Ticket(), now_ + 1min, true));
  EXPECT_TRUE(breaker_.ProbeAnswered(now_ + 1min));
  EXPECT_TRUE(breaker_.Succeeded(Ticket()));
  EXPECT_EQ(breaker_.state(), BreakerState::kClosed);
}

TEST_F(BreakerTest, WhileATrialRunsProbesDoNotCloseIt) {
  HalfOpen();
  const Breaker::Ticket trial = Ticket();
  EXPECT_FALSE(breaker_.ProbeAnswered(now_ + 2s));
  EXPECT_TRUE(breaker_.Failed(trial, now_ + 2s));
}

TEST_F(BreakerTest, WhatWasAdmittedInAnotherStateSaysNothing) {
  const Breaker::Ticket before = Ticket();
  HalfOpen();
  EXPECT_FALSE(breaker_.Succeeded(before));
  EXPECT_FALSE(breaker_.Failed(before, now_));
  breaker_.Neither(before);
  EXPECT_EQ(breaker_.state(), BreakerState::kHalfOpen);
  EXPECT_TRUE(Admits());
  EXPECT_TRUE(Admits());
  EXPECT_FALSE(Admits());
}

TEST_F(BreakerTest, CanBeTrippedFromAnyState) {
  breaker_.Trip(now_);
  EXPECT_FALSE(Admits());
  EXPECT_TRUE(breaker_.ProbeAnswered(now_));
  const Breaker::Ticket trial = Ticket();
  breaker_.Trip(now_);
  EXPECT_FALSE(breaker_.Succeeded(trial));
  EXPECT_EQ(breaker_.state(), BreakerState::kOpen);
}

}  // namespace
}  // namespace sluice::redis
