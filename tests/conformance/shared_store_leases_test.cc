// The store of tests does leases as remote_store.h says.
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "sluice/base/clock.h"
#include "sluice/store/memory/memory_store.h"
#include "sluice/store/testing/shared_store.h"

namespace sluice {
namespace {

using namespace std::chrono_literals;

template <typename L>
Limit Made(absl::StatusOr<L> limit) {
  EXPECT_TRUE(limit.ok()) << limit.status();
  return *std::move(limit);
}

class SharedStoreTest : public ::testing::Test {
 protected:
  void SetUp() override {
    clock_.Advance(1'000'000s);
    auto opened = MemoryStore::Open({.max_keys = 1000}, clock_.Read());
    ASSERT_TRUE(opened.ok()) << opened.status();
    counters_ = *std::move(opened);
    a_ = std::make_unique<SharedStore>(*counters_, clock_.Read(), &leases_);
    b_ = std::make_unique<SharedStore>(*counters_, clock_.Read(), &leases_);
  }

  void Use(const Limit& limit) {
    auto prepared = a_->Prepare(limit);
    ASSERT_TRUE(prepared.ok()) << prepared.status();
    limit_ = *prepared;
  }
  RemoteClaim Ask(SharedStore& node, std::uint64_t cost, Duration lease = 0s) {
    RemoteClaim claim{.key = "ann", .limit = limit_.get(), .cost = cost, .lease = lease};
    RemoteGroup group{.claims = {&claim, 1}};
    EXPECT_TRUE(node.Apply(group, Time::max(), [](const absl::Status&) {}).ok());
    node.Answer(clock_.Read());
    EXPECT_EQ(group.allowed, claim.decision.allowed());
    return claim;
  }
  void Undo(SharedStore& node, const RemoteClaim& claim, std::uint64_t units) {
    node.SetNow(clock_.Read());
    node.Undo(claim, units);
  }
  std::uint64_t Remaining() { return Ask(*b_, 0).decision.remaining; }

  ManualClock clock_;
  std::unique_ptr<MemoryStore> counters_;
  SharedLeases leases_;
  std::unique_ptr<SharedStore> a_;
  std::unique_ptr<SharedStore> b_;
  std::shared_ptr<const RemoteLimit> limit_;
};

TEST_F(SharedStoreTest, ALeaseOfABucketIsChargedAtItsEnd) {
  Use(Made(token_bucket::MakeLimit({10, 1s}, 10)));
  const RemoteClaim lease = Ask(*a_, 4, 200ms);
  EXPECT_TRUE(lease.decision.allowed());
  EXPECT_EQ(lease.good_for, 200ms);
  EXPECT_EQ(lease.decision.remaining, 4U) << "two units are paid back until the end";
  EXPECT_EQ(Ask(*b_, 5, 200ms).decision.retry_after, 100ms);
  clock_.Advance(200ms);
  EXPECT_EQ(Remaining(), 6U);
}

TEST_F(SharedStoreTest, WhatIsNotSpentComesBackInParts) {
  Use(Made(token_bucket::MakeLimit({10, 1s}, 10)));
  const RemoteClaim lease = Ask(*a_, 4, 200ms);
  clock_.Advance(100ms);
  Undo(*a_, lease, 1);
  EXPECT_EQ(Remaining(), 6U);
  clock_.Advance(100ms);
  Undo(*a_, lease, 2);
  EXPECT_EQ(Remaining(), 9U);
  clock_.Advance(100ms);
  Undo(*a_, lease, 1);
  EXPECT_EQ(Remaining(), 10U);
}

TEST_F(SharedStoreTest, AnUndoOfAChargeBringsNothingBeforeALeasesEnd) {
  Use(Made(token_bucket::MakeLimit({10, 1s}, 10)));
  const RemoteClaim charge = Ask(*b_, 2);
  (void)Ask(*a_, 4, 500ms);
  Undo(*b_, charge, 2);
  EXPECT_EQ(Remaining(), 1U) << "paid back until the lease's end";
}

TEST_F(SharedStoreTest, ALeaseThatCanNeverPassSaysSo) {
  Use(Made(token_bucket::MakeLimit({10, 1s}, 10)));
  const RemoteClaim lease = Ask(*a_, 9, 200ms);
  EXPECT_EQ(lease.decision.verdict, Verdict::kNever);
  EXPECT_EQ(lease.decision.remaining, 10U);
  EXPECT_EQ(lease.receipt.units, 0U);
  EXPECT_EQ(Remaining(), 10U);
}

TEST_F(SharedStoreTest, ALeaseOfALogOrStrictCounterCountsFromItsEnd) {
  for (const Limit& limit : {Made(sliding_window_log::MakeLimit(10, 1s, true)),
                             Made(sliding_window_strict::MakeLimit(10, 1s, 10))}) {
    SCOPED_TRACE(std::string(AlgorithmName(limit)));
    Use(limit);
    const RemoteClaim lease = Ask(*a_, 10, 300ms);
    ASSERT_TRUE(lease.decision.allowed());
    EXPECT_EQ(lease.good_for, 300ms);
    Undo(*a_, lease, 1);
    EXPECT_EQ(Remaining(), 1U);
    clock_.Advance(1100ms);
    Undo(*a_, lease, 2);
    EXPECT_EQ(Remaining(), 3U) << "spent at the end, it counts for a window from then on";
    clock_.Advance(300ms);
    EXPECT_EQ(Remaining(), 10U);
    clock_.Advance(5s);
  }
}

TEST_F(SharedStoreTest, ALeaseEndsWithItsWindow) {
  Use(Made(fixed_window::MakeLimit(10, 1s)));
  clock_.Advance(900ms);
  EXPECT_EQ(Ask(*a_, 4, 300ms).good_for, 100ms);
  EXPECT_EQ(Remaining(), 6U);
  clock_.Advance(100ms);
  const RemoteClaim lease = Ask(*a_, 4, 300ms);
  EXPECT_EQ(lease.good_for, 300ms);
  Undo(*a_, lease, 3);
  EXPECT_EQ(Remaining(), 9U);
}

}  // namespace
}  // namespace sluice
