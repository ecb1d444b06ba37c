// Fixed window: one counter that starts again at the window's edge.
//
//   align clock      edges at offset + k * window of UTC: |  5 of 5  |  0  |  3  |
//   align first-hit  a window opens at the first charge and ends `window` later
//
//   allowed    <=> used + cost <= limit
//   remaining   = limit - used;  retry_after = reset_after = window end - now
//   (first-hit: reset_after is 0 while no window is open)
//
// Guarantee: at most `limit` units in a window. Across an edge up to 2 * limit in a stretch shorter
// than the window: five at the end of one, five at the start of the next. Where that is too much,
// take a sliding window.
//
// Clock: UTC for `clock` (a stored window one ahead of now is kept, so that a clock that steps back
// opens no fresh budget; further ahead is damage and is dropped), steady for `first-hit`. A window
// of which everything was undone is as good as absent, also for a clock that then steps back.
// Cost: 8 bytes a key for `clock` while the limit and the window's number fit (packed.h), else 16.
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "sluice/algorithm/decision.h"
#include "sluice/base/time.h"

namespace sluice::fixed_window {

enum class Align : std::uint8_t { kClock, kFirstHit };

struct Limit {
  std::uint64_t limit = 0;  // units in a window; 0 denies everything
  Duration window{0};       // >= 1 ms
  Align align = Align::kClock;
  Duration offset{0};  // of the edges from the epoch, in [0, window); kClock only
  // Each key has edges of its own, so that not everybody resets at once. Whoever keeps the state
  // moves `now` back by the key's phase (packed.h, PhaseOf) before each call.
  bool per_key_offset = false;
  friend bool operator==(const Limit&, const Limit&) = default;
};

// Errors (InvalidArgument): limit negative; window not positive, under 1 ms or above 100 years;
// offset outside [0, window) or with first-hit.
[[nodiscard]] absl::StatusOr<Limit> MakeLimit(std::int64_t limit, Duration window,
                                              Align align = Align::kClock, Duration offset = {});

struct State {
  std::int64_t window = 0;  // kClock: the window's number since the epoch; kFirstHit: its start,
                            // steady ns
  std::uint64_t used = 0;   // 0 is the same as absent
  friend bool operator==(const State&, const State&) = default;
};

[[nodiscard]] Step<State> Decide(const Limit& limit, State state, std::uint64_t cost, Now now);
// Counts `cost` whatever the room, up to `max_used` units in a window (saturating).
[[nodiscard]] Step<State> Charge(const Limit& limit, State state, std::uint64_t cost, Now now,
                                 std::uint64_t max_used);
// Takes `units` out of the window that the receipt names; nothing when that window is over.
[[nodiscard]] State Undo(const Limit& limit, State state, const Receipt& receipt,
                         std::uint64_t units, Now now);
// Units used in the window of `now`; 0 for a state that is as good as absent.
[[nodiscard]] std::uint64_t Debt(const Limit& limit, State state, Now now);
// Same window, align and offset: what was used stays used. Else it counts in the new window.
[[nodiscard]] State Convert(const Limit& from, State state, const Limit& to, Now now);
[[nodiscard]] State Owing(const Limit& limit, std::uint64_t used, Now now);

}  // namespace sluice::fixed_window
