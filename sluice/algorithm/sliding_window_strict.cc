#include "sluice/algorithm/sliding_window_strict.h"

#include <algorithm>
#include <cassert>
#include <limits>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "sluice/algorithm/internal/arithmetic.h"
#include "sluice/algorithm/internal/validate.h"

namespace sluice::sliding_window_strict {
namespace {

constexpr std::int64_t kNone = std::numeric_limits<std::int64_t>::min();

// The counters that count at some moment: those of the sub-windows first .. last.
struct Current {
  std::int64_t number = 0;    // of the sub-window in which a charge counts now
  std::int64_t first = 0;     // oldest that still counts and that the state holds
  std::int64_t last = kNone;  // newest that the state holds; below `first` when nothing counts
  Uint128 sum = 0;            // of their units
};

std::uint64_t& At(const View& state, std::int64_t number) {
  const auto size = static_cast<std::int64_t>(state.counts.size());
  return state.counts[static_cast<std::size_t>(internal::FloorMod(number, size))];
}

// Calls what(number, count) from sub-window `first` to `last`, oldest first, until it says false.
template <typename F>
void ForEach(const View& state, std::int64_t first, std::int64_t last, const F& what) {
  if (last < first) return;
  const std::uint64_t* const end = state.counts.data() + state.counts.size();
  std::uint64_t* count = &At(state, first);
  for (std::int64_t number = first; number <= last; ++number) {
    if (!what(number, *count)) return;
    if (++count == end) count = state.counts.data();
  }
}

// The oldest sub-window that `counts` has room for.
std::int64_t OldestHeld(const View& state, std::int64_t newest) {
  return newest - static_cast<std::int64_t>(state.counts.size()) + 1;
}

std::int64_t NumberAt(const Limit& limit, Time at) {
  return internal::FloorDiv(at.time_since_epoch().count(), limit.step.count());
}

// Whether it has room for sub-windows ahead of now.
bool HoldsLeases(const Limit& limit, const View& state) {
  return state.counts.size() > static_cast<std::size_t>(limit.sub_windows) + 1;
}

// `charged`: the sub-window in which a charge counts, now or ahead.
[[gnu::noinline]] Current WithLeases(const Limit& limit, const View& state, std::int64_t number,
                                     std::int64_t charged) {
  assert(state.counts.size() == LeasedCounts(limit));
  Uint128 all = 0;
  for (const std::uint64_t count : state.counts) all += count;
  if (all == 0) return {.number = charged, .first = number - limit.sub_windows, .last = kNone};
  Current current{.number = std::max(charged, state.newest),
                  .first = std::max(number - limit.sub_windows, OldestHeld(state, state.newest)),
                  .last = state.newest};
  ForEach(state, current.first, current.last, [&](std::int64_t, std::uint64_t& count) {
    current.sum += count;
    return true;
  });
  return current;
}

Current CurrentOf(const Limit& limit, const View& state, Time now) {
  const std::int64_t number = NumberAt(limit, now);
  if (HoldsLeases(limit, state)) [[unlikely]]
    return WithLeases(limit, state, number, number);
  assert(state.counts.size() == static_cast<std::size_t>(limit.sub_windows) + 1);
  Uint128 all = 0;
  for (const std::uint64_t count : state.counts) all += count;
  if (all == 0) return {.number = number};
  // A clock that steps back lets nothing leave.
  Current current{.number = std::max(number, state.newest), .last = state.newest, .sum = all};
  current.first = current.number - limit.sub_windows;
  if (current.number > state.newest) {
    current.sum = 0;
    ForEach(state, current.first, current.last, [&](std::int64_t, std::uint64_t& count) {
      current.sum += count;
      return true;
    });
  }
  return current;
}

Current CurrentOfLease(const Limit& limit, const View& state, Time now, Duration length) {
  assert(length >= Duration{0} && length <= limit.window);
  const Time end{Duration{internal::SaturatedSub(now.time_since_epoch().count(), -length.count())}};
  return WithLeases(limit, state, NumberAt(limit, now), NumberAt(limit, end));
}

// When the counts of sub-window `number` leave, from now on.
Duration LeavesAfter(const Limit& limit, std::int64_t number, Time now) {
  const std::int64_t ns = now.time_since_epoch().count();
  const std::int64_t step = limit.step.count();
  const std::int64_t steps = number - internal::FloorDiv(ns, step) + limit.sub_windows + 1;
  if (steps <= 0) return Duration{0};
  return internal::ToDuration(Uint128{static_cast<std::uint64_t>(steps)} *
                                  static_cast<std::uint64_t>(step) -
                              static_cast<std::uint64_t>(internal::FloorMod(ns, step)));
}

Duration ResetAfter(const Limit& limit, const View& state, const Current& current, Time now) {
  for (std::int64_t i = current.last; i >= current.first; --i) {
    if (At(state, i) > 0) return LeavesAfter(limit, i, now);
  }
  return Duration{0};
}

// Until the oldest counters that hold `need` units together have left.
Duration RetryAfter(const Limit& limit, const View& state, const Current& current, Uint128 need,
                    Time now) {
  Duration wait = internal::kLongest;
  Uint128 leaving = 0;
  ForEach(state, current.first, current.last, [&](std::int64_t number, std::uint64_t& count) {
    leaving += count;
    if (leaving < need) return true;
    wait = LeavesAfter(limit, number, now);
    return false;
  });
  return wait;
}

Decision DecisionOf(const Limit& limit, const View& state, const Current& current, Verdict verdict,
                    std::uint64_t cost, Time now) {
  const Uint128 sum = current.sum;
  Decision decision{
      .verdict = verdict,
      .remaining = sum < limit.limit ? limit.limit - static_cast<std::uint64_t>(sum) : 0,
      .retry_after = Duration{0},
      .reset_after = ResetAfter(limit, state, current, now)};
  if (verdict == Verdict::kNever) decision.retry_after = kNever;
  if (verdict == Verdict::kLimited) {
    decision.retry_after = RetryAfter(limit, state, current, sum + cost - limit.limit, now);
  }
  return decision;
}

Verdict Judge(const Limit& limit, Uint128 sum, std::uint64_t cost) {
  if (cost == 0) return Verdict::kAllowed;
  if (cost > limit.limit) return Verdict::kNever;
  return sum + cost <= limit.limit ? Verdict::kAllowed : Verdict::kLimited;
}

// Brings the state to the sub-window `number` and empties those in between, and those that are
// over.
void Advance(const Limit& limit, const View& state, const Current& current) {
  const auto empty = [](std::int64_t, std::uint64_t& count) {
    count = 0;
    return true;
  };
  if (current.last < current.first) {
    std::fill(state.counts.begin(), state.counts.end(), 0);
  } else {
    ForEach(state, current.last + 1, current.number, empty);
    if (HoldsLeases(limit, state)) {
      ForEach(state, OldestHeld(state, current.number), current.first - 1, empty);
    }
  }
  state.newest = current.number;
}

// As if charged. In line, since a call would be a thirtieth of a decision.
[[gnu::always_inline]] inline Answer AnswerOf(const Limit& limit, const View& state,
                                              const Current& current, std::uint64_t cost,
                                              Time now) {
  const Verdict verdict = Judge(limit, current.sum, cost);
  Answer answer{.decision = DecisionOf(limit, state, current, verdict, cost, now), .receipt = {}};
  if (verdict == Verdict::kAllowed && cost > 0) {
    answer.decision.remaining -= cost;
    answer.decision.reset_after = LeavesAfter(limit, current.number, now);
    answer.receipt = {.before = current.number, .units = cost};
  }
  return answer;
}

}  // namespace

absl::StatusOr<Limit> MakeLimit(std::int64_t limit, Duration window, int sub_windows) {
  if (absl::Status status = internal::CheckLimit(limit); !status.ok()) return status;
  if (absl::Status status = internal::CheckWindow(window); !status.ok()) return status;
  if (sub_windows < 1 || sub_windows > kMaxSubWindows) {
    return absl::InvalidArgumentError(
        absl::StrCat("sub_windows must be from 1 to ", kMaxSubWindows, ", got ", sub_windows));
  }
  return Limit{.limit = static_cast<std::uint64_t>(limit),
               .window = window,
               .sub_windows = sub_windows,
               .step = Duration{internal::CeilDiv(window.count(), std::int64_t{sub_windows})}};
}

Answer Decide(const Limit& limit, const View& state, std::uint64_t cost, Time now) {
  return AnswerOf(limit, state, CurrentOf(limit, state, now), cost, now);
}

Answer DecideLease(const Limit& limit, const View& state, std::uint64_t cost, Time now,
                   Duration length) {
  assert(state.counts.size() == LeasedCounts(limit));
  return AnswerOf(limit, state, CurrentOfLease(limit, state, now, length), cost, now);
}

Answer ChargeLease(const Limit& limit, const View& state, std::uint64_t cost, Time now,
                   Duration length) {
  const Current current = CurrentOfLease(limit, state, now, length);
  Answer answer = AnswerOf(limit, state, current, cost, now);
  if (answer.receipt.units == 0) return answer;
  Advance(limit, state, current);
  At(state, current.number) += cost;
  return answer;
}

Answer Charge(const Limit& limit, const View& state, std::uint64_t cost, Time now,
              std::uint64_t max_used) {
  Current current = CurrentOf(limit, state, now);
  const Uint128 sum = current.sum;
  const Verdict verdict = Judge(limit, sum, cost);
  std::uint64_t charged = cost;
  if (verdict != Verdict::kAllowed) {
    charged = sum < max_used ? std::min(cost, max_used - static_cast<std::uint64_t>(sum)) : 0;
  }
  Answer answer;
  if (charged > 0) {
    if (current.number > current.last || HoldsLeases(limit, state)) Advance(limit, state, current);
    At(state, current.number) += charged;
    if (!HoldsLeases(limit, state)) current.first = current.number - limit.sub_windows;
    current.last = current.number;
    current.sum += charged;
    answer.receipt = {.before = current.number, .units = charged};
  }
  answer.decision = DecisionOf(limit, state, current, verdict, cost, now);
  return answer;
}

void Undo(const Limit& limit, const View& state, const Receipt& receipt, std::uint64_t units,
          Time now) {
  const Current current = CurrentOf(limit, state, now);
  if (receipt.before < current.first || receipt.before > current.last) return;
  std::uint64_t& count = At(state, receipt.before);
  count = internal::MinusOrZero(count, std::min(units, receipt.units));
}

std::uint64_t Debt(const Limit& limit, const View& state, Time now) {
  const Uint128 sum = CurrentOf(limit, state, now).sum;
  return static_cast<std::uint64_t>(std::min(sum, Uint128{internal::kMaxUint64}));
}

}  // namespace sluice::sliding_window_strict
