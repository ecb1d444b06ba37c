// The parts of a memory store, put together: which part answers for a claim, and all claims of a
// request at once.
#pragma once

#include <cstdint>
#include <mutex>
#include <span>
#include <utility>

#include "absl/status/statusor.h"
#include "sluice/base/hash.h"
#include "sluice/base/time.h"
#include "sluice/store/memory/internal/block_arena.h"
#include "sluice/store/memory/internal/concurrency_table.h"
#include "sluice/store/memory/internal/counters.h"
#include "sluice/store/memory/internal/eviction.h"
#include "sluice/store/memory/internal/key_claims.h"
#include "sluice/store/memory/internal/limit_registry.h"
#include "sluice/store/memory/internal/line_table.h"
#include "sluice/store/memory/internal/snapshot.h"
#include "sluice/store/memory/memory_store.h"

namespace sluice {

class MemoryStore::Engine {
 public:
  Engine(const MemoryStoreOptions& options, const HashKey& key, memory::LineTable lines);

  // Opens what states under `limit` need besides the lines.
  absl::Status PrepareFor(const Limit& limit);
  // All that is taken from the system so far.
  [[nodiscard]] std::size_t BytesTaken() const;

  [[nodiscard]] memory::SnapshotParts SnapshotParts() {
    return {table, arena, limits, eviction, counters};
  }

  void Apply(ClaimGroup& group, Now now);
  // Each by itself, in order; the memory of those behind is fetched meanwhile.
  void ApplyAll(std::span<ClaimGroup> groups, Now now);
  void Undo(Claim& claim, std::uint64_t units, Now now);
  bool Renew(const Claim& claim, Now now);

  const std::uint64_t max_keys;
  const HashKey hash_key;
  memory::Counters counters;
  memory::LineTable table;
  memory::BlockArena arena;
  memory::LimitRegistry limits;
  memory::Eviction eviction;
  memory::KeyClaims keys;
  memory::ConcurrencyTable concurrency;

 private:
  void PrefetchLines(const ClaimGroup& group) const;
  // Of those claims whose states lie in blocks. Looks at their lines.
  void PrefetchBlocks(const ClaimGroup& group) const;

  // The claim's limit where it is one of concurrency, else null.
  [[nodiscard]] const concurrency::Limit* SlotsOf(const Claim& claim) const;
  // Each of these sets the claim's decision, and its receipt where it charges. True: there was
  // room.
  bool Look(Claim& claim, Now now);
  bool Charge(Claim& claim, Now now);
  void Force(Claim& claim, Now now);

  // Charges every binding claim, or none of them.
  bool ChargeAll(std::span<Claim> claims, Now now);
  void ChargeOthers(std::span<Claim> claims, bool allowed, Now now);

  mutable std::mutex taking_mutex_;  // over what is taken from the system late
};

}  // namespace sluice
