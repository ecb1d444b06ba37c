#include "sluice/algorithm/fixed_window.h"

#include <algorithm>

#include "absl/status/status.h"
#include "sluice/algorithm/internal/arithmetic.h"
#include "sluice/algorithm/internal/counted.h"
#include "sluice/algorithm/internal/validate.h"

namespace sluice::fixed_window {
namespace {

// The window that counts at some moment.
struct Current {
  std::int64_t window = 0;
  std::uint64_t used = 0;
  Duration left{0};  // until its end; 0 when no window is open
  bool damaged = false;
};

Current ByClock(const Limit& limit, State state, WallTime wall) {
  const std::int64_t at =
      internal::SaturatedSub(wall.time_since_epoch().count(), limit.offset.count());
  const std::int64_t window = limit.window.count();
  Current current{.window = internal::FloorDiv(at, window),
                  .left = Duration{window - internal::FloorMod(at, window)}};
  if (state.used == 0 || state.window < current.window) return current;
  if (state.window > current.window + 1) {
    current.damaged = true;
    return current;
  }
  // The clock stepped back over an edge: what is counted stays with the newer window.
  if (state.window > current.window) current.left += limit.window;
  current.window = state.window;
  current.used = state.used;
  return current;
}

Current ByFirstHit(const Limit& limit, State state, Time steady) {
  const std::int64_t now = steady.time_since_epoch().count();
  const Current none{.window = now};
  if (state.used == 0) return none;
  const std::int64_t elapsed = internal::SaturatedSub(now, state.window);
  if (elapsed >= limit.window.count()) return none;
  if (elapsed < -limit.window.count()) return {.window = now, .damaged = true};
  return {.window = state.window, .used = state.used, .left = limit.window - Duration{elapsed}};
}

Current At(const Limit& limit, State state, Now now) {
  return limit.align == Align::kClock ? ByClock(limit, state, now.wall)
                                      : ByFirstHit(limit, state, now.steady);
}

Step<State> Answer(const Limit& limit, State state, const Current& current, Verdict verdict,
                   std::uint64_t charged) {
  Step<State> step{.next = state, .damaged = current.damaged};
  std::uint64_t used = current.used;
  Duration left = current.left;
  if (charged > 0) {
    if (limit.align == Align::kFirstHit && used == 0) left = limit.window;
    used += charged;
    step.next = {.window = current.window, .used = used};
    step.receipt = {.before = current.window, .units = charged};
  }
  step.decision = {.verdict = verdict,
                   .remaining = internal::MinusOrZero(limit.limit, used),
                   .retry_after = internal::RetryAfter(verdict, left),
                   .reset_after = left};
  return step;
}

}  // namespace

absl::StatusOr<Limit> MakeLimit(std::int64_t limit, Duration window, Align align, Duration offset) {
  if (absl::Status status = internal::CheckLimit(limit); !status.ok()) return status;
  if (absl::Status status = internal::CheckWindow(window); !status.ok()) return status;
  if (absl::Status status = internal::CheckOffset(offset, window); !status.ok()) return status;
  if (align == Align::kFirstHit && offset != Duration{0}) {
    return absl::InvalidArgumentError(
        "offset needs windows aligned to the clock; one that opens at the first hit has no edges");
  }
  return Limit{.limit = static_cast<std::uint64_t>(limit),
               .window = window,
               .align = align,
               .offset = offset};
}

Step<State> Decide(const Limit& limit, State state, std::uint64_t cost, Now now) {
  const Current current = At(limit, state, now);
  const Verdict verdict = internal::Judge(limit.limit, current.used, cost);
  return Answer(limit, state, current, verdict, verdict == Verdict::kAllowed ? cost : 0);
}

Step<State> Charge(const Limit& limit, State state, std::uint64_t cost, Now now,
                   std::uint64_t max_used) {
  const Current current = At(limit, state, now);
  const Verdict verdict = internal::Judge(limit.limit, current.used, cost);
  return Answer(limit, state, current, verdict,
                internal::Charged(verdict, current.used, cost, max_used));
}

State Undo(const Limit& limit, State state, const Receipt& receipt, std::uint64_t units, Now now) {
  const Current current = At(limit, state, now);
  if (current.used == 0 || current.window != receipt.before) return state;
  return {.window = state.window,
          .used = internal::MinusOrZero(state.used, std::min(units, receipt.units))};
}

std::uint64_t Debt(const Limit& limit, State state, Now now) { return At(limit, state, now).used; }

State Convert(const Limit& from, State state, const Limit& to, Now now) {
  const std::uint64_t used = Debt(from, state, now);
  if (used == 0) return State{};
  if (from.window == to.window && from.align == to.align && from.offset == to.offset) return state;
  return Owing(to, used, now);
}

State Owing(const Limit& limit, std::uint64_t used, Now now) {
  used = std::min(used, limit.limit);
  if (used == 0) return State{};
  return {.window = At(limit, State{}, now).window, .used = used};
}

}  // namespace sluice::fixed_window
