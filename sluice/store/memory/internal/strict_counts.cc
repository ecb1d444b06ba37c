#include "sluice/store/memory/internal/strict_counts.h"

#include <algorithm>
#include <limits>

namespace sluice::memory {
namespace {

constexpr std::uint64_t kMaxNarrow = std::numeric_limits<std::uint32_t>::max();
constexpr std::uint32_t kUnitsOfNewest = 2;

// The units of a circle of blocks, one after the other.
class Units {
 public:
  Units(const BlockArena& arena, BlockNumber head) : arena_(arena), block_(head) {}

  std::uint32_t& Next() {
    if (at_ == kUnitsPerBlock) {
      block_ = arena_.at(block_).next;
      at_ = 0;
    }
    return arena_.at(block_).units[at_++];
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
  const std::uint32_t units = kUnitsOfNewest + counters * (Narrow(limit) ? 1 : 2);
  return (units + kUnitsPerBlock - 1) / kUnitsPerBlock;
}

StrictCounts::StrictCounts(const BlockArena& arena, BlockNumber head,
                           const sliding_window_strict::Limit& limit)
    : size_(static_cast<std::size_t>(limit.sub_windows) + 1), narrow_(Narrow(limit)) {
  Units units(arena, head);
  newest_ = static_cast<std::int64_t>(units.Read64());
  for (std::size_t i = 0; i < size_; ++i) counts_[i] = narrow_ ? units.Next() : units.Read64();
}

void StrictCounts::Store(BlockArena& arena, BlockNumber head) const {
  Units units(arena, head);
  units.Write64(static_cast<std::uint64_t>(newest_));
  for (std::size_t i = 0; i < size_; ++i) {
    if (narrow_) {
      units.Next() = static_cast<std::uint32_t>(std::min(counts_[i], kMaxNarrow));
    } else {
      units.Write64(counts_[i]);
    }
  }
}

}  // namespace sluice::memory
