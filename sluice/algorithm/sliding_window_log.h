// A4. Sliding window log: every event is kept for one window, so the limit holds in every window.
//
//      t1   t2    t3 t4      now         an event at t counts until t + window, not at t + window
//   ---|----|--|--|--|--------|
//           |<-- window ----->|
//
//   allowed    <=> sum of the costs kept + cost <= limit
//   remaining   = limit - sum
//   retry_after = until so many of the oldest events have left that cost fits
//   reset_after = until the newest event has left
//
// Guarantee: never more than `limit` units in any window. With the tick below a charge leaves up to
// one tick later, never sooner.
//
// Ticks. An event's time is kept in 32 bits, in ticks of the smallest 1, 2 or 5 * 10^n ns that is
// >= window / 2^31, rounded up to the next tick, so that whole seconds stay exact.
//
// Two forms: `unit` keeps a stamp for each unit (4 bytes each: for cost 1, though any cost works),
// `weighted` a stamp and a cost for each event (8 bytes each: where costs vary).
//
// Clock: steady. Cost: 24 bytes a key and 4 or 8 for each event kept; constant time a call for cost
// 1, else linear in the events that must leave.
#pragma once

#include <concepts>
#include <cstdint>

#include "absl/status/statusor.h"
#include "sluice/algorithm/decision.h"
#include "sluice/base/time.h"

namespace sluice::sliding_window_log {

// More units than this would be memory without a bound: take the strict or the sliding counter.
inline constexpr std::int64_t kMaxLimit = 16'777'216;

struct Limit {
  std::uint64_t limit = 0;  // units in any window; 0 denies everything
  Duration window{0};       // >= 1 ms
  Duration tick{0};         // resolution of the stamps
  bool weighted = false;    // 8 bytes an event, with its cost
  friend bool operator==(const Limit&, const Limit&) = default;
};

// Errors: limit negative or above kMaxLimit ("limit exceeds log capacity"); window as
// fixed_window.h.
[[nodiscard]] absl::StatusOr<Limit> MakeLimit(std::int64_t limit, Duration window, bool weighted);

struct Event {
  std::uint32_t stamp;  // ticks, modulo 2^32
  std::uint32_t cost;   // 1 in the unit form
};

// Where the keeper has the events, oldest first. `latest` is the exact time of the newest event: it
// tells a log that is wholly over from one whose stamps have wrapped around.
template <typename L>
concept EventLog = requires(L& log, const L& read, std::uint64_t n, Event e) {
  { read.size() } -> std::convertible_to<std::uint64_t>;  // events kept
  { read.sum() } -> std::convertible_to<std::uint64_t>;   // of their costs
  { read.latest() } -> std::convertible_to<Time>;         // meaningless when empty
  { read.at(n) } -> std::convertible_to<Event>;           // the n-th oldest; near 0 is cheap
};

struct Answer {
  Decision decision;
  Receipt receipt;            // as if charged, when allowed and cost > 0
  std::uint64_t expired = 0;  // how many of the oldest events are over: the keeper may drop them
  Event event{};              // what the keeper is to append when it charges (units: cost times)
};

}  // namespace sluice::sliding_window_log
