#include "sluice/store/memory/internal/strict_counts.h"

#include <algorithm>
#include <limits>

namespace sluice::memory {
namespace {

constexpr std::uint64_t kMaxNarrow = std::numeric_limits<std::uint32_t>::max();
constexpr std::uint32_t kCellsOfNewest = 2;

// The cells of a circle of blocks, one after the other.
class Cells {
 public:
  Cells(const BlockArena& arena, BlockNumber head) : arena_(arena), block_(head) {}

  std::uint32_t& Next() {
    if (at_ == kCellsPerBlock) {
      block_ = arena_.at(block_).next;
      at_ = 0;
    }
    return arena_.at(block_).cells[at_++];
  }

  std::uint64_t Read64() {
    const std::uint64_t low = Next();
    return low | static_cast<std::uint64_t>(Next()) << 32;
  }
  void Write64(std::uint64_t value) {
    Next() = static_cast<std::uint32_t>(value);
    Next() = static_cast<std::uint32_t>(value >> 32);
  }

 private:
  const BlockArena& arena_;
  BlockNumber block_;
  int at_ = 0;
};

}  // namespace

bool StrictCounts::Narrow(const sliding_window_strict::Limit& limit) {
  return limit.limit <= kMaxNarrow / 2;
}

std::uint32_t StrictCounts::BlocksNeeded(const sliding_window_strict::Limit& limit) {
  const auto counters = static_cast<std::uint32_t>(limit.sub_windows) + 1;
  const std::uint32_t cells = kCellsOfNewest + counters * (Narrow(limit) ? 1 : 2);
  return (cells + kCellsPerBlock - 1) / kCellsPerBlock;
}

StrictCounts::StrictCounts(const BlockArena& arena, BlockNumber head,
                           const sliding_window_strict::Limit& limit)
    : size_(static_cast<std::size_t>(limit.sub_windows) + 1), narrow_(Narrow(limit)) {
  Cells cells(arena, head);
  newest_ = static_cast<std::int64_t>(cells.Read64());
  for (std::size_t i = 0; i < size_; ++i) counts_[i] = narrow_ ? cells.Next() : cells.Read64();
}

void StrictCounts::Store(BlockArena& arena, BlockNumber head) const {
  Cells cells(arena, head);
  cells.Write64(static_cast<std::uint64_t>(newest_));
  for (std::size_t i = 0; i < size_; ++i) {
    if (narrow_) {
      cells.Next() = static_cast<std::uint32_t>(std::min(counts_[i], kMaxNarrow));
    } else {
      cells.Write64(counts_[i]);
    }
  }
}

}  // namespace sluice::memory
