// What an event loop holds of leases: when it asks, what it spends, and what goes back.
#include "sluice/store/lease/leases.h"

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>

#include "sluice/store/memory/memory_store.h"
#include "sluice/store/testing/shared_store.h"

namespace sluice {
namespace {

using namespace std::chrono_literals;

class LeasesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto opened = MemoryStore::Open({.max_keys = 10'000}, clock_.Read());
    ASSERT_TRUE(opened.ok()) << opened.status();
    counters_ = *std::move(opened);
    shared_ = std::make_unique<SharedStore>(*counters_, clock_.Read());
    Use(1'000, 1s, 1'000);
    leases_ = std::make_unique<Leases>(
        *shared_, clock_,
        LeaseOptions{.keys = 4, .wake = [this](Time at) { wake_at_ = std::min(wake_at_, at); }});
  }
  void TearDown() override {
    leases_.reset();
    shared_.reset();
  }

  void Use(std::int64_t count, Duration period, std::uint64_t burst, Duration length = 100ms,
           std::uint64_t most = 0) {
    auto limit = token_bucket::MakeLimit({count, period}, burst);
    ASSERT_TRUE(limit.ok()) << limit.status();
    auto prepared = shared_->Prepare(*limit);
    ASSERT_TRUE(prepared.ok()) << prepared.status();
    limit_ = *std::move(prepared);
    const auto size = LeaseSizeOf(limit_->limit(), most, length);
    ASSERT_TRUE(size.has_value());
    terms_ = {.limit = limit_, .size = *size};
  }

  [[nodiscard]] Leases::Name Name(std::string_view key) const {
    return {.key = counters_->hash_key()(key), .limit = 1};
  }
  // One request for so many units; true: what is held answered it.
  bool Ask(std::uint64_t cost = 1, std::string_view key = "hot") {
    const Time now = clock_.Read().steady;
    shared_->SetNow(clock_.Read());
    taken_ = leases_->Take(Name(key), key, terms_, cost, now);
    return taken_.has_value();
  }
  // So many, of which each that finds nothing goes to the store alone; how many those were.
  int AskMany(int requests) {
    int alone = 0;
    for (int i = 0; i < requests; ++i) {
      alone += Ask() ? 0 : 1;
      Answer();
    }
    return alone;
  }
  void Answer() {
    if (shared_->waiting() > 0) shared_->Answer(clock_.Read());
  }
  void Advance(Duration by) {
    clock_.Advance(by);
    shared_->SetNow(clock_.Read());
  }
  void Tick() {
    wake_at_ = Time::max();
    shared_->SetNow(clock_.Read());
    leases_->OnTime(clock_.Read().steady);
  }
  // What the store would still let through.
  std::uint64_t Remaining(std::string_view key = "hot") {
    RemoteClaim claim{.key = key, .limit = limit_.get(), .cost = 0, .decision = {}, .receipt = {}};
    RemoteGroup group{.claims = std::span(&claim, 1)};
    EXPECT_TRUE(shared_->Apply(group, Time::max(), [](const absl::Status&) {}).ok());
    shared_->Answer(clock_.Read());
    return claim.decision.remaining;
  }
  [[nodiscard]] std::uint64_t Held() const {
    const LeaseCounters& counters = leases_->counters();
    return counters.units.value() - counters.taken.value() + counters.put_back.value() -
           counters.returned.value();
  }

  ManualClock clock_;
  std::unique_ptr<MemoryStore> counters_;
  std::unique_ptr<SharedStore> shared_;
  std::shared_ptr<const RemoteLimit> limit_;
  LeaseTerms terms_;
  Time wake_at_ = Time::max();
  std::unique_ptr<Leases> leases_;
  std::optional<Leases::Taken> taken_;
};

TEST_F(LeasesTest, AKeyThatIsSeldomWantedIsNotLeased) {
  for (int i = 0; i < 100; ++i) {
    EXPECT_FALSE(Ask());
    Advance(30ms);  // three in a length: less than a lease is worth
  }
  EXPECT_EQ(shared_->asked(), 0u);
}

TEST_F(LeasesTest, AHotKeyIsAskedForOnceForManyRequests) {
  Use(1'000'000, 1s, 1'000'000);
  const int alone = AskMany(20'000);  // at one instant
  EXPECT_LT(alone, 10);
  EXPECT_LT(shared_->asked(), 20u);
  EXPECT_EQ(leases_->counters().granted.value(), shared_->asked());
}

TEST_F(LeasesTest, UnderASteadyDemandHardlyAnyRequestGoesAlone) {
  Use(100'000, 1s, 100'000);
  int alone = 0;
  for (int i = 0; i < 20'000; ++i) {  // 10,000 a second for two seconds, ticks in between
    alone += AskMany(1);
    Advance(100us);
    if (clock_.Read().steady >= wake_at_) Tick();
  }
  EXPECT_LT(alone, 20);
  // Two leases of half a length each, and not much more.
  EXPECT_LT(shared_->asked(), 2u * 20 * 2 + 10);
  EXPECT_LT(leases_->counters().returned.value(), 20'000u / 2);
}

TEST_F(LeasesTest, NothingIsSpentFromTheEndOn) {
  AskMany(8);
  ASSERT_GT(Held(), 0u);
  Advance(100ms - 100us - 1ns);  // a thousandth before
  EXPECT_TRUE(Ask());
  Advance(1ns);
  EXPECT_FALSE(Ask());
  EXPECT_EQ(Held(), 0u);
}

TEST_F(LeasesTest, TheEndCountsFromTheAskingHoweverLateTheAnswerIs) {
  for (int i = 0; i < 8; ++i) EXPECT_FALSE(Ask());
  ASSERT_EQ(shared_->waiting(), 1u);
  Advance(60ms);
  Answer();
  EXPECT_TRUE(Ask());
  Answer();
  Advance(40ms - 100us);
  Tick();
  EXPECT_EQ(leases_->counters().returned.value() > 0, true);
}

TEST_F(LeasesTest, WhileTheStoreIsSlowLeasesLastLonger) {
  Use(1'000, 1s, 1'000, 0ns);  // for 20 ms
  const auto first = [this] {
    for (int i = 0; i < 50; ++i) EXPECT_FALSE(Ask());
    Advance(30ms);
    Answer();
  };
  first();
  EXPECT_FALSE(Ask()) << "it is over when it comes";
  first();
  EXPECT_TRUE(Ask());
  Advance(240ms - 30ms - 241us);
  EXPECT_TRUE(Ask());
  Advance(1us);
  EXPECT_FALSE(Ask()) << "eight times as long as an answer takes";
}

TEST_F(LeasesTest, ALengthThatTheRuleSaysStaysAsItIs) {
  Use(1'000, 1s, 1'000, 20ms);
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < 50; ++i) EXPECT_FALSE(Ask());
    Advance(30ms);
    Answer();
    EXPECT_FALSE(Ask());
    Advance(50ms);
  }
}

TEST_F(LeasesTest, WhatIsLeftGoesBackAtTheEnd) {
  AskMany(8);
  const std::uint64_t held = Held();
  ASSERT_GT(held, 0u);
  const std::uint64_t before = Remaining();
  Advance(1ms);
  Tick();
  EXPECT_EQ(Held(), held) << "it may still be wanted";
  EXPECT_LE(wake_at_, clock_.Read().steady + 100ms);
  Advance(wake_at_ - clock_.Read().steady);
  Tick();
  EXPECT_EQ(Held(), 0u);
  EXPECT_EQ(leases_->counters().keys.value(), 0u);
  EXPECT_GE(Remaining(), before + held);
  EXPECT_EQ(wake_at_, Time::max()) << "nothing is left to be done";
}

TEST_F(LeasesTest, WhatNobodyWantsGoesBackBeforeTheEnd) {
  Use(1'000, 100s, 1'000, 10s);
  AskMany(8);
  ASSERT_GT(Held(), 0u);
  Advance(2s);
  Tick();
  EXPECT_GT(Held(), 0u);
  Advance(501ms);
  Tick();
  EXPECT_EQ(Held(), 0u);
}

TEST_F(LeasesTest, ALeaseIsAtMostAQuarterOfWhatRemains) {
  AskMany(100);
  const std::uint64_t remaining = Remaining();
  const std::uint64_t units = leases_->counters().units.value();
  while (Held() > 0) EXPECT_TRUE(Ask());  // the next is asked for on the way
  Answer();
  EXPECT_LE(leases_->counters().units.value() - units, remaining / 4 + 1);
}

TEST_F(LeasesTest, ALeaseHasAtMostWhatTheRuleAllows) {
  Use(1'000'000, 1s, 1'000'000, 100ms, 20);
  std::uint64_t units = 0;
  for (int i = 0; i < 1'000; ++i) {
    AskMany(1);
    EXPECT_LE(leases_->counters().units.value() - units, 20u);
    EXPECT_LE(Held(), 40u);  // the next one is there before the last is spent
    units = leases_->counters().units.value();
  }
  EXPECT_GT(leases_->counters().granted.value(), 40u);
}

TEST_F(LeasesTest, ADeniedLeaseRestsForAsLongAsItWasTold) {
  Use(10, 1s, 40, 100ms);
  RemoteClaim all{.key = "hot", .limit = limit_.get(), .cost = 40, .decision = {}, .receipt = {}};
  RemoteGroup group{.claims = std::span(&all, 1)};
  ASSERT_TRUE(shared_->Apply(group, Time::max(), [](const absl::Status&) {}).ok());
  Answer();
  ASSERT_TRUE(group.allowed);
  const std::size_t before = shared_->asked();
  EXPECT_EQ(AskMany(50), 50);
  EXPECT_EQ(shared_->asked(), before + 1);
  EXPECT_EQ(leases_->counters().denied.value(), 1u);
  Advance(99ms);
  EXPECT_EQ(AskMany(50), 50);
  EXPECT_EQ(shared_->asked(), before + 1) << "the wait is cut to the length of a lease";
  Advance(1ms);
  EXPECT_EQ(AskMany(50), 50);
  EXPECT_EQ(shared_->asked(), before + 2);
}

TEST_F(LeasesTest, AStoreThatIsGoneIsNotAskedAgainAtOnce) {
  shared_->Refuse(absl::UnavailableError("gone"));
  EXPECT_EQ(AskMany(100), 100);
  EXPECT_EQ(leases_->counters().unanswered.value(), 1u);
  shared_->Refuse(absl::OkStatus());
  Advance(100ms);
  for (int i = 0; i < 8; ++i) EXPECT_FALSE(Ask());
  ASSERT_EQ(shared_->waiting(), 1u);
  shared_->Fail(absl::DeadlineExceededError("late"));
  EXPECT_EQ(AskMany(100), 100);
  EXPECT_EQ(leases_->counters().unanswered.value(), 2u);
  Advance(100ms);
  EXPECT_LT(AskMany(100), 100);
}

TEST_F(LeasesTest, WhatIsHeldLastsWhileTheStoreIsGone) {
  AskMany(8);
  shared_->Refuse(absl::UnavailableError("gone"));
  const std::uint64_t held = Held();
  ASSERT_GT(held, 0u);
  for (std::uint64_t i = 0; i < held; ++i) EXPECT_TRUE(Ask());
  EXPECT_FALSE(Ask());
}

TEST_F(LeasesTest, PutBackIsSpentBySomebodyElse) {
  AskMany(8);
  const std::uint64_t held = Held();
  ASSERT_TRUE(Ask());
  leases_->PutBack(Name("hot"), "hot", terms_, taken_->lease, taken_->receipt);
  EXPECT_EQ(Held(), held);
  EXPECT_EQ(shared_->undone(), 0u);
}

TEST_F(LeasesTest, PutBackAfterTheEndGoesToTheStore) {
  AskMany(8);
  ASSERT_TRUE(Ask());
  const Leases::Taken taken = *taken_;
  Advance(200ms);
  Tick();
  const std::size_t undone = shared_->undone();
  leases_->PutBack(Name("hot"), "hot", terms_, taken.lease, taken.receipt);
  EXPECT_EQ(shared_->undone(), undone + 1);
  EXPECT_EQ(Held(), 0u);
}

TEST_F(LeasesTest, ARestThatIsTooSmallGivesWayToTheNextLease) {
  Use(1'000'000, 1s, 1'000'000, 100ms, 40);
  for (int i = 0; i < 200; ++i) {
    Ask(i % 3 == 0 ? 5 : 1);
    Answer();
  }
  EXPECT_GT(leases_->counters().granted.value(), 5u);
  EXPECT_LE(Held(), 80u);
}

TEST_F(LeasesTest, PutBackAfterTheLastUnitWasTakenIsSpentBySomebodyElse) {
  AskMany(8);
  while (Held() > 1) ASSERT_TRUE(Ask());
  Answer();
  ASSERT_TRUE(Ask());
  leases_->PutBack(Name("hot"), "hot", terms_, taken_->lease, taken_->receipt);
  EXPECT_EQ(shared_->undone(), 0u);
}

TEST_F(LeasesTest, RequestsThatPutBackAreNoDemand) {
  Use(1'000'000, 1s, 1'000'000, 100ms);
  const auto granted_in_a_second = [this](bool put_back) {
    const std::uint64_t before = leases_->counters().units.value();
    for (int i = 0; i < 1'000; ++i) {
      Advance(1ms);
      if (Ask() && put_back) {
        leases_->PutBack(Name("hot"), "hot", terms_, taken_->lease, taken_->receipt);
      }
      Answer();
    }
    return leases_->counters().units.value() - before;
  };
  EXPECT_GT(granted_in_a_second(/*put_back=*/false), 900u);
  Advance(1s);
  EXPECT_LT(granted_in_a_second(/*put_back=*/true), 500u);
}

TEST_F(LeasesTest, ACostThatNoLeaseCanHaveDoesNotKeepTheKeyFromBeingLeased) {
  Use(1'000, 1s, 1'000, 100ms);
  for (int i = 0; i < 20; ++i) {
    EXPECT_FALSE(Ask(i < 3 ? 1 : 100'000));
    EXPECT_EQ(shared_->waiting(), 0u);
  }
  EXPECT_FALSE(Ask());
  EXPECT_EQ(shared_->waiting(), 1u) << "the fourth of those that can";
}

TEST_F(LeasesTest, TwoRestsThatAreTooSmallDoNotKeepTheNextLeaseFromBeingAskedFor) {
  Use(1'000'000, 1s, 1'000'000, 100ms, 100);
  for (int i = 0; i < 300; ++i) {
    Ask(60);
    Answer();
  }
  EXPECT_EQ(leases_->counters().granted.value(), 0u) << "less than what eight take";
  Advance(200ms);
  for (int i = 0; i < 60; ++i) {
    Ask(12);
    Answer();
  }
  const std::uint64_t granted = leases_->counters().granted.value();
  for (int i = 0; i < 60; ++i) {
    Ask(12);
    Answer();
  }
  EXPECT_GE(leases_->counters().granted.value(), granted + 4);
}

TEST_F(LeasesTest, AnAnswerThatIsLostMakesNoLeaseLonger) {
  Use(1'000, 1s, 1'000, 0ns);  // for 20 ms
  for (int round = 0; round < 5; ++round) {
    for (int i = 0; i < 50; ++i) EXPECT_FALSE(Ask());
    ASSERT_EQ(shared_->waiting(), 1u);
    Advance(100ms);
    shared_->Fail(absl::DeadlineExceededError("late"));
    Advance(20ms);
  }
  for (int i = 0; i < 50; ++i) Ask();
  Answer();
  EXPECT_TRUE(Ask());
  Advance(20ms - 20us);
  EXPECT_FALSE(Ask());
}

TEST_F(LeasesTest, OthersHaveTheirOwn) {
  AskMany(20);
  EXPECT_FALSE(Ask(1, "other"));
  leases_->ReturnAll();
  EXPECT_EQ(Held(), 0u);
}

TEST_F(LeasesTest, KeysOfWhichSomethingIsHeldKeepTheirPlace) {
  for (const std::string_view key : {"a", "b", "c", "d"}) {  // all that there is room for
    for (int i = 0; i < 8; ++i) Ask(1, key);
    Answer();
    ASSERT_TRUE(Ask(1, key)) << key;
  }
  for (int i = 0; i < 100; ++i) EXPECT_FALSE(Ask(1, "e"));
  EXPECT_EQ(leases_->counters().keys.value(), 4u);
  Advance(200ms);
  Tick();
  for (int i = 0; i < 8; ++i) Ask(1, "e");
  Answer();
  EXPECT_TRUE(Ask(1, "e"));
}

TEST_F(LeasesTest, ReturnAllTakesBackWhatIsGrantedLater) {
  for (int i = 0; i < 8; ++i) EXPECT_FALSE(Ask());
  ASSERT_EQ(shared_->waiting(), 1u);
  leases_->ReturnAll();
  Answer();
  EXPECT_EQ(Held(), 0u);
  EXPECT_EQ(leases_->counters().returned.value(), leases_->counters().units.value());
  EXPECT_EQ(AskMany(8) < 8 || Ask(), true) << "from then on it leases as before";
}

TEST_F(LeasesTest, OnceClosedNothingIsLeased) {
  AskMany(8);
  ASSERT_GT(Held(), 0u);
  leases_->Close();
  EXPECT_EQ(Held(), 0u);
  EXPECT_EQ(AskMany(100), 100);
}

TEST_F(LeasesTest, TheDecisionTellsWhatRemains) {
  AskMany(8);
  const std::uint64_t held = Held();
  ASSERT_TRUE(Ask());
  EXPECT_TRUE(taken_->decision.allowed());
  EXPECT_EQ(taken_->decision.remaining, Remaining() + held - 1);
  const Duration reset = taken_->decision.reset_after;
  Advance(10ms);
  ASSERT_TRUE(Ask());
  EXPECT_EQ(taken_->decision.reset_after, reset - 10ms);
}

}  // namespace
}  // namespace sluice
