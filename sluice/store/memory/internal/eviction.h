// Eviction: which slot a new key gets, and whose state gives way to it.
//
// A new key takes, in this order:
//
//   1. a slot whose key owes nothing: in its first line while that has fewer than two live keys,
//      else in the emptier of its two lines; nothing is lost by it
//   2. such a slot in its stash line
//   3. of all these the slot whose key owes the fewest units: that is the least that can be lost
//
// The third rule is what makes a flood of new keys harmless: a flood's keys owe one unit each and
// push each other out, while a key at its limit owes the most. (In a simulation of 60 s, 200,000
// new keys a second over a table of 262,144 slots let abusers spend 0.0 % above their limit; with
// the least recently used giving way it was 41 %, with a random one 181 %.) A flood of keys that
// all owe their whole limit can push out others; it costs the attacker a full limit for each slot,
// and nobody is denied by it.
//
// Blocks outside of the lines are made free in the same spirit, by a hand that goes around: first
// what owes nothing, else the least debt among a sample.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <optional>

#include "sluice/store/memory/internal/block_arena.h"
#include "sluice/store/memory/internal/counters.h"
#include "sluice/store/memory/internal/limit_registry.h"
#include "sluice/store/memory/internal/line_table.h"
#include "sluice/store/memory/internal/outside_state.h"

namespace sluice::memory {

// A key's own moment: its windows' edges may be moved by a phase drawn from its fingerprint.
[[nodiscard]] inline Now NowOf(const LimitTraits& traits, const Limit& limit,
                               std::uint64_t fingerprint, Now now) {
  if (!traits.phased) [[likely]] {
    return now;
  }
  now.wall -= PhaseOf(limit, static_cast<std::uint32_t>(fingerprint >> 32));
  return now;
}

class Eviction final : public BlockSource {
 public:
  Eviction(LineTable& table, LimitRegistry& limits, BlockArena& arena, Counters& counters)
      : table_(table),
        limits_(limits),
        arena_(arena),
        counters_(counters),
        outside_(arena, *this, counters) {}

  // Puts a key into a slot of its own. Requires its stripe's lock, and that it is nowhere yet.
  void Insert(const Place& place, LimitId id, std::uint64_t word, Now now);

  bool MakeFreeBlock(Now now) override;

  // Takes everything that was written under `ids` out of the table.
  void Sweep(const LimitRegistry::Ids& ids);

  // Of lines spread evenly over the table, about `lines` of them: the share of the slots whose key
  // owes something, in 2^-32. Requires a LimitRegistry::Reading.
  [[nodiscard]] std::uint64_t LiveShare(std::size_t lines, Now now);

  [[nodiscard]] OutsideStates& outside() { return outside_; }
  // Tells the hand where the state of `head` is; before the slot is published.
  void SetOwner(BlockNumber head, const Slot& slot) {
    arena_.SetOwner(head, table_.NumberOf(slot));
  }

 private:
  struct Candidate {
    Slot slot;
    Seen seen;
    std::uint64_t debt = 0;  // as of DebtOf()
  };
  // The slots that may give way, and the live ones among them.
  struct Candidates {
    std::array<Candidate, 3 * kSlotsPerLine> slots;
    int count = 0;
  };

  // In 1/256 of a unit, so that of two keys that owe parts of a unit the smaller gives way. 0: the
  // slot is free. nullopt: it is changing just now.
  std::optional<std::uint64_t> DebtOf(const Slot& slot, const Seen& seen, Now now);
  // Adds the line's slots, tells how many are live, and gives one that is not.
  int ScanLine(Line& line, Now now, Candidates& all, Candidate& free);
  void SweepSlot(const Slot& slot, const LimitRegistry::Ids& ids);
  std::optional<Candidate> ChooseVictim(const Place& place, Now now);
  // Takes the victim's slot, if it still owes what it was judged by, and publishes `state` there.
  bool TakeOver(const Candidate& victim, const Seen& state, Now now);

  // One step of the hand: nullopt when there is no state at this block, or it is busy.
  std::optional<Candidate> CandidateAt(BlockNumber block, Now now);

  LineTable& table_;
  LimitRegistry& limits_;
  BlockArena& arena_;
  Counters& counters_;
  OutsideStates outside_;
  std::atomic<std::uint32_t> hand_{0};
};

}  // namespace sluice::memory
