// The memory store through the suite.

#include <gtest/gtest.h>

#include <chrono>
#include <string>

#include "sluice/store/memory/memory_store.h"
#include "tests/conformance/store_under_test.h"

namespace sluice::conformance {
namespace {

OpenStore OpenMemory(std::uint64_t keys, std::uint32_t concurrency_slots, Now now) {
  MemoryStoreOptions options;
  options.max_keys = keys;
  options.outside_bytes = std::uint64_t{16} << 20;
  options.max_slots = concurrency_slots;
  absl::StatusOr<std::unique_ptr<MemoryStore>> store = MemoryStore::Open(options, now);
  EXPECT_TRUE(store.ok()) << store.status();
  const HashKey key = (*store)->hash_key();
  return {*std::move(store), key};
}

const auto kMemory = testing::Values(StoreKind{"memory", OpenMemory});
std::string NameOf(const testing::TestParamInfo<StoreKind>& kind) { return kind.param.name; }

INSTANTIATE_TEST_SUITE_P(Memory, StoreConformance, kMemory, NameOf);
INSTANTIATE_TEST_SUITE_P(Memory, BoundedStoreConformance, kMemory, NameOf);
INSTANTIATE_TEST_SUITE_P(Memory, LocalStoreConformance, kMemory, NameOf);

// Half a million keys once each, through a table for a hundred thousand: no byte more than at the
// start, and once they owe nothing nobody is forgotten for want of room any more.
TEST(MemoryFloodTest, AFloodOfKeysTakesNoMemoryAndLeavesNoTrace) {
  Now now{Time{std::chrono::hours{1}}, WallTime{std::chrono::hours{24}}};
  auto store = MemoryStore::Open({.max_keys = 100'000}, now);
  ASSERT_TRUE(store.ok()) << store.status();
  const Limit limit =
      *token_bucket::MakeLimit({.count = 10, .period = std::chrono::seconds{1}}, 10);
  const absl::StatusOr<LimitId> id = (*store)->Register(limit);
  ASSERT_TRUE(id.ok()) << id.status();
  const auto ask = [&](int number) {
    const std::string key = "client " + std::to_string(number);
    Claim claim{.key = (*store)->hash_key()(key), .limit = &limit, .limit_id = *id};
    ClaimGroup group{.claims = {&claim, 1}};
    (*store)->Apply({&group, 1}, now);
    return group.allowed;
  };
  const std::uint64_t bytes = (*store)->Stats(now).bytes;
  for (int i = 0; i < 500'000; ++i) ASSERT_TRUE(ask(i));
  EXPECT_EQ((*store)->Stats(now).bytes, bytes);
  EXPECT_GT((*store)->Stats(now).evicted, 0u);

  now.steady += std::chrono::seconds{2};
  now.wall += std::chrono::seconds{2};
  EXPECT_EQ((*store)->Stats(now).keys_live, 0u);
  const std::uint64_t evicted = (*store)->Stats(now).evicted;
  for (int i = 0; i < 1000; ++i) ASSERT_TRUE(ask(-i - 1));
  EXPECT_EQ((*store)->Stats(now).evicted, evicted);
  EXPECT_EQ((*store)->Stats(now).bytes, bytes);
}

}  // namespace
}  // namespace sluice::conformance
