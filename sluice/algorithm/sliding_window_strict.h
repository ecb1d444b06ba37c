// Strict sub-window counter: the window cut into k counters; the oldest, of which only a part
// lies within the window, counts in full.
//
//     d      d      d      d      d
//   |oldest|      |      |      |newest|now         k = 4, d = window / k, rounded up
//       |<------- window ------->|                  sum of all k + 1 counters <= limit
//
//   allowed    <=> sum + cost <= limit
//   remaining   = limit - sum
//   retry_after = until so many of the oldest counters have left that cost fits:
//                 (start of the m-th oldest + (k + 1) * d) - now
//   reset_after = until the newest counter in use has left
//
// Guarantee: never more than `limit` units in any window, with bounded memory. Price: what was
// spent comes back between window and window + d later, up to 1/k slower than with the log.
//
// Clock: steady. Where it steps back nothing leaves, and charges count as of the newest sub-window.
//
// Reload to other sub-windows: charge Debt() on a fresh state; that is as of now, so that nothing
// comes back sooner than it would have. Where units are leased: as of the end of the newest
// sub-window, since they may be spent until then.
//
// Cost: 8 + 4 * (k + 1) bytes a key, 8 + 8 * (k + 1) for limits above 2^31 - 1 (a forced charge may
// reach twice the limit); a sum over k + 1 numbers a call.
#pragma once

#include <cstdint>
#include <span>

#include "absl/status/statusor.h"
#include "sluice/algorithm/decision.h"
#include "sluice/base/time.h"

namespace sluice::sliding_window_strict {

inline constexpr int kMaxSubWindows = 60;

struct Limit {
  std::uint64_t limit = 0;  // 0 denies everything
  Duration window{0};       // >= 1 ms
  int sub_windows = 16;     // k, 1 to kMaxSubWindows
  Duration step{0};         // d = ceil(window / k)
  friend bool operator==(const Limit&, const Limit&) = default;
};

// Errors: limit negative; window as fixed_window.h; k outside 1 to 60.
[[nodiscard]] absl::StatusOr<Limit> MakeLimit(std::int64_t limit, Duration window,
                                              int sub_windows = 16);

// The state lies where its keeper has put it: `counts` has sub_windows + 1 numbers, or where leases
// are kept LeasedCounts(); sub-window number i is counts[i % size]. All zero: absent.
struct View {
  std::int64_t& newest;             // number of the newest sub-window that `counts` holds
  std::span<std::uint64_t> counts;  // the keeper may store them narrower
};

// Of a key of which units are leased: beside the sub-windows that count now, those ahead.
[[nodiscard]] constexpr std::size_t LeasedCounts(const Limit& limit) {
  return 2 * static_cast<std::size_t>(limit.sub_windows) + 1;
}

struct Answer {
  Decision decision;
  Receipt receipt;  // as if charged, when allowed and cost > 0
};

// Decides only; the state is not touched.
[[nodiscard]] Answer Decide(const Limit& limit, const View& state, std::uint64_t cost, Time now);
// Charges `cost` whatever the room, up to `max_used` in all, and answers with what is left then.
Answer Charge(const Limit& limit, const View& state, std::uint64_t cost, Time now,
              std::uint64_t max_used);
// A lease: units that are charged now and spent by whoever took them at any time within `length`
// (at most half a window). They count in the sub-window of now + length, from now on until a window
// and a sub-window after it. Charges that come before that moment count there, too: as where the
// clock steps back. Requires LeasedCounts(limit) numbers.
//
// Guarantee: as above, whenever within its lease each unit is spent. A receipt of a lease is good
// for several undos, together of at most its units.
[[nodiscard]] Answer DecideLease(const Limit& limit, const View& state, std::uint64_t cost,
                                 Time now, Duration length);
// Charges it where there is room.
Answer ChargeLease(const Limit& limit, const View& state, std::uint64_t cost, Time now,
                   Duration length);
// Takes `units` out of the sub-window that the receipt names, while it counts.
void Undo(const Limit& limit, const View& state, const Receipt& receipt, std::uint64_t units,
          Time now);
[[nodiscard]] std::uint64_t Debt(const Limit& limit, const View& state, Time now);

}  // namespace sluice::sliding_window_strict
