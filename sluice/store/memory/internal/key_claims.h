// One claim on one key of the table: look, charge, charge in any case, give back.
//
//   hash -> lines -> slot -> decide -> compare-and-swap of the word           (words)
//                    absent? lock of the stripe, look again, room for it
//   hash -> lock of the stripe -> slot -> take it -> decide, change blocks -> publish     (blocks)
//
// A slot that was written under another limit is converted first, under the stripe's lock.
//
// Concurrency is kept elsewhere (concurrency_table.h).
#pragma once

#include <cstdint>
#include <optional>

#include "sluice/base/time.h"
#include "sluice/store/memory/internal/counters.h"
#include "sluice/store/memory/internal/eviction.h"
#include "sluice/store/memory/internal/limit_registry.h"
#include "sluice/store/memory/internal/line_table.h"
#include "sluice/store/store.h"

namespace sluice::memory {

// The debt that a forced charge may run up to: one burst beyond the capacity.
[[nodiscard]] std::uint64_t ForcedDebt(const Limit& limit);

class KeyClaims {
 public:
  KeyClaims(LineTable& table, LimitRegistry& limits, Eviction& eviction, Counters& counters)
      : table_(table), limits_(limits), eviction_(eviction), counters_(counters) {}

  // Each sets the claim's decision and receipt.
  // What the claim's cost would get; remaining and reset_after as they are without it.
  void Look(Claim& claim, Now now);
  // Charges if there is room.
  void Charge(Claim& claim, Now now);
  // Charges whatever the room, up to ForcedDebt.
  void Force(Claim& claim, Now now);
  void Undo(const Claim& claim, std::uint64_t units, Now now);

 private:
  struct Answer {
    Decision decision;
    Receipt receipt;  // units 0: nothing was charged
  };
  enum class How : std::uint8_t { kLook, kCharge, kForce };
  // A claim with all that is looked up for it.
  struct Asked {
    Asked(const Claim& claim, const LimitTraits& traits_of_limit, How how_asked, Now now_given);

    Place place;
    LimitId id;
    How how;
    const Limit& limit;
    const LimitTraits& traits;
    std::uint64_t cost;
    Now now;         // the key's own, see NowOf
    Now common_now;  // as it was given
  };
  enum class Met : std::uint8_t { kAbsent, kOwn, kOther };

  // Finds the key and reads its slot as a whole. kOther: under another limit.
  [[nodiscard]] Met Meet(const Asked& asked, Slot& slot, Seen& seen) const;

  // The common case, and no other: the key is there, under this limit, its word is the state, and
  // nobody else is after it. False: nothing was done.
  bool ChargeAtOnce(Claim& claim, const LimitTraits& traits, Now now);
  void Ask(Claim& claim, How how, Now now);
  Answer AskWord(const Asked& asked);
  Answer AskBlocks(const Asked& asked);
  Answer AskBlocksAbsent(const Asked& asked);
  [[nodiscard]] Step<std::uint64_t> DecideOnWord(const Asked& asked, std::uint64_t word) const;
  Answer DecideOnBlocks(const Asked& asked, BlockNumber& head);
  bool InsertWord(const Asked& asked, std::uint64_t word);
  void UndoWord(const Asked& asked, const Receipt& receipt, std::uint64_t units);
  void UndoBlocks(const Asked& asked, const Receipt& receipt, std::uint64_t units);

  // The state that was seen under another limit becomes one under the claim's limit, and nullopt
  // says to look again. Or it stays as it is, for owing more than the claim's limit could hold
  // while two rule sets may be in force; then the answer is that of a full state. Requires the
  // stripe's lock.
  struct Old;
  std::optional<Answer> Convert(const Asked& asked, const Slot& slot, const Seen& seen);
  std::optional<Answer> ConvertToWord(const Asked& asked, const Slot& slot, const Old& old);
  std::optional<Answer> ConvertToBlocks(const Asked& asked, const Slot& slot, const Old& old);
  void Become(const Asked& asked, const Slot& slot, const Old& old, std::uint64_t word);

  LineTable& table_;
  LimitRegistry& limits_;
  Eviction& eviction_;
  Counters& counters_;
};

}  // namespace sluice::memory
