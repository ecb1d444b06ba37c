// Blocks of 128 bytes for what does not fit a slot's word. A fixed number, taken from the system
// once; nothing is allocated afterwards.
//
//   slot: | tag | 0x80000001 : number of the head block |
//                                      |
//                          head block --> block --> block --+       a circle of blocks, each with
//                               ^---------------------------+       31 cells of 4 bytes and a link
//
// A circle, because a whole state is then given back in constant time, however long it is. What the
// cells mean is the keeper's (outside_state.h, event_log.h).
//
// Whoever has taken the slot (line.h) is alone with its blocks. Only a head's owner, the number of
// its slot, may be read by others: that is how the hand that looks for room finds the slot.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "absl/status/status.h"
#include "sluice/store/memory/internal/line.h"
#include "sluice/store/memory/internal/pages.h"
#include "sluice/store/memory/internal/spin_lock.h"

namespace sluice::memory {

inline constexpr int kCellsPerBlock = 31;

struct alignas(128) Block {
  std::uint32_t next;  // in the circle
  std::uint32_t cells[kCellsPerBlock];
};
static_assert(sizeof(Block) == 128);

// Counted from 1; 0 is none.
using BlockNumber = std::uint32_t;

// The word of a slot whose state lies in blocks: no instant and no window looks like it.
inline constexpr std::uint64_t kOutsideMark = std::uint64_t{0x80000001} << 32;
[[nodiscard]] inline std::uint64_t WordOfHead(BlockNumber head) { return kOutsideMark | head; }
[[nodiscard]] inline BlockNumber HeadOfWord(std::uint64_t word) {
  return static_cast<BlockNumber>(word);
}

class BlockArena {
 public:
  // Knows its bound; the memory comes with Open().
  explicit BlockArena(std::uint64_t bytes);

  // Takes the memory, at the first call. kResourceExhausted: the system does not have it.
  absl::Status Open();

  // A block that is a circle by itself, all cells 0; or none.
  [[nodiscard]] BlockNumber Take();
  // Gives back the circle of `head`, in constant time.
  void GiveCircle(BlockNumber head);
  // Gives back all of the circle but one block, which is then a circle by itself, all cells 0, with
  // the owner that `head` had; in constant time. It need not be `head`.
  [[nodiscard]] BlockNumber KeepOne(BlockNumber head);
  // Gives back one block that was taken out of the circle of `head`.
  void GiveOne(BlockNumber head, BlockNumber block);
  // Puts `block` behind `after` into the circle of `head`.
  void Insert(BlockNumber head, BlockNumber after, BlockNumber block);

  [[nodiscard]] Block& at(BlockNumber number) const { return blocks_[number - 1]; }

  // `word` may be anything.
  void PrefetchHead(std::uint64_t word) const {
    const BlockNumber head = HeadOfWord(word);
    if (head != 0 && head <= highest()) PrefetchToWrite(&at(head));
  }

  // The slot of which `number` is the head block; nullopt when it is none, or not yet.
  [[nodiscard]] std::optional<std::uint32_t> OwnerOf(BlockNumber number) const;
  void SetOwner(BlockNumber head, std::uint32_t slot_number);
  [[nodiscard]] std::uint32_t BlocksOf(BlockNumber head) const { return sides_[head - 1].blocks; }

  [[nodiscard]] std::uint32_t capacity() const { return capacity_; }
  [[nodiscard]] std::uint32_t used() const { return used_.load(std::memory_order_relaxed); }
  // Numbers up to here were in use at some time.
  [[nodiscard]] BlockNumber highest() const { return highest_.load(std::memory_order_relaxed); }
  [[nodiscard]] std::size_t bytes() const { return block_pages_.size() + side_pages_.size(); }

 private:
  // What belongs to a block, but must not be mistaken for its cells.
  struct Side {
    std::atomic<std::uint32_t> owner;  // slot's number + 1; 0: no head
    std::uint32_t blocks;              // in the circle, of a head
  };

  BlockNumber Fresh(BlockNumber number);
  void PutOnFreeList(BlockNumber first, BlockNumber last, std::uint32_t count);

  std::uint32_t capacity_;
  Pages block_pages_;
  Pages side_pages_;
  Block* blocks_ = nullptr;
  Side* sides_ = nullptr;
  SpinLock lock_;         // over the list of free blocks
  BlockNumber free_ = 0;  // the first of the list, linked by next
  std::atomic<BlockNumber> highest_{0};
  std::atomic<std::uint32_t> used_{0};
};

}  // namespace sluice::memory
