// A strict counter's numbers between their blocks and the span that its algorithm works on.
#pragma once

#include <array>
#include <cstdint>

#include "sluice/algorithm/sliding_window_strict.h"
#include "sluice/store/memory/internal/block_arena.h"

namespace sluice::memory {

class StrictCounts {
 public:
  // 4 bytes a counter while even what a forced charge may reach fits.
  [[nodiscard]] static bool Narrow(const sliding_window_strict::Limit& limit);
  [[nodiscard]] static std::uint32_t BlocksNeeded(const sliding_window_strict::Limit& limit);

  StrictCounts(const BlockArena& arena, BlockNumber head,
               const sliding_window_strict::Limit& limit);
  void Store(BlockArena& arena, BlockNumber head) const;

  [[nodiscard]] sliding_window_strict::View view() { return {newest_, {counts_.data(), size_}}; }

 private:
  std::size_t size_;
  bool narrow_;
  std::int64_t newest_ = 0;
  std::array<std::uint64_t, sliding_window_strict::kMaxSubWindows + 1> counts_{};
};

}  // namespace sluice::memory
