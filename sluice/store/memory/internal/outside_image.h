// A state that lies in blocks, taken out of them: what a snapshot holds of it.
//
// Reading one is a copy, so that its slot is taken for no longer than that: a few hundred
// nanoseconds, and about 2 ns an event for a long log.
#pragma once

#include <array>
#include <cstdint>
#include <variant>
#include <vector>

#include "sluice/algorithm/limit.h"
#include "sluice/algorithm/sliding_window_log.h"
#include "sluice/algorithm/state.h"
#include "sluice/base/time.h"
#include "sluice/store/memory/internal/block_arena.h"
#include "sluice/store/memory/internal/outside_state.h"

namespace sluice::memory {

// sliding_window_strict.h's View, with its numbers.
struct StrictImage {
  std::int64_t newest = 0;
  std::array<std::uint64_t, sliding_window_strict::kMaxSubWindows + 1> counts{};

  [[nodiscard]] sliding_window_strict::View View(const sliding_window_strict::Limit& limit) {
    return {newest, {counts.data(), static_cast<std::size_t>(limit.sub_windows) + 1}};
  }
};

// An EventLog.
struct LogImage {
  std::vector<sliding_window_log::Event> events;
  std::uint64_t units = 0;  // sum of their costs
  Time newest{};            // when the newest event is dated

  [[nodiscard]] std::uint64_t size() const { return events.size(); }
  [[nodiscard]] std::uint64_t sum() const { return units; }
  [[nodiscard]] Time latest() const { return newest; }
  [[nodiscard]] sliding_window_log::Event at(std::uint64_t n) const { return events[n]; }
};

// The alternative is the one of the limit's keeper.
using OutsideImage = std::variant<SmallState, StrictImage, LogImage>;

// Copies the state. Requires that the caller has taken its slot. Memory of a log in `image` is used
// again for the next one.
void CopyOut(BlockArena& arena, const Limit& limit, BlockNumber head, OutsideImage& image);

// Units owed; `now` is the key's own.
[[nodiscard]] std::uint64_t DebtOf(const Limit& limit, OutsideImage& image, Now now);

// Makes a state of an image. 0: no block is left, and none can be freed. A log that does not find
// room for all its events keeps the newest ones.
[[nodiscard]] BlockNumber CopyIn(BlockArena& arena, OutsideStates& states, BlockSource& source,
                                 const Limit& limit, OutsideImage& image, Now now);

}  // namespace sluice::memory
