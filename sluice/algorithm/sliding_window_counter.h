// Sliding window counter: two counters of adjacent windows, the older one weighted by how much
// of it still lies within the last `window`.
//
//      previous        current
//   |-------------|-----e----|now
//            |<-- window -->|          estimate = previous * (window - e) / window + current
//
//   allowed    <=> previous * (window - e) + (current + cost) * window <= limit * window
//   remaining   = floor((limit * window - previous * (window - e) - current * window) / window)
//   retry_after, when current + cost <= limit: ceil((previous * (window - e) -
//                (limit - current - cost) * window) / previous); else it lies in the next window:
//                (window - e) + ceil((current + cost - limit) * window / current)
//   reset_after = current > 0: 2 * window - e; else previous > 0: window - e; else 0
//
// in 128 bits, with no division in the decision and nothing rounded down.
//
// Guarantee: never more than 2 * limit - 1 units in any window (limit >= 1), since it takes the
// older window's spending for evenly spread. How often that is wrong depends on the traffic.
//
// Clock: UTC, steps as fixed_window.h. Cost: 8 bytes a key while limit and window number fit
// (packed.h), else 24.
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "sluice/algorithm/decision.h"
#include "sluice/base/time.h"

namespace sluice::sliding_window_counter {

struct Limit {
  std::uint64_t limit = 0;      // 0 denies everything
  Duration window{0};           // >= 1 ms
  Duration offset{0};           // in [0, window)
  bool per_key_offset = false;  // as fixed_window::Limit::per_key_offset
  friend bool operator==(const Limit&, const Limit&) = default;
};

// Errors as fixed_window::MakeLimit.
[[nodiscard]] absl::StatusOr<Limit> MakeLimit(std::int64_t limit, Duration window,
                                              Duration offset = {});

struct State {
  std::int64_t window = 0;  // the number of the current window since the epoch
  std::uint64_t previous = 0;
  std::uint64_t current = 0;
  friend bool operator==(const State&, const State&) = default;
};

[[nodiscard]] Step<State> Decide(const Limit& limit, State state, std::uint64_t cost, Now now);
// Charges `cost` whatever the room, until the estimate is `max_used`.
[[nodiscard]] Step<State> Charge(const Limit& limit, State state, std::uint64_t cost, Now now,
                                 std::uint64_t max_used);
// Takes `units` out of the counter of the receipt's window while that is one of the two.
[[nodiscard]] State Undo(const Limit& limit, State state, const Receipt& receipt,
                         std::uint64_t units, Now now);
// The estimate at `now`, rounded up; 0 for a state that is as good as absent.
[[nodiscard]] std::uint64_t Debt(const Limit& limit, State state, Now now);
// Same window and offset: both counters stay. Else the estimate counts in the new window.
[[nodiscard]] State Convert(const Limit& from, State state, const Limit& to, Now now);
[[nodiscard]] State Owing(const Limit& limit, std::uint64_t used, Now now);

}  // namespace sluice::sliding_window_counter
