// Splitting a request over parts takes nothing from the heap once it has been done before: a
// counting operator new stands behind this whole program.
#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <memory>
#include <utility>
#include <vector>

#include "sluice/store/split_store.h"
#include "sluice/store/testing/instant_store.h"
#include "tests/allocations/counting_new.h"

namespace sluice {
namespace {

using namespace std::chrono_literals;

TEST(SplitStoreAllocations, ASplitTakesNothingFromTheHeap) {
  InstantStore inner;
  SplitStore store(inner, [](const RemoteClaim& claim) {
    return static_cast<std::uint32_t>(claim.key[1] - '0');
  });
  const std::shared_ptr<const RemoteLimit> limit = *store.Prepare({});
  // Of one part; of three; of two, one of which vetoes.
  std::array<RemoteClaim, 7> claims;
  constexpr std::array<std::string_view, 7> kKeys = {"a1", "a1", "b2", "c3", "e1", "d2", "f1"};
  for (std::size_t i = 0; i < claims.size(); ++i) {
    claims[i].key = kKeys[i];
    claims[i].limit = limit.get();
  }
  const std::span<RemoteClaim> all(claims);
  std::array<RemoteGroup, 3> groups = {{{.claims = all.subspan(0, 1)},
                                        {.claims = all.subspan(1, 3)},
                                        {.claims = all.subspan(4, 3)}}};
  int answers = 0;
  const auto round = [&] {
    for (RemoteGroup& group : groups) {
      EXPECT_TRUE(
          store.Apply(group, Time::max(), [&answers](const absl::Status&) { ++answers; }).ok());
    }
    inner.Answer();
  };
  CountAllocationsOfThisThread();
  for (int i = 0; i < 3; ++i) round();
  const std::uint64_t before = CountedAllocations();
  for (int i = 0; i < 1000; ++i) round();
  EXPECT_EQ(CountedAllocations(), before);
  EXPECT_EQ(answers, 3 * 1003);
  EXPECT_EQ(inner.undone(), 2 * 1003);
  EXPECT_TRUE(groups[1].allowed);
  EXPECT_FALSE(groups[2].allowed);
}

}  // namespace
}  // namespace sluice
