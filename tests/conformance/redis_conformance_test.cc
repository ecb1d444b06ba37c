// The store in Redis through the suite, on a real server.

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>

#include "tests/conformance/remote_as_store.h"
#include "tests/conformance/store_under_test.h"

namespace sluice::conformance {
namespace {

// Room is the server's affair.
OpenStore OpenRedis(std::uint64_t /*keys*/, std::uint32_t /*slots*/, Now /*now*/) {
  auto store = std::make_unique<RemoteAsStore>(RemoteAsStore::Of::kServer);
  RemoteAsStore* const keys = store.get();
  return {std::move(store), [keys](std::string_view name) { return keys->KeyOf(name); }};
}

INSTANTIATE_TEST_SUITE_P(Redis, StoreConformance,
                         testing::Values(StoreKind{.name = "redis",
                                                   .open = OpenRedis,
                                                   .tick = std::chrono::microseconds{1},
                                                   .shows = RemoteAsStore::Shows,
                                                   .vectors = 47,
                                                   .cost_of_call = 10}),
                         [](const auto& kind) { return kind.param.name; });

// It has no bound of its own: a server at its maxmemory answers OOM or evicts, as it is told to
// (docs/redis.md).
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(BoundedStoreConformance);
// It keeps no list of the limits that nodes use: a state is converted when it is met, and a slot
// that is renewed too late is taken again (store/remote_store.h).
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(LocalStoreConformance);

}  // namespace
}  // namespace sluice::conformance
