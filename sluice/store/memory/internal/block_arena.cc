#include "sluice/store/memory/internal/block_arena.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <mutex>
#include <new>
#include <utility>

namespace sluice::memory {

BlockArena::BlockArena(std::uint64_t bytes)
    : capacity_(static_cast<std::uint32_t>(std::min<std::uint64_t>(
          bytes / (sizeof(Block) + sizeof(Side)), std::numeric_limits<std::uint32_t>::max() - 1))) {
}

absl::Status BlockArena::Open() {
  if (blocks_ != nullptr || capacity_ == 0) return absl::OkStatus();
  absl::StatusOr<Pages> blocks =
      Pages::Take(capacity_ * sizeof(Block), "states outside of the table (outside_bytes)");
  if (!blocks.ok()) return blocks.status();
  absl::StatusOr<Pages> sides =
      Pages::Take(capacity_ * sizeof(Side), "states outside of the table (outside_bytes)");
  if (!sides.ok()) return sides.status();
  block_pages_ = *std::move(blocks);
  side_pages_ = *std::move(sides);
  sides_ = new (side_pages_.data()) Side[capacity_]();
  blocks_ = new (block_pages_.data()) Block[capacity_];
  return absl::OkStatus();
}

BlockNumber BlockArena::Take() {
  BlockNumber number = 0;
  {
    const std::lock_guard lock(lock_);
    if (free_ != 0) {
      number = free_;
      free_ = at(number).next;
    } else if (blocks_ != nullptr && highest() < capacity_) {
      number = highest() + 1;
      highest_.store(number, std::memory_order_relaxed);
    } else {
      return 0;
    }
    used_.fetch_add(1, std::memory_order_relaxed);
  }
  return Fresh(number);
}

BlockNumber BlockArena::Fresh(BlockNumber number) {
  Block& block = at(number);
  std::memset(&block, 0, sizeof block);
  block.next = number;
  sides_[number - 1].blocks = 1;
  return number;
}

void BlockArena::Insert(BlockNumber head, BlockNumber after, BlockNumber block) {
  at(block).next = at(after).next;
  at(after).next = block;
  ++sides_[head - 1].blocks;
}

void BlockArena::GiveCircle(BlockNumber head) {
  sides_[head - 1].owner.store(0, std::memory_order_relaxed);
  PutOnFreeList(at(head).next, head, sides_[head - 1].blocks);
}

// The last block of the circle without its head could only be found by a walk; so it is the block
// behind the head that stays, and the head itself is the last of those that go.
BlockNumber BlockArena::KeepOne(BlockNumber head) {
  const std::uint32_t others = sides_[head - 1].blocks - 1;
  if (others == 0) return Fresh(head);
  const BlockNumber kept = at(head).next;
  const BlockNumber first = at(kept).next;
  sides_[kept - 1].owner.store(sides_[head - 1].owner.load(std::memory_order_relaxed),
                               std::memory_order_relaxed);
  sides_[head - 1].owner.store(0, std::memory_order_relaxed);
  PutOnFreeList(first, head, others);
  return Fresh(kept);
}

void BlockArena::GiveOne(BlockNumber head, BlockNumber block) {
  --sides_[head - 1].blocks;
  PutOnFreeList(block, block, 1);
}

void BlockArena::PutOnFreeList(BlockNumber first, BlockNumber last, std::uint32_t count) {
  const std::lock_guard lock(lock_);
  at(last).next = free_;
  free_ = first;
  used_.fetch_sub(count, std::memory_order_relaxed);
}

std::optional<std::uint32_t> BlockArena::OwnerOf(BlockNumber number) const {
  const std::uint32_t owner = sides_[number - 1].owner.load(std::memory_order_relaxed);
  if (owner == 0) return std::nullopt;
  return owner - 1;
}

void BlockArena::SetOwner(BlockNumber head, std::uint32_t slot_number) {
  sides_[head - 1].owner.store(slot_number + 1, std::memory_order_relaxed);
}

}  // namespace sluice::memory
