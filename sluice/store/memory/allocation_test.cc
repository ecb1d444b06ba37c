// Deciding allocates nothing: a counting operator new stands behind this whole program.

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <memory>
#include <vector>

#include "sluice/base/clock.h"
#include "sluice/store/memory/memory_store.h"
#include "tests/allocations/counting_new.h"

namespace sluice {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;

std::vector<Limit> EveryLimit(std::int64_t limit, Duration window) {
  return {token_bucket::MakeLimit({limit, window}, static_cast<std::uint64_t>(limit)).value(),
          leaky_bucket::MakeLimit({limit, window}, 10, window).value(),
          fixed_window::MakeLimit(limit, window).value(),
          fixed_window::MakeLimit(std::int64_t{1} << 60, window).value(),
          sliding_window_counter::MakeLimit(limit, window).value(),
          calendar::MakeLimit(limit, calendar::Period::kDay, "UTC").value(),
          sliding_window_strict::MakeLimit(limit, window, 60).value(),
          sliding_window_log::MakeLimit(limit, window, false).value(),
          sliding_window_log::MakeLimit(limit, window, true).value(),
          concurrency::MakeLimit(limit, window).value()};
}

TEST(AllocationTest, NothingIsAllocatedWhenRequestsAreDecided) {
  ManualClock clock;
  MemoryStoreOptions options;
  options.max_keys = 100;
  options.outside_bytes = 128 * 100;
  options.max_slots = 100;
  const std::unique_ptr<MemoryStore> store = MemoryStore::Open(options, clock.Read()).value();
  const std::vector<Limit> limits = EveryLimit(20, minutes{1});
  const std::vector<Limit> others = EveryLimit(30, minutes{1});
  std::vector<LimitId> ids;
  std::vector<LimitId> other_ids;
  for (const Limit& limit : limits) ids.push_back(store->Register(limit).value());
  for (const Limit& limit : others) other_ids.push_back(store->Register(limit).value());
  std::array<Claim, Store::kMaxBatch> claims;
  std::array<ClaimGroup, Store::kMaxBatch> groups;
  std::array<char, 16> name{};

  CountAllocationsOfThisThread();
  const std::uint64_t before = CountedAllocations();
  for (std::uint64_t round = 0; round < 2'000; ++round) {
    for (std::size_t i = 0; i < claims.size(); ++i) {
      const std::size_t which = (round + i) % limits.size();
      // Few keys that stay, many new ones: hits, inserts, evictions, conversions, full arenas.
      const auto key = static_cast<std::uint16_t>(i % 3 == 0 ? i : round * 32 + i);
      name[0] = static_cast<char>(which);
      std::memcpy(&name[1], &key, sizeof key);
      const bool other = round % 7 == 0;
      claims[i] = {};
      claims[i].key = store->hash_key()({name.data(), name.size()});
      claims[i].limit = other ? &others[which] : &limits[which];
      claims[i].limit_id = other ? other_ids[which] : ids[which];
      claims[i].kind = static_cast<ClaimKind>(round % 4);
      claims[i].charge_denied = round % 5 == 0;
      claims[i].cost = 1 + i % 4;
      groups[i].claims = {&claims[i - i % 2], 1 + i % 2};
    }
    store->Apply(groups, clock.Read());
    for (Claim& claim : claims) {
      (void)store->Renew(claim, clock.Read());
      if (round % 3 == 0) store->Undo(claim, claim.receipt.units, clock.Read());
    }
    clock.Advance(seconds{1});
  }
  EXPECT_EQ(CountedAllocations(), before);
  EXPECT_GT(store->Stats(clock.Read()).conversions, 0u);
  EXPECT_GT(store->Stats(clock.Read()).evicted, 0u);
}

}  // namespace
}  // namespace sluice
