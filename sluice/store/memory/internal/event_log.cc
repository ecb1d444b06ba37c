#include "sluice/store/memory/internal/event_log.h"

#include <algorithm>
#include <cassert>
#include <cstring>

namespace sluice::memory {

EventLog::HeadBlock& EventLog::Head() const {
  return reinterpret_cast<HeadBlock&>(arena_.at(head_));
}

void EventLog::Init(BlockArena& arena, BlockNumber head) {
  auto& block = reinterpret_cast<HeadBlock&>(arena.at(head));
  block.front = head;
  block.back = head;
}

std::uint32_t EventLog::Capacity(BlockNumber block) const {
  constexpr std::uint32_t kInHead = sizeof(HeadBlock::cells) / sizeof(std::uint32_t);
  const std::uint32_t cells = block == head_ ? kInHead : kCellsPerBlock;
  return weighted_ ? cells / 2 : cells;
}

std::uint32_t* EventLog::Cell(BlockNumber block, std::uint32_t at) const {
  std::uint32_t* const cells = block == head_ ? Head().cells : arena_.at(block).cells;
  return cells + (weighted_ ? 2 * at : at);
}

EventLog::Event EventLog::Get(const Cursor& cursor) const {
  const std::uint32_t* const cell = Cell(cursor.block, cursor.at);
  return {.stamp = cell[0], .cost = weighted_ ? cell[1] : 1};
}

void EventLog::Set(const Cursor& cursor, Event event) {
  std::uint32_t* const cell = Cell(cursor.block, cursor.at);
  cell[0] = event.stamp;
  if (weighted_) cell[1] = event.cost;
}

EventLog::Cursor EventLog::Next(Cursor cursor) const {
  ++cursor.n;
  if (++cursor.at == Capacity(cursor.block) && cursor.n < Head().count) {
    cursor.block = arena_.at(cursor.block).next;
    cursor.at = 0;
  }
  return cursor;
}

EventLog::Cursor EventLog::Seek(std::uint64_t n) const {
  assert(n < Head().count);
  Cursor cursor = cursor_.n <= n ? cursor_ : Cursor{0, Head().front, Head().front_at};
  for (std::uint64_t ahead = n - cursor.n; ahead > 0;) {
    const std::uint64_t here = Capacity(cursor.block) - cursor.at;
    if (ahead < here) {
      cursor.at += static_cast<std::uint32_t>(ahead);
      break;
    }
    ahead -= here;
    cursor.block = arena_.at(cursor.block).next;
    cursor.at = 0;
  }
  cursor.n = n;
  cursor_ = cursor;
  return cursor;
}

EventLog::Event EventLog::at(std::uint64_t n) const {
  const HeadBlock& head = Head();
  if (n + 1 == head.count && head.back_at > 0) {
    return Get({.n = n, .block = head.back, .at = head.back_at - 1u});
  }
  return Get(Seek(n));
}

void EventLog::set_cost(std::uint64_t n, std::uint32_t cost) {
  assert(weighted_ && cost >= 1);
  const Cursor cursor = Seek(n);
  Event event = Get(cursor);
  Head().sum = Head().sum - event.cost + cost;
  event.cost = cost;
  Set(cursor, event);
}

void EventLog::erase(std::uint64_t n) {
  Cursor to = Seek(n);
  Head().sum -= Get(to).cost;
  for (Cursor from = Next(to); from.n < Head().count; from = Next(from)) {
    Set(to, Get(from));
    to = from;
  }
  --Head().count;
  --Head().back_at;
  if (Head().count == 0) {
    Clear();
  } else if (Head().back_at == 0) {
    LeaveBackBlock();
  }
  ResetCursor();
}

bool EventLog::Append(Event event) {
  HeadBlock& head = Head();
  if (head.back_at == Capacity(head.back) && !MakeRoomAtBack()) return false;
  Set({.n = head.count, .block = head.back, .at = head.back_at}, event);
  ++head.back_at;
  ++head.count;
  head.sum += weighted_ ? event.cost : 1;
  return true;
}

bool EventLog::MakeRoomAtBack() {
  HeadBlock& head = Head();
  if (head.front == head.back && head.front_at > 0) {
    // One block with room at its beginning: a short log stays in its head.
    std::uint32_t* const cells = Cell(head.front, 0);
    const std::uint32_t* const first = Cell(head.front, head.front_at);
    std::memmove(
        cells, first,
        static_cast<std::size_t>(Cell(head.back, head.back_at) - first) * sizeof(std::uint32_t));
    head.back_at -= head.front_at;
    head.front_at = 0;
    ResetCursor();
    return true;
  }
  BlockNumber next = arena_.at(head.back).next;
  const bool head_is_empty = head.front != head_ && head.back != head_;
  if (!(next == head_ && head_is_empty)) {
    next = arena_.Take();
    if (next == 0) return false;
    arena_.Insert(head_, head.back, next);
  }
  head.back = next;
  head.back_at = 0;
  return true;
}

void EventLog::DropOldest(std::uint64_t events) {
  HeadBlock& head = Head();
  if (events >= head.count) {
    Clear();
    return;
  }
  for (; events > 0; --events) {
    head.sum -= Get({.n = 0, .block = head.front, .at = head.front_at}).cost;
    --head.count;
    if (++head.front_at == Capacity(head.front)) LeaveFrontBlock();
  }
  ResetCursor();
}

// The front block is empty, and there is another one with events behind it.
void EventLog::LeaveFrontBlock() {
  HeadBlock& head = Head();
  const BlockNumber old = head.front;
  head.front = arena_.at(old).next;
  head.front_at = 0;
  if (old == head_) return;
  // What lies before the front is the back, or the empty head.
  Block& before = arena_.at(arena_.at(head.back).next == old ? head.back : head_);
  before.next = head.front;
  arena_.GiveOne(head_, old);
}

// The back block is empty, and another one before it is not.
void EventLog::LeaveBackBlock() {
  HeadBlock& head = Head();
  const BlockNumber old = head.back;
  BlockNumber before = head.front;
  while (arena_.at(before).next != old) before = arena_.at(before).next;
  head.back = before;
  head.back_at = static_cast<std::uint8_t>(Capacity(before));
  if (old == head_) return;
  arena_.at(before).next = arena_.at(old).next;
  arena_.GiveOne(head_, old);
}

void EventLog::Clear() {
  head_ = arena_.KeepOne(head_);
  Init(arena_, head_);
  ResetCursor();
}

}  // namespace sluice::memory
