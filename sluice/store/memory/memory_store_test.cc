// What is the memory store's own: its bounds and its counters.

#include "sluice/store/memory/memory_store.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "sluice/base/clock.h"
#include "sluice/store/memory/internal/line.h"

namespace sluice {
namespace {

using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::seconds;

class MemoryStoreTest : public ::testing::Test {
 protected:
  void Open(const MemoryStoreOptions& options) {
    absl::StatusOr<std::unique_ptr<MemoryStore>> store = MemoryStore::Open(options, clock_.Read());
    ASSERT_TRUE(store.ok()) << store.status();
    store_ = *std::move(store);
  }
  void Open(std::uint64_t max_keys, std::uint64_t outside_bytes = 1 << 20) {
    MemoryStoreOptions options;
    options.max_keys = max_keys;
    options.outside_bytes = outside_bytes;
    options.max_slots = 100;
    Open(options);
  }
  Claim ClaimOn(const std::string& key, const Limit& limit, LimitId id, std::uint64_t cost = 1) {
    Claim claim;
    claim.key = store_->hash_key()(key);
    claim.limit = &limit;
    claim.limit_id = id;
    claim.cost = cost;
    return claim;
  }
  Claim Ask(const std::string& key, const Limit& limit, LimitId id, std::uint64_t cost = 1) {
    Claim claim = ClaimOn(key, limit, id, cost);
    ClaimGroup group{.claims = {&claim, 1}};
    store_->Apply({&group, 1}, clock_.Read());
    return claim;
  }
  MemoryStats Stats() { return store_->Stats(clock_.Read()); }

  ManualClock clock_;
  std::unique_ptr<MemoryStore> store_;
};

TEST_F(MemoryStoreTest, OptionsOutOfRangeAreRefusedWithTheirName) {
  const struct {
    MemoryStoreOptions options;
    std::string says;
  } rows[] = {
      {{.max_keys = 0}, "max_keys"},
      {{.max_keys = (std::uint64_t{1} << 30) + 1}, "max_keys"},
      {{.outside_bytes = (std::uint64_t{1} << 38) + 1}, "outside_bytes"},
      {{.max_slots = (1u << 26) + 1}, "max_slots"},
  };
  for (const auto& row : rows) {
    const auto refused = MemoryStore::Open(row.options, clock_.Read());
    EXPECT_TRUE(absl::IsInvalidArgument(refused.status())) << refused.status();
    EXPECT_NE(std::string(refused.status().message()).find(row.says), std::string::npos);
  }
}

TEST_F(MemoryStoreTest, TheSmallestTableWorks) {
  Open(1, 128 + 8);
  const Limit limit = token_bucket::MakeLimit({1, hours{1}}, 1).value();
  const LimitId id = store_->Register(limit).value();
  EXPECT_TRUE(Ask("ann", limit, id).decision.allowed());
  EXPECT_FALSE(Ask("ann", limit, id).decision.allowed());
}

TEST_F(MemoryStoreTest, ALimitThatNeedsMoreThanThereIsIsRefusedWhenItIsRegistered) {
  Open(100, 10'000);
  const Limit log = sliding_window_log::MakeLimit(10'000, hours{1}, false).value();
  const absl::StatusOr<LimitId> refused = store_->Register(log);
  EXPECT_TRUE(absl::IsResourceExhausted(refused.status())) << refused.status();
  EXPECT_NE(std::string(refused.status().message()).find("outside_bytes"), std::string::npos);
  EXPECT_TRUE(store_->Register(sliding_window_log::MakeLimit(100, hours{1}, false).value()).ok());

  MemoryStoreOptions no_slots;
  no_slots.max_keys = 10;
  no_slots.max_slots = 0;
  Open(no_slots);
  EXPECT_TRUE(absl::IsResourceExhausted(
      store_->Register(concurrency::MakeLimit(5, Duration{0}).value()).status()));
}

TEST_F(MemoryStoreTest, ThirtyTwoBytesAKeyAndNotOneMoreInAFlood) {
  constexpr std::uint64_t kKeys = 100'000;
  MemoryStoreOptions options;
  options.max_keys = kKeys;
  Open(options);
  const Limit limit = token_bucket::MakeLimit({10, seconds{1}}, 10).value();
  const LimitId id = store_->Register(limit).value();
  const MemoryStats before = Stats();
  EXPECT_LE(before.bytes, 32 * kKeys + 4'096);
  for (std::uint64_t i = 0; i < 10 * kKeys; ++i) {
    EXPECT_TRUE(Ask(std::to_string(i), limit, id).decision.allowed());
  }
  const MemoryStats after = Stats();
  EXPECT_EQ(after.bytes, before.bytes);
  EXPECT_LE(after.table_slots_occupied, after.table_slots);
  EXPECT_GT(after.evicted, 0u);
  EXPECT_GT(after.keys_live, kKeys);
  // Two windows later nobody owes anything, and new keys push nobody out.
  clock_.Advance(seconds{2});
  EXPECT_EQ(Stats().keys_live, 0u);
  for (int i = 0; i < 1'000; ++i) (void)Ask("later" + std::to_string(i), limit, id);
  EXPECT_EQ(Stats().evicted, after.evicted);
}

TEST_F(MemoryStoreTest, FewKeysAreForgottenAtSixtyPerCent) {
  constexpr std::uint64_t kKeys = 100'000;
  Open(kKeys);
  const Limit limit = token_bucket::MakeLimit({1, hours{1}}, 1).value();
  const LimitId id = store_->Register(limit).value();
  for (std::uint64_t i = 0; i < kKeys * 12 / 10; ++i) (void)Ask(std::to_string(i), limit, id);
  EXPECT_LE(Stats().evicted, kKeys * 5 / 10'000);
}

TEST_F(MemoryStoreTest, AUnitOfASlowLimitDoesNotOutweighAKeyThatOwesAThousand) {
  Open(500);
  const Limit fast = token_bucket::MakeLimit({1'000, seconds{1}}, 1'000).value();
  const Limit slow = token_bucket::MakeLimit({1, hours{1}}, 1).value();
  const LimitId fast_id = store_->Register(fast).value();
  const LimitId slow_id = store_->Register(slow).value();
  for (int i = 0; i < 20; ++i) (void)Ask("limited" + std::to_string(i), fast, fast_id, 1'000);
  for (int i = 0; i < 5'000; ++i) (void)Ask("once" + std::to_string(i), slow, slow_id);
  EXPECT_GT(Stats().evicted, 0u);
  for (int i = 0; i < 20; ++i) {
    EXPECT_FALSE(Ask("limited" + std::to_string(i), fast, fast_id).decision.allowed()) << i;
  }
}

TEST_F(MemoryStoreTest, BlocksOfKeysThatOweNothingAreTakenBeforeAnybodyIsForgotten) {
  Open(10'000, 128 * 200);
  const Limit log = sliding_window_log::MakeLimit(10, seconds{1}, false).value();
  const LimitId id = store_->Register(log).value();
  for (int second = 0; second < 50; ++second) {
    for (int i = 0; i < 100; ++i) {
      (void)Ask(std::to_string(second) + " " + std::to_string(i), log, id, 10);
    }
    clock_.Advance(seconds{1} + Duration{10});
  }
  EXPECT_EQ(Stats().evicted, 0u);
  EXPECT_GT(Stats().reclaimed, 0u);
  EXPECT_EQ(Stats().events_dropped, 0u);
}

TEST_F(MemoryStoreTest, ALongLogPushesOutThoseThatOweLess) {
  Open(10'000, 128 * 400);
  const Limit large = sliding_window_log::MakeLimit(5'000, hours{1}, false).value();
  const Limit small = sliding_window_log::MakeLimit(20, hours{1}, false).value();
  const LimitId large_id = store_->Register(large).value();
  const LimitId small_id = store_->Register(small).value();
  for (int i = 0; i < 300; ++i) (void)Ask("small" + std::to_string(i), small, small_id, 5);
  std::uint64_t admitted = 0;
  for (int i = 0; i < 6'000; ++i) admitted += Ask("large", large, large_id).receipt.units;
  EXPECT_EQ(admitted, 5'000u);
  EXPECT_GT(Stats().evicted, 0u);
  EXPECT_EQ(Stats().events_dropped, 0u);
  EXPECT_FALSE(Ask("large", large, large_id).decision.allowed());
}

TEST_F(MemoryStoreTest, AStoredWindowFarAheadOfNowIsDroppedAndCounted) {
  Open(100);
  const Limit limit = fixed_window::MakeLimit(5, minutes{1}).value();
  const LimitId id = store_->Register(limit).value();
  EXPECT_TRUE(Ask("ann", limit, id, 5).decision.allowed());
  clock_.StepWall(-minutes{1});  // a step back by a window opens no fresh budget
  EXPECT_FALSE(Ask("ann", limit, id).decision.allowed());
  EXPECT_EQ(Stats().damaged, 0u);
  clock_.StepWall(-minutes{10});
  EXPECT_TRUE(Ask("ann", limit, id).decision.allowed());
  EXPECT_EQ(Stats().damaged, 1u);
}

TEST_F(MemoryStoreTest, AReleasedLimitsNumberCarriesNoOldStateToTheNextLimit) {
  Open(100);
  const Limit old = token_bucket::MakeLimit({1, seconds{1}}, 5).value();
  const LimitId old_id = store_->Register(old).value();
  (void)Ask("ann", old, old_id, 5);
  store_->Release(old_id, clock_.Read());
  clock_.Advance(seconds{20});
  (void)Stats();
  // All numbers are used up, so that the old one must come back.
  LimitId id = 0;
  Limit next;
  for (std::int64_t n = 1; id != old_id; ++n) {
    next = fixed_window::MakeLimit(n, minutes{1}).value();
    const absl::StatusOr<LimitId> registered = store_->Register(next);
    ASSERT_TRUE(registered.ok()) << n << ": " << registered.status();
    id = *registered;
  }
  EXPECT_EQ(Ask("ann", next, id, 0).decision.remaining, CapacityOf(next));
  EXPECT_EQ(Stats().table_slots_occupied, 0u);
}

TEST(LineTest, TheComparisonFindsEveryTagWithTheFingerprintWhateverItsClass) {
  memory::Line line{};
  const std::uint64_t fingerprint = 0xabcdef0123456000;
  for (unsigned wanted = 0; wanted < 16; ++wanted) {
    for (int i = 0; i < memory::kSlotsPerLine; ++i) {
      const bool equal = (wanted >> i & 1) != 0;
      // Else it differs in one bit of either half.
      const std::uint64_t other = fingerprint ^ (std::uint64_t{1} << (12 + 16 * i % 52));
      line.tags[i] = (equal ? fingerprint : other) | static_cast<std::uint64_t>(1000 * i + 95);
    }
    EXPECT_EQ(memory::MatchMask(line, fingerprint), wanted);
  }
}

}  // namespace
}  // namespace sluice
