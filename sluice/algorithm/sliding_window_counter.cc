#include "sluice/algorithm/sliding_window_counter.h"

#include <algorithm>

#include "sluice/algorithm/internal/arithmetic.h"
#include "sluice/algorithm/internal/counted.h"
#include "sluice/algorithm/internal/validate.h"

namespace sluice::sliding_window_counter {
namespace {

using internal::CeilDiv;

// The two windows that count at some moment.
struct Current {
  State state;              // rolled on to now
  std::uint64_t left = 0;   // ns of the previous window that still lie within the last `window`
  std::uint64_t ahead = 0;  // ns until the current window begins (the clock stepped back), else 0
  bool damaged = false;
};

Current At(const Limit& limit, const State& state, WallTime wall) {
  const std::int64_t at =
      internal::SaturatedSub(wall.time_since_epoch().count(), limit.offset.count());
  const std::int64_t window = limit.window.count();
  const std::int64_t number = internal::FloorDiv(at, window);
  Current current{.state = {.window = number},
                  .left = static_cast<std::uint64_t>(window - internal::FloorMod(at, window))};
  if (state.previous == 0 && state.current == 0) return current;
  if (state.window > number + 1) {
    current.damaged = true;
  } else if (state.window == number + 1) {
    // The clock stepped back over an edge: counted as at the newer window's first instant.
    current.state = state;
    current.ahead = current.left;
    current.left = static_cast<std::uint64_t>(window);
  } else if (state.window == number) {
    current.state = state;
  } else if (state.window == number - 1) {
    current.state.previous = state.current;
  }
  return current;
}

// What the previous window still weighs, times the window's length.
Uint128 Weighted(const Current& current) { return Uint128{current.state.previous} * current.left; }

// ceil of the estimate.
std::uint64_t Estimate(const Limit& limit, const Current& current) {
  const auto window = static_cast<std::uint64_t>(limit.window.count());
  const std::uint64_t previous = static_cast<std::uint64_t>(CeilDiv(Weighted(current), window));
  return internal::SaturatedAdd(previous, current.state.current);
}

Verdict Judge(const Limit& limit, const Current& current, std::uint64_t cost) {
  if (cost == 0) return Verdict::kAllowed;
  if (cost > limit.limit) return Verdict::kNever;
  const std::uint64_t free = internal::MinusOrZero(limit.limit, current.state.current);
  if (cost > free) return Verdict::kLimited;
  const auto window = static_cast<std::uint64_t>(limit.window.count());
  return Weighted(current) <= Uint128{free - cost} * window ? Verdict::kAllowed : Verdict::kLimited;
}

// How long until `cost` fits, which it does not now.
Duration RetryAfter(const Limit& limit, const Current& current, std::uint64_t cost) {
  const auto window = static_cast<std::uint64_t>(limit.window.count());
  const std::uint64_t used = current.state.current;
  const std::uint64_t fits_beside = limit.limit - cost;
  if (used <= fits_beside) {
    // In this window, when the previous one has faded enough.
    const Uint128 excess = Weighted(current) - Uint128{fits_beside - used} * window;
    return internal::ToDuration(current.ahead + CeilDiv(excess, current.state.previous));
  }
  // In the next one, when what is current now has faded enough.
  return internal::ToDuration(Uint128{current.ahead} + current.left +
                              CeilDiv(Uint128{used - fits_beside} * window, used));
}

Duration ResetAfter(const Limit& limit, const Current& current) {
  const auto window = static_cast<std::uint64_t>(limit.window.count());
  Uint128 reset = 0;
  if (current.state.current > 0) {
    reset = Uint128{current.ahead} + current.left + window;
  } else if (current.state.previous > 0) {
    reset = Uint128{current.ahead} + current.left;
  }
  return internal::ToDuration(reset);
}

Step<State> Answer(const Limit& limit, const State& state, Current current, Verdict verdict,
                   std::uint64_t cost, std::uint64_t charged) {
  Step<State> step{.next = state, .damaged = current.damaged};
  if (charged > 0) {
    current.state.current += charged;
    step.next = current.state;
    step.receipt = {.before = current.state.window, .units = charged};
  }
  step.decision = {.verdict = verdict,
                   .remaining = internal::MinusOrZero(limit.limit, Estimate(limit, current)),
                   .retry_after = Duration{0},
                   .reset_after = ResetAfter(limit, current)};
  if (verdict == Verdict::kLimited) step.decision.retry_after = RetryAfter(limit, current, cost);
  if (verdict == Verdict::kNever) step.decision.retry_after = kNever;
  return step;
}

}  // namespace

absl::StatusOr<Limit> MakeLimit(std::int64_t limit, Duration window, Duration offset) {
  if (absl::Status status = internal::CheckLimit(limit); !status.ok()) return status;
  if (absl::Status status = internal::CheckWindow(window); !status.ok()) return status;
  if (absl::Status status = internal::CheckOffset(offset, window); !status.ok()) return status;
  return Limit{.limit = static_cast<std::uint64_t>(limit), .window = window, .offset = offset};
}

Step<State> Decide(const Limit& limit, State state, std::uint64_t cost, Now now) {
  const Current current = At(limit, state, now.wall);
  const Verdict verdict = Judge(limit, current, cost);
  return Answer(limit, state, current, verdict, cost, verdict == Verdict::kAllowed ? cost : 0);
}

Step<State> Charge(const Limit& limit, State state, std::uint64_t cost, Now now,
                   std::uint64_t max_used) {
  const Current current = At(limit, state, now.wall);
  const Verdict verdict = Judge(limit, current, cost);
  const std::uint64_t charged =
      internal::Charged(verdict, Estimate(limit, current), cost, max_used);
  return Answer(limit, state, current, verdict, cost, charged);
}

State Undo(const Limit& limit, State state, const Receipt& receipt, std::uint64_t units, Now now) {
  State rolled = At(limit, state, now.wall).state;
  units = std::min(units, receipt.units);
  if (receipt.before == rolled.window) {
    rolled.current = internal::MinusOrZero(rolled.current, units);
  } else if (receipt.before == rolled.window - 1) {
    rolled.previous = internal::MinusOrZero(rolled.previous, units);
  } else {
    return state;
  }
  return rolled;
}

std::uint64_t Debt(const Limit& limit, State state, Now now) {
  return Estimate(limit, At(limit, state, now.wall));
}

State Convert(const Limit& from, State state, const Limit& to, Now now) {
  const std::uint64_t used = Debt(from, state, now);
  if (used == 0) return State{};
  if (from.window == to.window && from.offset == to.offset) return state;
  return Owing(to, used, now);
}

State Owing(const Limit& limit, std::uint64_t used, Now now) {
  used = std::min(used, limit.limit);
  if (used == 0) return State{};
  State state = At(limit, State{}, now.wall).state;
  state.current = used;
  return state;
}

}  // namespace sluice::sliding_window_counter
