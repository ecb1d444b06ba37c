// The small states as values: one variant, and the algorithms' functions over (limit, state) pairs.
// packed.h squeezes the same states into words; a store keeps those that do not fit as they are.
//
// Requires everywhere: the limit is one of the five algorithms with a small state (HasSmallState).
// A state of another algorithm than the limit's is taken for absent.
#pragma once

#include <cstdint>
#include <type_traits>
#include <variant>

#include "sluice/algorithm/limit.h"

namespace sluice {

using SmallState = std::variant<std::monostate,  // absent
                                token_bucket::State, leaky_bucket::State, fixed_window::State,
                                sliding_window_counter::State, calendar::State>;
static_assert(std::is_trivially_copyable_v<SmallState>);

[[nodiscard]] bool HasSmallState(const Limit& limit);

[[nodiscard]] Step<SmallState> Decide(const Limit& limit, const SmallState& state,
                                      std::uint64_t cost, Now now);
[[nodiscard]] Step<SmallState> Charge(const Limit& limit, const SmallState& state,
                                      std::uint64_t cost, Now now, std::uint64_t max_debt);

struct SmallUndone {
  SmallState next;
  std::uint64_t ticks;  // to be added to the key's `undone`; 0 but for the token bucket
};
[[nodiscard]] SmallUndone Undo(const Limit& limit, const SmallState& state, const Receipt& receipt,
                               std::uint64_t units, Now now, std::uint64_t undone);
// --- Leases, of the algorithms with a small state that have them (CanLease) ---
//
// Token bucket: token_bucket.h says how, and what the keeper keeps beside the state. Windows and
// calendars: as Decide(), since in a window it is all the same when something is spent; a lease
// ends with its window (LeaseGoodFor).
[[nodiscard]] Step<SmallState> DecideLease(const Limit& limit, const SmallState& state,
                                           std::uint64_t cost, Now now, Duration length);
// `lease_end` as the keeper has it: the token bucket's, else 0.
[[nodiscard]] SmallUndone UndoLeased(const Limit& limit, const SmallState& state,
                                     const Receipt& receipt, std::uint64_t units, Now now,
                                     std::uint64_t undone, std::int64_t lease_end);

[[nodiscard]] std::uint64_t DebtOf(const Limit& limit, const SmallState& state, Now now);
[[nodiscard]] SmallState Convert(const Limit& from, const SmallState& state, const Limit& to,
                                 Now now);
[[nodiscard]] SmallState Owing(const Limit& limit, std::uint64_t used, Now now);

}  // namespace sluice
