// The states that lie in blocks: what a head block means under its limit, and the algorithms on it.
//
//   small   one of the small states (sluice/algorithm/state.h) as it is, in the head
//   strict  number of the newest sub-window, then the counters, 4 bytes each while twice the limit
//           fits, else 8; through as many blocks as it takes
//   log     event_log.h
//
// All require that the caller has taken the slot that owns the head.
#pragma once

#include <cstdint>

#include "sluice/algorithm/limit.h"
#include "sluice/algorithm/state.h"
#include "sluice/base/time.h"
#include "sluice/store/memory/internal/block_arena.h"
#include "sluice/store/memory/internal/counters.h"
#include "sluice/store/memory/internal/limit_registry.h"

namespace sluice::memory {

// Where blocks come from: the arena, and when that is used up, others' states (eviction.h).
class BlockSource {
 public:
  virtual ~BlockSource() = default;
  // Makes at least one block free, whoever takes it. False: none can be freed just now.
  [[nodiscard]] virtual bool MakeFreeBlock(Now now) = 0;
};

// A small state in its head block.
[[nodiscard]] SmallState LoadSmall(const BlockArena& arena, BlockNumber head);
void StoreSmall(BlockArena& arena, BlockNumber head, const SmallState& state);

// What a decision or a charge answers about a state in blocks.
struct OutsideAnswer {
  Decision decision;
  Receipt receipt;  // units 0 when nothing was charged
  bool damaged = false;
};

class OutsideStates {
 public:
  OutsideStates(BlockArena& arena, BlockSource& source, Counters& counters)
      : arena_(arena), source_(source), counters_(counters) {}

  // How many blocks one key may need under `limit`, at the most.
  [[nodiscard]] static std::uint64_t MaxBlocks(const Limit& limit);

  // The head of a state that owes nothing. 0: no block is left, and none can be freed.
  [[nodiscard]] BlockNumber Create(const Limit& limit, Now now);
  void Free(BlockNumber head) { arena_.GiveCircle(head); }

  // A decision, without a charge. May drop what is over.
  OutsideAnswer Decide(const Limit& limit, BlockNumber& head, std::uint64_t cost, Now now);
  // Decides, and charges where there is room.
  OutsideAnswer Charge(const Limit& limit, BlockNumber& head, std::uint64_t cost, Now now);
  // Charges whatever the room, up to `max_debt` units.
  OutsideAnswer Force(const Limit& limit, BlockNumber& head, std::uint64_t cost, Now now,
                      std::uint64_t max_debt);
  void Undo(const Limit& limit, BlockNumber& head, const Receipt& receipt, std::uint64_t units,
            Now now);

  // Units owed. 0: as good as absent.
  [[nodiscard]] std::uint64_t Debt(const Limit& limit, BlockNumber head, Now now) const;
  // The same in constant time: for a log that is not wholly over, all that it holds.
  [[nodiscard]] std::uint64_t DebtAtMost(const Limit& limit, BlockNumber head, Now now) const;

  // Whether a state under `from` is one under `to` as it lies there; only the limit's size differs.
  [[nodiscard]] static bool SameShape(const Limit& from, const Limit& to);
  // A new state that owes `units`, at most the capacity. 0 as Create().
  [[nodiscard]] BlockNumber CreateOwing(const Limit& limit, std::uint64_t units, Now now);
  // A new small state, converted from one of the same algorithm that lies in `head`. 0 as Create().
  [[nodiscard]] BlockNumber CreateConverted(const Limit& from, BlockNumber head, const Limit& to,
                                            Now now);
  // What a state that is not there yet would answer.
  [[nodiscard]] static OutsideAnswer DecideAbsent(const Limit& limit, std::uint64_t cost, Now now);

 private:
  [[nodiscard]] BlockNumber TakeBlock(Now now);
  OutsideAnswer Log(const sliding_window_log::Limit& limit, BlockNumber& head, std::uint64_t cost,
                    Now now, bool charge, std::uint64_t max_debt);

  BlockArena& arena_;
  BlockSource& source_;
  Counters& counters_;
};

}  // namespace sluice::memory
