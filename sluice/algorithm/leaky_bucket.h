// The leaky bucket as a queue (a shaper): admits with a delay, so that what leaves is spaced at
// the rate. What nginx calls limit_req without nodelay.
//
// For each key it keeps the instant at which the next request may leave.
//
//   now              next_free                    now + max_delay
//    |-- backlog: what waits --|---- room to wait ----|
//
//   start       = max(now, next_free); delay = start - now
//   allowed    <=> delay <= max_delay            then next_free = start + increment(cost)
//   remaining   = floor((max_delay - backlog) / interval) + 1 while backlog <= max_delay, else 0
//   retry_after = delay - max_delay
//   reset_after = backlog
//
// A cost weighs on the gap after its request, not before it; idle time is not saved up. One request
// may cost at most floor(max_delay / interval) + 1 units (`max_cost`), else the verdict is kNever:
// nobody blocks the queue for longer than the queue is.
//
// Guarantee: requests leave (at now + delay) such that in any stretch t at most rate * t units plus
// the cost of the last request leave; nobody waits longer than max_delay. (Delays are whole
// nanoseconds, rounded up, so that t may be one nanosecond short.)
//
// Undo: an instant can be taken back only from the end of the queue, since those behind it were
// already promised theirs; elsewhere nothing returns.
//
// Ticks, clock, overflow and conversion as token_bucket.h. Cost: 8 bytes a key.
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "sluice/algorithm/decision.h"
#include "sluice/algorithm/rate.h"
#include "sluice/algorithm/token_bucket.h"
#include "sluice/base/time.h"

namespace sluice::leaky_bucket {

struct Limit {
  token_bucket::Limit pace;    // rate, interval and ticks; its burst is max_cost
  std::int64_t max_delay = 0;  // in ticks
  std::uint64_t max_cost = 1;  // >= 1

  friend bool operator==(const Limit&, const Limit&) = default;
};

// `queue` requests of cost 1 may wait, none longer than `wait`: max_delay = min(queue * interval,
// wait). Queue 0 or wait 0: strict spacing. Errors as token_bucket::MakeLimit; negative wait.
[[nodiscard]] absl::StatusOr<Limit> MakeLimit(Rate rate, std::uint64_t queue, Duration wait);

struct State {
  std::int64_t next_free = 0;  // in ticks
  friend bool operator==(const State&, const State&) = default;
};

[[nodiscard]] Step<State> Decide(const Limit& limit, State state, std::uint64_t cost, Time now);
// Joins the queue however long it is, up to `max_debt` units of it. See decision.h for the answer.
[[nodiscard]] Step<State> Charge(const Limit& limit, State state, std::uint64_t cost, Time now,
                                 std::uint64_t max_debt);
// Returns the state after the undo: moved back if the receipt's request is the last in the queue.
[[nodiscard]] State Undo(const Limit& limit, State state, const Receipt& receipt,
                         std::uint64_t units, Time now);
// Units in the queue at `now`, rounded up.
[[nodiscard]] std::uint64_t Debt(const Limit& limit, State state, Time now);
// The queue stays, in units, as far as the new one is long.
[[nodiscard]] State Convert(const Limit& from, State state, const Limit& to, Time now);
[[nodiscard]] State Owing(const Limit& limit, std::uint64_t used, Time now);

}  // namespace sluice::leaky_bucket
