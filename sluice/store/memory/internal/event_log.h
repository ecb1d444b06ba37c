// A sliding window's log in blocks: the EventLog of sluice/algorithm/sliding_window_log.h.
//
//   head block  | link | front, back, how many, sum, latest | 24 cells |
//   others      | link |                                      31 cells |
//
// A queue over the circle of blocks: events are appended behind `back` and leave at `front`; a
// block that is empty leaves the circle, but for the head, which then lies between back and front
// and waits to be filled again. A short log lives in its head alone. Stamps take one cell each,
// events with a cost two, which never lie in different blocks.
//
// Cost: 4 bytes an event (8 with its cost) and at most two blocks more.
#pragma once

#include <cstdint>

#include "sluice/algorithm/sliding_window_log.h"
#include "sluice/base/time.h"
#include "sluice/store/memory/internal/block_arena.h"

namespace sluice::memory {

class EventLog {
 public:
  using Event = sliding_window_log::Event;

  // The log in the circle of `head`, which must be the caller's alone.
  EventLog(BlockArena& arena, BlockNumber head, bool weighted)
      : arena_(arena),
        head_(head),
        weighted_(weighted),
        cursor_{0, Head().front, Head().front_at} {}

  // Makes an empty log of a block just taken.
  static void Init(BlockArena& arena, BlockNumber head);

  // The circle's head now: a log that was emptied may have got another one.
  [[nodiscard]] BlockNumber head() const { return head_; }

  [[nodiscard]] std::uint64_t size() const { return Head().count; }
  [[nodiscard]] std::uint64_t sum() const { return Head().sum; }
  [[nodiscard]] Time latest() const { return Time{Duration{Head().latest}}; }
  void set_latest(Time latest) { Head().latest = latest.time_since_epoch().count(); }

  // The n-th oldest event. In constant time for the newest one, and for those at and right behind
  // the last one asked for; else it walks along the blocks.
  [[nodiscard]] Event at(std::uint64_t n) const;
  void set_cost(std::uint64_t n, std::uint32_t cost);
  void erase(std::uint64_t n);

  // False: it needs a block and the arena has none left.
  [[nodiscard]] bool Append(Event event);
  void DropOldest(std::uint64_t events);

 private:
  struct HeadBlock {
    std::uint32_t next;
    BlockNumber front;  // where the oldest event is
    std::int64_t latest;
    BlockNumber back;  // where the newest event is, or the next one comes
    std::uint32_t count;
    std::uint32_t sum;
    std::uint8_t front_at;  // events of the front block that have left
    std::uint8_t back_at;   // places of the back block that were filled
    std::uint32_t cells[24];
  };
  static_assert(sizeof(HeadBlock) == sizeof(Block));
  struct Cursor {
    std::uint64_t n;  // the n-th oldest event ...
    BlockNumber block;
    std::uint32_t at;  // ... is this one of the block's
  };

  [[nodiscard]] HeadBlock& Head() const;
  [[nodiscard]] std::uint32_t Capacity(BlockNumber block) const;
  [[nodiscard]] std::uint32_t* Cell(BlockNumber block, std::uint32_t at) const;
  [[nodiscard]] Event Get(const Cursor& cursor) const;
  void Set(const Cursor& cursor, Event event);
  [[nodiscard]] Cursor Seek(std::uint64_t n) const;
  [[nodiscard]] Cursor Next(Cursor cursor) const;

  [[nodiscard]] bool MakeRoomAtBack();
  void LeaveFrontBlock();
  void LeaveBackBlock();
  void Clear();
  void ResetCursor() { cursor_ = {0, Head().front, Head().front_at}; }

  BlockArena& arena_;
  BlockNumber head_;
  const bool weighted_;
  mutable Cursor cursor_;
};

static_assert(sliding_window_log::MutableEventLog<EventLog>);

}  // namespace sluice::memory
