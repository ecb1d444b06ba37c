#include "sluice/algorithm/state.h"

#include <cassert>

namespace sluice {
namespace {

// The five algorithms with a small state: their State, and the clock they run on.
template <typename L>
struct Small;
template <>
struct Small<token_bucket::Limit> {
  using State = token_bucket::State;
  static Time Clock(Now now) { return now.steady; }
};
template <>
struct Small<leaky_bucket::Limit> {
  using State = leaky_bucket::State;
  static Time Clock(Now now) { return now.steady; }
};
template <>
struct Small<fixed_window::Limit> {
  using State = fixed_window::State;
  static Now Clock(Now now) { return now; }
};
template <>
struct Small<sliding_window_counter::Limit> {
  using State = sliding_window_counter::State;
  static Now Clock(Now now) { return now; }
};
template <>
struct Small<calendar::Limit> {
  using State = calendar::State;
  static Now Clock(Now now) { return now; }
};

template <typename L>
concept IsSmall = requires {
  typename Small<L>::State;
};

// Absent, or of another algorithm: an empty state.
template <typename L>
typename Small<L>::State StateFor(const SmallState& state) {
  const auto* held = std::get_if<typename Small<L>::State>(&state);
  return held == nullptr ? typename Small<L>::State{} : *held;
}

// Calls `what` with the concrete limit; every limit that comes here has a small state.
template <typename Result, typename F>
Result VisitSmall(const Limit& limit, const F& what) {
  return std::visit(
      [&]<typename L>(const L& concrete) -> Result {
        if constexpr (IsSmall<L>) {
          return what(concrete);
        } else {
          assert(false && "HasSmallState(limit) is required");
          return Result{};
        }
      },
      limit);
}

template <typename State>
Step<SmallState> Widened(const SmallState& before, const State& given, const Step<State>& step) {
  return {.decision = step.decision,
          .next = step.next == given ? before : SmallState{step.next},
          .receipt = step.receipt,
          .damaged = step.damaged};
}

}  // namespace

bool HasSmallState(const Limit& limit) {
  return std::visit([]<typename L>(const L&) { return IsSmall<L>; }, limit);
}

Step<SmallState> Decide(const Limit& limit, const SmallState& state, std::uint64_t cost, Now now) {
  return VisitSmall<Step<SmallState>>(limit, [&]<typename L>(const L& l) {
    const auto given = StateFor<L>(state);
    return Widened(state, given, Decide(l, given, cost, Small<L>::Clock(now)));
  });
}

Step<SmallState> Charge(const Limit& limit, const SmallState& state, std::uint64_t cost, Now now,
                        std::uint64_t max_debt) {
  return VisitSmall<Step<SmallState>>(limit, [&]<typename L>(const L& l) {
    const auto given = StateFor<L>(state);
    return Widened(state, given, Charge(l, given, cost, Small<L>::Clock(now), max_debt));
  });
}

SmallUndone Undo(const Limit& limit, const SmallState& state, const Receipt& receipt,
                 std::uint64_t units, Now now, std::uint64_t undone) {
  return VisitSmall<SmallUndone>(limit, [&]<typename L>(const L& l) -> SmallUndone {
    if (!std::holds_alternative<typename Small<L>::State>(state)) return {state, 0};
    if constexpr (std::is_same_v<L, token_bucket::Limit>) {
      const auto [next, ticks] = Undo(l, StateFor<L>(state), receipt, units, now.steady, undone);
      return {next, ticks};
    } else {
      return {Undo(l, StateFor<L>(state), receipt, units, Small<L>::Clock(now)), 0};
    }
  });
}

Step<SmallState> DecideLease(const Limit& limit, const SmallState& state, std::uint64_t cost,
                             Now now, Duration length) {
  const auto* bucket = std::get_if<token_bucket::Limit>(&limit);
  if (bucket == nullptr) return Decide(limit, state, cost, now);
  const auto given = StateFor<token_bucket::Limit>(state);
  return Widened(state, given, DecideLease(*bucket, given, cost, now.steady, length));
}

SmallUndone UndoLeased(const Limit& limit, const SmallState& state, const Receipt& receipt,
                       std::uint64_t units, Now now, std::uint64_t undone, std::int64_t lease_end) {
  const auto* bucket = std::get_if<token_bucket::Limit>(&limit);
  const auto* held = std::get_if<token_bucket::State>(&state);
  if (bucket == nullptr || held == nullptr) return Undo(limit, state, receipt, units, now, undone);
  const auto [next, ticks] =
      UndoLeased(*bucket, *held, receipt, units, now.steady, undone, lease_end);
  return {next, ticks};
}

std::uint64_t DebtOf(const Limit& limit, const SmallState& state, Now now) {
  return VisitSmall<std::uint64_t>(limit, [&]<typename L>(const L& l) {
    return Debt(l, StateFor<L>(state), Small<L>::Clock(now));
  });
}

SmallState Convert(const Limit& from, const SmallState& state, const Limit& to, Now now) {
  if (DebtOf(from, state, now) == 0) return SmallState{};
  return VisitSmall<SmallState>(to, [&]<typename L>(const L& l) -> SmallState {
    const L* same = std::get_if<L>(&from);
    if (same != nullptr) return Convert(*same, StateFor<L>(state), l, Small<L>::Clock(now));
    return Owing(l, DebtOf(from, state, now), Small<L>::Clock(now));
  });
}

SmallState Owing(const Limit& limit, std::uint64_t used, Now now) {
  if (used == 0) return SmallState{};
  return VisitSmall<SmallState>(limit, [&]<typename L>(const L& l) -> SmallState {
    return Owing(l, used, Small<L>::Clock(now));
  });
}

}  // namespace sluice
