// The small states (token bucket, leaky bucket, fixed window aligned to the clock, sliding counter)
// as one 64-bit word each, so that a store can change them with one compare-and-swap.
//
//   token, leaky bucket    the instant itself
//   fixed window           | window number | used |
//   sliding counter        | window number | previous | current |
//
// The counters get as many bits as twice the limit needs (a forced charge may exceed the limit; it
// stops at what the bits hold), the window number the rest. A limit whose window numbers would not
// last as long as WallTime (until 2262) that way does not fit a word; neither do first-hit windows,
// calendars, and the algorithms that keep more than two numbers. A window of 60 s fits with limits
// below 2^35 (fixed window) or 2^17 (sliding counter), one of 1 s below 2^29 or 2^14. The word 0 is
// an absent state.
//
// DecideWord is the hot path: the algorithm's own Decide between unpacking and packing, inlined for
// the token bucket.
//
// UTC before 1970 counts as 1970 here, less the key's phase.
#pragma once

#include <cstdint>
#include <optional>

#include "sluice/algorithm/limit.h"
#include "sluice/base/time.h"

namespace sluice {

// Whether states of `limit` fit a word.
[[nodiscard]] bool FitsWord(const Limit& limit);

// All require FitsWord(limit).
[[nodiscard]] Step<std::uint64_t> DecideWord(const Limit& limit, std::uint64_t word,
                                             std::uint64_t cost, Now now);
// `max_debt` in units; see the algorithms' Charge.
[[nodiscard]] Step<std::uint64_t> ChargeWord(const Limit& limit, std::uint64_t word,
                                             std::uint64_t cost, Now now, std::uint64_t max_debt);

struct WordUndone {
  std::uint64_t next;
  std::uint64_t ticks;  // to be added to the key's `undone`; 0 but for the token bucket
};
[[nodiscard]] WordUndone UndoWord(const Limit& limit, std::uint64_t word, const Receipt& receipt,
                                  std::uint64_t units, Now now, std::uint64_t undone);

// Units owed at `now`; 0: as good as absent, may be overwritten.
[[nodiscard]] std::uint64_t DebtOfWord(const Limit& limit, std::uint64_t word, Now now);

// From one limit's word to another's (both fit words). Same algorithm: its own Convert; else the
// units owed are owed under the new limit. Where the key's phase under `to` is another one than
// under `from`, take DebtOfWord at from's now and WordOwing at to's instead. Receipts of `from` are
// worth nothing afterwards.
[[nodiscard]] std::uint64_t ConvertWord(const Limit& from, std::uint64_t word, const Limit& to,
                                        Now now);
// A word that owes `used` units (at most the capacity).
[[nodiscard]] std::uint64_t WordOwing(const Limit& limit, std::uint64_t used, Now now);

// The phase of a key under a limit with edges of its own per key, in [0, window); 0 for all other
// limits. `bits` is drawn from the key. Subtract it from now.wall before any call above.
[[nodiscard]] Duration PhaseOf(const Limit& limit, std::uint32_t bits);

namespace internal {

// DecideWord for all algorithms but the token bucket.
[[nodiscard]] Step<std::uint64_t> DecideOtherWord(const Limit& limit, std::uint64_t word,
                                                  std::uint64_t cost, Now now);

[[nodiscard]] inline Step<std::uint64_t> AsWord(const Step<token_bucket::State>& step) {
  return {.decision = step.decision,
          .next = static_cast<std::uint64_t>(step.next.tat),
          .receipt = step.receipt};
}

}  // namespace internal

[[gnu::always_inline]] inline Step<std::uint64_t> DecideWord(const Limit& limit, std::uint64_t word,
                                                             std::uint64_t cost, Now now) {
  if (const auto* bucket = std::get_if<token_bucket::Limit>(&limit)) [[likely]] {
    return internal::AsWord(Decide(*bucket, {static_cast<std::int64_t>(word)}, cost, now.steady));
  }
  return internal::DecideOtherWord(limit, word, cost, now);
}

}  // namespace sluice
