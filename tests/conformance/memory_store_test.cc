// The memory store through the suite.

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

INSTANTIATE_TEST_SUITE_P(Memory, StoreConformance, testing::Values(StoreKind{"memory", OpenMemory}),
                         [](const auto& kind) { return kind.param.name; });

}  // namespace
}  // namespace sluice::conformance
