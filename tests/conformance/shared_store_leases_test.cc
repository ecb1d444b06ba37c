// The store of tests does leases as remote_store.h says.
#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <string>

#include "sluice/algorithm/testing/lease_trace.h"
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

// A key in the counters that two nodes share, each asked by turns.
class SharedKey final : public testing::LeasedKey {
 public:
  SharedKey(const Limit& limit, Now now) {
    auto opened = MemoryStore::Open({.max_keys = 100}, now);
    EXPECT_TRUE(opened.ok()) << opened.status();
    counters_ = *std::move(opened);
    for (auto& node : nodes_) node = std::make_unique<SharedStore>(*counters_, now, &leases_);
    limit_ = *nodes_[0]->Prepare(limit);
  }

  testing::PureKey::Answer Charge(std::uint64_t cost, Now now) override {
    return Ask(cost, now, 0s);
  }
  testing::PureKey::Answer Lease(std::uint64_t cost, Now now, Duration length) override {
    return Ask(cost, now, length);
  }
  void Undo(const Receipt& receipt, bool lease, std::uint64_t units, Now now) override {
    RemoteClaim claim{.key = "ann", .limit = limit_.get(), .lease = lease ? 1s : 0s};
    claim.receipt = receipt;
    SharedStore& node = *nodes_[turn_++ % 2];
    node.SetNow(now);
    node.Undo(claim, units);
  }

 private:
  testing::PureKey::Answer Ask(std::uint64_t cost, Now now, Duration lease) {
    RemoteClaim claim{.key = "ann", .limit = limit_.get(), .cost = cost, .lease = lease};
    RemoteGroup group{.claims = {&claim, 1}};
    SharedStore& node = *nodes_[turn_++ % 2];
    EXPECT_TRUE(node.Apply(group, Time::max(), [](const absl::Status&) {}).ok());
    node.Answer(now);
    if (claim.decision.allowed()) {
      EXPECT_EQ(claim.good_for, LeaseGoodFor(limit_->limit(), claim.decision, lease));
    }
    return {claim.decision, claim.receipt};
  }

  std::unique_ptr<MemoryStore> counters_;
  SharedLeases leases_;
  std::array<std::unique_ptr<SharedStore>, 2> nodes_;
  std::shared_ptr<const RemoteLimit> limit_;
  std::size_t turn_ = 0;
};

// Units in the stretch of so long that ends with the last that was spent.
std::uint64_t UnitsWithin(const testing::LeaseTrace& trace, Duration length) {
  std::uint64_t units = 0;
  const auto& spent = trace.spent();
  for (const testing::Spent& some : spent) {
    if (spent.back().at - some.at < length) units += some.units;
  }
  return units;
}

TEST(SharedStoreLeasesTest, NoStretchHasMoreThanTheLimitPromises) {
  const Limit limits[] = {Made(token_bucket::MakeLimit({10, 1s}, 12)),
                          Made(sliding_window_log::MakeLimit(12, 1s, true)),
                          Made(sliding_window_strict::MakeLimit(12, 1s, 8))};
  for (const Limit& limit : limits) {
    const bool bucket = std::holds_alternative<token_bucket::Limit>(limit);
    for (std::uint64_t seed = 0; seed < 100; ++seed) {
      SCOPED_TRACE(std::string(AlgorithmName(limit)) + " seed " + std::to_string(seed));
      SharedKey key(limit, testing::At(24h * 7 * 500));
      testing::LeaseTrace trace(limit, {.stride = 250ms, .length = 500ms, .most_cost = 5}, seed,
                                &key);
      while (trace.Step()) {
        if (!bucket) {
          ASSERT_LE(UnitsWithin(trace, 1s), 12U);
          continue;
        }
        for (const Duration length :
             {Duration{1ns}, Duration{100ms}, Duration{500ms}, Duration{3s}}) {
          ASSERT_LE(UnitsWithin(trace, length), 12U + static_cast<std::uint64_t>(length / 100ms));
        }
      }
      EXPECT_GT(trace.leases(), 0);
    }
  }
}

}  // namespace
}  // namespace sluice
