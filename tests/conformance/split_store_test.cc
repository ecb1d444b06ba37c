#include "sluice/store/split_store.h"

#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sluice/store/memory/memory_store.h"
#include "sluice/store/testing/parts_store.h"

namespace sluice {
namespace {

using namespace std::chrono_literals;

constexpr Now kStart{Time{1000h}, WallTime{1000h}};
constexpr Now kLater{Time{1000h + 1ms}, WallTime{1000h + 1ms}};

class SplitStoreTest : public ::testing::Test {
 protected:
  using Kept = std::shared_ptr<const RemoteLimit>;

  Kept Bucket(std::uint64_t burst) {
    return *parts_->Prepare(*token_bucket::MakeLimit({1, 1h}, burst));
  }
  static RemoteClaim ClaimOn(std::string_view key, const Kept& limit,
                             ClaimKind kind = ClaimKind::kBinding, bool charge_denied = false) {
    return {.key = key,
            .limit = limit.get(),
            .kind = kind,
            .charge_denied = charge_denied,
            .decision = {},
            .receipt = {}};
  }
  absl::Status Ask(std::vector<RemoteClaim> claims) {
    claims_ = std::move(claims);
    group_ = {.claims = claims_};
    told_.reset();
    return store_->Apply(group_, Time::max(), [this](const absl::Status& status) {
      EXPECT_FALSE(told_) << "told twice";
      told_ = status;
    });
  }
  // Asks, lets all parts answer, and expects an answer.
  bool Passes(std::vector<RemoteClaim> claims) {
    EXPECT_TRUE(Ask(std::move(claims)).ok());
    parts_->Answer(kStart);
    EXPECT_TRUE(told_ && told_->ok());
    return group_.allowed;
  }
  // What is left on a key.
  std::uint64_t Left(std::string_view key, const Kept& limit) {
    RemoteClaim look = ClaimOn(key, limit, ClaimKind::kShadowLook);
    look.cost = 0;
    Passes({look});
    return claims_[0].decision.remaining;
  }
  bool told(absl::StatusCode code) const { return told_ && told_->code() == code; }

  std::unique_ptr<MemoryStore> counters_ = MemoryStore::Open({.max_keys = 1000}, kStart).value();
  std::unique_ptr<PartsStore> parts_ = std::make_unique<PartsStore>(*counters_, 3, kStart);
  std::unique_ptr<SplitStore> store_ = std::make_unique<SplitStore>(*parts_, &PartsStore::PartOf);
  std::vector<RemoteClaim> claims_;
  RemoteGroup group_;
  std::optional<absl::Status> told_;
};

TEST_F(SplitStoreTest, AGroupOfOnePartGoesAsItIs) {
  const Kept limit = Bucket(5);
  ASSERT_TRUE(Ask({ClaimOn("a:1", limit), ClaimOn("b:1", limit)}).ok());
  EXPECT_EQ(parts_->part(1).asked(), 1u);
  EXPECT_FALSE(told_);
  parts_->part(1).Answer(kStart);
  EXPECT_TRUE(told(absl::StatusCode::kOk));
  EXPECT_TRUE(group_.allowed);
}

TEST_F(SplitStoreTest, OfAClaimThatIsAloneNobodyAsksWhichPart) {
  SplitStore store(*parts_, [](const RemoteClaim&) -> std::uint32_t {
    ADD_FAILURE() << "asked in vain";
    return 0;
  });
  const Kept limit = Bucket(5);
  std::vector<RemoteClaim> claims = {ClaimOn("a:1", limit)};
  RemoteGroup group{.claims = claims};
  ASSERT_TRUE(store.Apply(group, Time::max(), [](const absl::Status&) {}).ok());
  parts_->Answer(kStart);
  EXPECT_TRUE(group.allowed);
}

TEST_F(SplitStoreTest, EachPartIsAskedOnceForAllThatLiesThere) {
  const Kept limit = Bucket(5);
  const Kept other = Bucket(9);
  ASSERT_TRUE(Ask({ClaimOn("a:1", limit), ClaimOn("b:2", other), ClaimOn("c:1", other)}).ok());
  EXPECT_EQ(parts_->part(1).asked(), 1u);
  EXPECT_EQ(parts_->part(2).asked(), 1u);
  parts_->part(2).Answer(kStart);
  EXPECT_FALSE(told_) << "one part is still to answer";
  parts_->part(1).Answer(kStart);
  ASSERT_TRUE(told(absl::StatusCode::kOk));
  EXPECT_TRUE(group_.allowed);
  EXPECT_EQ(claims_[0].decision.remaining, 4u);
  EXPECT_EQ(claims_[1].decision.remaining, 8u);
  EXPECT_EQ(claims_[2].decision.remaining, 8u);
  for (const RemoteClaim& claim : claims_) EXPECT_EQ(claim.receipt.units, 1u);
}

TEST_F(SplitStoreTest, WhatAnotherPartVetoesComesBack) {
  const Kept limit = Bucket(5);
  const Kept one = Bucket(1);
  ASSERT_TRUE(Passes({ClaimOn("b:2", one)}));
  EXPECT_FALSE(Passes({ClaimOn("a:1", limit), ClaimOn("b:2", one), ClaimOn("c:0", limit)}));
  EXPECT_EQ(parts_->part(0).undone(), 1u);
  EXPECT_EQ(parts_->part(1).undone(), 1u);
  EXPECT_EQ(parts_->part(2).undone(), 0u);
  for (const RemoteClaim& claim : claims_) EXPECT_EQ(claim.receipt.units, 0u);
  EXPECT_TRUE(claims_[0].decision.allowed());
  EXPECT_EQ(claims_[0].decision.remaining, 5u) << "told as one that was looked at";
  EXPECT_EQ(claims_[0].decision.reset_after, 0s);
  EXPECT_EQ(claims_[1].decision.verdict, Verdict::kLimited);
  EXPECT_EQ(Left("a:1", limit), 5u);
  EXPECT_EQ(Left("c:0", limit), 5u);
}

TEST_F(SplitStoreTest, AVetoLeavesWhatIsChargedWhoeverDenies) {
  const Kept limit = Bucket(5);
  const Kept one = Bucket(1);
  ASSERT_TRUE(Passes({ClaimOn("b:2", one)}));
  EXPECT_FALSE(Passes({ClaimOn("a:1", limit, ClaimKind::kSoft),
                       ClaimOn("c:1", limit, ClaimKind::kBinding, /*charge_denied=*/true),
                       ClaimOn("d:1", limit, ClaimKind::kShadow, /*charge_denied=*/true),
                       ClaimOn("e:1", limit, ClaimKind::kShadow), ClaimOn("b:2", one)}));
  EXPECT_EQ(Left("a:1", limit), 4u);
  EXPECT_EQ(Left("c:1", limit), 4u);
  EXPECT_EQ(Left("d:1", limit), 4u);
  EXPECT_EQ(Left("e:1", limit), 5u);
}

TEST_F(SplitStoreTest, AShadowWithoutRoomVetoesNobody) {
  const Kept limit = Bucket(5);
  const Kept one = Bucket(1);
  ASSERT_TRUE(Passes({ClaimOn("b:2", one)}));
  EXPECT_TRUE(Passes({ClaimOn("a:1", limit), ClaimOn("b:2", one, ClaimKind::kShadow)}));
  EXPECT_EQ(Left("a:1", limit), 4u);
}

TEST_F(SplitStoreTest, ALookInAnotherPartVetoes) {
  const Kept limit = Bucket(5);
  const Kept one = Bucket(1);
  ASSERT_TRUE(Passes({ClaimOn("b:2", one)}));
  EXPECT_FALSE(Passes({ClaimOn("a:1", limit), ClaimOn("b:2", one, ClaimKind::kLook)}));
  EXPECT_EQ(Left("a:1", limit), 5u);
}

TEST_F(SplitStoreTest, AnErrorOfOnePartIsTheGroups) {
  const Kept limit = Bucket(5);
  ASSERT_TRUE(
      Ask({ClaimOn("a:1", limit), ClaimOn("b:2", limit), ClaimOn("c:1", limit, ClaimKind::kSoft)})
          .ok());
  parts_->part(1).Answer(kStart);
  EXPECT_FALSE(told_);
  parts_->part(2).Fail(absl::DeadlineExceededError("late"), /*charged=*/true);
  EXPECT_TRUE(told(absl::StatusCode::kDeadlineExceeded));
  EXPECT_EQ(Left("a:1", limit), 5u);
  EXPECT_EQ(Left("c:1", limit), 5u) << "an error charges nothing that is known of";
  EXPECT_EQ(Left("b:2", limit), 4u) << "what nobody knows stays charged";
}

TEST_F(SplitStoreTest, OfSeveralErrorsTheOneIsToldThatPromisesLeast) {
  const Kept limit = Bucket(5);
  for (const bool late_first : {true, false}) {
    SCOPED_TRACE(late_first);
    ASSERT_TRUE(Ask({ClaimOn("a:1", limit), ClaimOn("b:2", limit)}).ok());
    if (late_first) parts_->part(1).Fail(absl::DeadlineExceededError("late"));
    parts_->part(2).Fail(absl::UnavailableError("gone"));
    if (!late_first) parts_->part(1).Fail(absl::DeadlineExceededError("late"));
    EXPECT_TRUE(told(absl::StatusCode::kDeadlineExceeded));
  }
}

TEST_F(SplitStoreTest, ADenialInOnePartDoesNotHideTheErrorOfAnother) {
  const Kept one = Bucket(1);
  ASSERT_TRUE(Passes({ClaimOn("b:2", one)}));
  ASSERT_TRUE(Ask({ClaimOn("a:1", one), ClaimOn("b:2", one)}).ok());
  parts_->part(2).Answer(kStart);
  parts_->part(1).Fail(absl::UnavailableError("gone"));
  EXPECT_TRUE(told(absl::StatusCode::kUnavailable));
}

TEST_F(SplitStoreTest, ARefusalOfTheFirstAsksNobody) {
  const Kept limit = Bucket(5);
  parts_->part(1).Refuse(absl::ResourceExhaustedError("full"));
  EXPECT_TRUE(absl::IsResourceExhausted(Ask({ClaimOn("a:1", limit), ClaimOn("b:2", limit)})));
  EXPECT_EQ(parts_->part(2).asked(), 0u);
  parts_->Answer(kStart);
  EXPECT_FALSE(told_);
}

TEST_F(SplitStoreTest, ARefusalBehindOneThatWasSentIsToldWhenThatHasAnswered) {
  const Kept limit = Bucket(5);
  parts_->part(2).Refuse(absl::UnavailableError("gone"));
  ASSERT_TRUE(Ask({ClaimOn("a:1", limit), ClaimOn("b:2", limit), ClaimOn("c:0", limit)}).ok());
  EXPECT_FALSE(told_);
  EXPECT_EQ(parts_->part(0).asked(), 0u) << "it would only be undone";
  parts_->part(1).Answer(kStart);
  EXPECT_TRUE(told(absl::StatusCode::kUnavailable));
  parts_->part(2).Refuse(absl::OkStatus());
  EXPECT_EQ(Left("a:1", limit), 5u);
}

TEST_F(SplitStoreTest, WhoeverIsToldMayAskAnew) {
  const Kept limit = Bucket(5);
  std::vector<RemoteClaim> claims = {ClaimOn("a:1", limit), ClaimOn("b:2", limit)};
  RemoteGroup group{.claims = claims};
  int answers = 0;
  std::function<void()> ask = [&] {
    ASSERT_TRUE(store_
                    ->Apply(group, Time::max(),
                            [&](const absl::Status& status) {
                              EXPECT_TRUE(status.ok());
                              if (++answers < 3) ask();
                            })
                    .ok());
  };
  ask();
  for (int i = 0; i < 3; ++i) parts_->Answer(kStart);
  EXPECT_EQ(answers, 3);
  EXPECT_EQ(claims[0].decision.remaining, 2u);
}

TEST_F(SplitStoreTest, AnswersThatComeLateBelongToTheirOwnGroup) {
  const Kept limit = Bucket(5);
  const Kept one = Bucket(1);
  std::vector<RemoteClaim> first = {ClaimOn("a:1", limit), ClaimOn("x:2", one)};
  std::vector<RemoteClaim> second = {ClaimOn("b:0", limit), ClaimOn("x:2", one)};
  RemoteGroup groups[] = {{.claims = first}, {.claims = second}};
  int answers = 0;
  for (RemoteGroup& group : groups) {
    ASSERT_TRUE(store_->Apply(group, Time::max(), [&](const absl::Status&) { ++answers; }).ok());
  }
  parts_->part(2).Answer(kStart);  // the first takes what there is
  parts_->part(0).Answer(kStart);
  EXPECT_EQ(answers, 1);
  EXPECT_FALSE(groups[1].allowed);
  parts_->part(1).Answer(kLater);
  EXPECT_EQ(answers, 2);
  EXPECT_TRUE(groups[0].allowed);
  EXPECT_EQ(Left("b:0", limit), 5u);
}

TEST_F(SplitStoreTest, UndoAndRenewGoToTheClaimsPart) {
  const Kept limit = Bucket(5);
  const Kept slots = *parts_->Prepare(*concurrency::MakeLimit(2, 30s));
  ASSERT_TRUE(Passes({ClaimOn("a:1", limit), ClaimOn("s:2", slots)}));
  store_->Renew(claims_[1]);
  EXPECT_EQ(parts_->part(2).renewed(), 1u);
  store_->Undo(claims_[0], 1);
  store_->Undo(claims_[1], 1);
  EXPECT_EQ(parts_->part(1).undone(), 1u);
  EXPECT_EQ(parts_->part(2).undone(), 1u);
  EXPECT_EQ(Left("a:1", limit), 5u);
  EXPECT_EQ(Left("s:2", slots), 2u);
}

TEST_F(SplitStoreTest, ALeaseGoesToItsPart) {
  const Kept limit = Bucket(100);
  RemoteClaim lease = ClaimOn("a:1", limit);
  lease.lease = 1s;
  lease.cost = 10;
  ASSERT_TRUE(Passes({lease}));
  EXPECT_EQ(claims_[0].good_for, 1s);
  EXPECT_EQ(claims_[0].receipt.units, 10u);
}

TEST_F(SplitStoreTest, WhatIsUnderWayEndsThoughTheStoreIsDestroyed) {
  const Kept limit = Bucket(5);
  const Kept one = Bucket(1);
  ASSERT_TRUE(Passes({ClaimOn("b:2", one)}));
  ASSERT_TRUE(Ask({ClaimOn("a:1", limit), ClaimOn("b:2", one)}).ok());
  parts_->part(1).Answer(kStart);
  store_.reset();
  parts_->part(2).Answer(kStart);
  ASSERT_TRUE(told(absl::StatusCode::kOk));
  EXPECT_FALSE(group_.allowed);
  EXPECT_EQ(parts_->part(1).undone(), 1u);
}

TEST_F(SplitStoreTest, WhoeverIsToldMayDestroyTheStore) {
  const Kept limit = Bucket(5);
  std::vector<RemoteClaim> claims = {ClaimOn("a:1", limit), ClaimOn("b:2", limit)};
  RemoteGroup group{.claims = claims};
  bool allowed = false;
  ASSERT_TRUE(store_
                  ->Apply(group, Time::max(),
                          [&](const absl::Status& status) {
                            store_.reset();
                            allowed = status.ok() && group.allowed;
                          })
                  .ok());
  parts_->Answer(kStart);
  EXPECT_TRUE(allowed);
}

TEST_F(SplitStoreTest, AStoreBehindThatIsClosedIsNotCalledAnyMore) {
  const Kept limit = Bucket(5);
  ASSERT_TRUE(Ask({ClaimOn("a:1", limit), ClaimOn("b:2", limit)}).ok());
  parts_->part(1).Answer(kStart);
  parts_->part(2).Fail(absl::CancelledError("closed"));
  EXPECT_TRUE(told(absl::StatusCode::kCancelled));
  EXPECT_EQ(parts_->part(1).undone(), 0u);
}

TEST_F(SplitStoreTest, CallbacksThatAreNeverCalledLeakNothing) {
  const Kept limit = Bucket(5);
  ASSERT_TRUE(Ask({ClaimOn("a:1", limit), ClaimOn("b:2", limit)}).ok());
  store_.reset();
  parts_.reset();  // and asan agrees
  EXPECT_FALSE(told_);
}

}  // namespace
}  // namespace sluice
