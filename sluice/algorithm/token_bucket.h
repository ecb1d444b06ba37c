// The default. GCRA, the generic cell rate algorithm (ITU-T Recommendation I.371): a token
// bucket that keeps one instant instead of a count and a timestamp.
//
// For each key it keeps the theoretical arrival time (TAT): the instant at which all that was spent
// so far is paid back. A request passes when paying for it would put the TAT no further than the
// capacity ahead of now. A key that owes nothing is the same as an absent key.
//
//   now                       TAT                now + capacity
//    |---- spent, to pay back --|------ free ------|
//
//   capacity    = burst * interval
//   allowed    <=> max(tat, now) + increment(cost) <= now + capacity      (<=: a full burst passes)
//   remaining   = floor((now + capacity - tat) / interval), at least 0
//   retry_after = max(tat, now) + increment(cost) - now - capacity
//   reset_after = tat - now
//
// Ticks. The TAT counts ticks, 1 / ticks_per_ns of a nanosecond with ticks_per_ns <= 8, chosen so
// that the interval of one unit is whole where it can be (3/s, 7/min, 10 M/s, 700 M/s). For other
// rates (333/min, 7,919/s) the interval is no whole number of ticks; there each *request's*
// increment is rounded up in 128 bits, so errors never add up over the units of a request, and
// never admit.
//
// Guarantee: in any stretch of length t at most burst + rate * t units pass, counted net of what
// was undone. Rates without a whole interval: at most burst + rate * (t + burst ticks), that is at
// most burst / 8 ns early, never accumulating. In any window w that is up to burst + rate * w,
// which is twice the limit for the default burst; who needs "never more than N in any window" takes
// the sliding log or the strict counter.
//
// Clock: steady. One that steps back denies more, never less: where readings are up to d behind,
// the stretches above are of readings, t + d in true time. Good for 30 years of uptime; later than
// that, and before 0, time stands still, which denies.
//
// Reload: the debt is kept in units, up to the new burst. In a stretch with reloads at most this
// much passes: the burst in force at its end, what each reload took off the burst, and the sum of
// rate * time; so over one reload the larger burst + rate * time.
//
// Cost: 8 bytes a key; a few integer operations and one or two divisions, no loop, no allocation.
#pragma once

#include <algorithm>
#include <cstdint>

#include "absl/status/statusor.h"
#include "sluice/algorithm/decision.h"
#include "sluice/algorithm/internal/arithmetic.h"
#include "sluice/algorithm/rate.h"
#include "sluice/base/time.h"

namespace sluice::token_bucket {

struct Limit {
  Rate rate;                       // as written, for those who show it
  std::uint64_t burst = 1;         // units that may pass at one instant; >= 1
  std::int64_t interval = 1;       // ticks in which one unit is paid back, rounded up; >= 1
  std::int64_t capacity = 1;       // burst * interval, in ticks
  std::uint64_t period_ticks = 1;  // increment(cost) = ceil(cost * period_ticks / units) ...
  std::uint64_t units = 1;         // ... in lowest terms; 1 when the interval is whole
  std::uint8_t ticks_per_ns = 1;   // 1 to 8
  std::int64_t last_ns = 0;        // the last instant that leaves room for two capacities

  friend bool operator==(const Limit&, const Limit&) = default;
};

// Errors (InvalidArgument): rate or period not positive; more than 8 units a nanosecond; burst 0;
// burst * interval too long for 30 years of uptime to be left in 64 bits.
[[nodiscard]] absl::StatusOr<Limit> MakeLimit(Rate rate, std::uint64_t burst);

struct State {
  std::int64_t tat = 0;  // in ticks; at or before now: nothing is owed
  friend bool operator==(const State&, const State&) = default;
};

// `now` in ticks.
[[nodiscard]] std::int64_t TicksAt(const Limit& limit, Time now);
// A length in ticks as time, rounded up.
[[nodiscard]] Duration ToDuration(const Limit& limit, std::int64_t ticks);
// What `cost` units (at most the burst) add to the TAT.
[[nodiscard]] std::int64_t Increment(const Limit& limit, std::uint64_t cost);

// Decides on `cost` units at `now`. Pure: reads no clock, keeps nothing. Cost 0 is always allowed
// and charges nothing. The keeper sets the receipt's undone_before.
[[nodiscard]] Step<State> Decide(const Limit& limit, State state, std::uint64_t cost, Time now);

// Charges `cost` whatever the room: what was used is used. The debt may grow to `max_debt` units
// (>= burst; saturating, so that no sum overflows); `remaining` is then 0 until it is paid back.
// The verdict tells whether there was room, everything else how it is after the charge. The receipt
// is for what was really charged.
[[nodiscard]] Step<State> Charge(const Limit& limit, State state, std::uint64_t cost, Time now,
                                 std::uint64_t max_debt);

struct Undone {
  State next;
  std::uint64_t ticks;  // how far the TAT moved back; to be added to the key's `undone`
};

// Gives back `units` of what `receipt` charged (0 < units <= receipt.units), at most once for each
// receipt, and only what is still owed, so that a late undo mints nothing:
//
//   returned = units * T - max(0, now - max(tat before - (undone now - undone before), charged at))
//
// at least 0. `undone` is the total of `Undone::ticks` on the key so far, or any larger total (of
// several keys): larger errs to the safe side. A part is rounded down where the interval is not
// whole.
//
// `now` must not be behind the readings of later charges on the key: what they tell of the time is
// in no state, and an undo that is d behind may give back d too much. The receipt must be of this
// limit: after Convert nothing can be given back with it.
[[nodiscard]] Undone Undo(const Limit& limit, State state, const Receipt& receipt,
                          std::uint64_t units, Time now, std::uint64_t undone);

// --- Leases ---
//
// Units that are charged now and spent by whoever took them at any time within `length`. They are
// charged as of the lease's end, so that every stretch keeps its bound whenever they are spent:
//
//   now                 end = now + length      max(tat, end) + increment(cost)     now + capacity
//    |-------- may be spent ----|--------- paid back -----------|-------- free --------|
//
//   allowed    <=> max(tat, end) + increment(cost) <= now + capacity    (room is looked for at now)
//   next tat    =  max(tat, end) + increment(cost)
//   retry_after =  tat + increment(cost) - now - capacity
//
// Price: of the units that are paid back within the lease, up to length / interval go unused. So a
// lease that is as long as the capacity never passes (kNever), nor one of more than MostLeased().
//
// The keeper keeps the key's latest lease end beside the state: until then what was leased may be
// spent, so nothing is given back that would bring the TAT before it (UndoLeased).
//
// Guarantee: as above, whenever within its lease each unit is spent; what is undone counts nowhere.
[[nodiscard]] Step<State> DecideLease(const Limit& limit, State state, std::uint64_t cost, Time now,
                                      Duration length);
// What one lease can have at most, of a key that owes nothing.
[[nodiscard]] std::uint64_t MostLeased(const Limit& limit, Duration length);

// As Undo(), on a key of which something was leased, for the receipts of leases and of charges:
//
//   returned = units * T - max(0, max(now, lease end)
//                                 - max(tat before - (undone now - undone before), charged at))
//
// where a lease was charged at its end, and `lease_end` (ticks) is the latest of the key. The
// receipt of a lease is good for several undos, together of at most its units.
[[nodiscard]] Undone UndoLeased(const Limit& limit, State state, const Receipt& receipt,
                                std::uint64_t units, Time now, std::uint64_t undone,
                                std::int64_t lease_end);

struct Leased {
  State state;
  std::int64_t lease_end = 0;  // ticks; at or before now: as none
};
// As Convert(), of a key of which something was leased. What is owed at its end stays owed there,
// in units, too, since until then it may be spent.
[[nodiscard]] Leased ConvertLeased(const Limit& from, Leased leased, const Limit& to, Time now);

// Units owed at `now`, rounded up; 0 for a key that is as good as absent.
[[nodiscard]] std::uint64_t Debt(const Limit& limit, State state, Time now);

// The state under new numbers: the debt stays, in units (fractions kept, rounded up to a tick),
// capped at the new burst, so that nobody is locked out for longer than one burst.
[[nodiscard]] State Convert(const Limit& from, State state, const Limit& to, Time now);

// A state that owes `used` units (at most the burst) at `now`.
[[nodiscard]] State Owing(const Limit& limit, std::uint64_t used, Time now);

// What follows is the hot path: it is inlined into the store.

inline std::int64_t TicksAt(const Limit& limit, Time now) {
  const std::int64_t ns = now.time_since_epoch().count();
  // One comparison for both ends: a negative number is a huge one without its sign.
  if (static_cast<std::uint64_t>(ns) > static_cast<std::uint64_t>(limit.last_ns)) [[unlikely]] {
    return ns < 0 ? 0 : limit.last_ns * limit.ticks_per_ns;
  }
  return ns * limit.ticks_per_ns;
}

inline Duration ToDuration(const Limit& limit, std::int64_t ticks) {
  if (limit.ticks_per_ns == 1) return Duration{ticks};
  return Duration{internal::CeilDiv(ticks, std::int64_t{limit.ticks_per_ns})};
}

inline std::int64_t Increment(const Limit& limit, std::uint64_t cost) {
  if (cost == 1) return limit.interval;
  if (limit.units == 1) return static_cast<std::int64_t>(cost) * limit.interval;
  return static_cast<std::int64_t>(
      internal::CeilDiv(Uint128{cost} * limit.period_ticks, limit.units));
}

[[gnu::always_inline]] inline Step<State> Decide(const Limit& limit, State state,
                                                 std::uint64_t cost, Time now) {
  const std::int64_t now_ticks = TicksAt(limit, now);
  std::int64_t debt = std::max(state.tat, now_ticks) - now_ticks;
  Verdict verdict = Verdict::kAllowed;
  Duration retry_after{0};
  std::uint64_t charged = 0;
  std::uint64_t remaining = 0;
  if (cost > limit.burst) {
    verdict = Verdict::kNever;
    retry_after = kNever;
  } else if (cost > 0) {
    const std::int64_t increment = Increment(limit, cost);
    const std::int64_t room = limit.capacity - increment;
    if (debt > room) {
      verdict = Verdict::kLimited;
      retry_after = ToDuration(limit, debt - room);
    } else {
      debt += increment;
      charged = cost;
    }
  }
  if (debt < limit.capacity) {
    remaining = static_cast<std::uint64_t>(limit.capacity - debt) /
                static_cast<std::uint64_t>(limit.interval);
  }
  // Put together at the end, so that its parts stay in registers until the store writes them.
  return {.decision = {.verdict = verdict,
                       .remaining = remaining,
                       .retry_after = retry_after,
                       .reset_after = ToDuration(limit, debt)},
          .next = {charged > 0 ? now_ticks + debt : state.tat},
          .receipt = {.before = charged > 0 ? state.tat : 0,
                      .charged_at = charged > 0 ? now_ticks : 0,
                      .undone_before = 0,
                      .units = charged}};
}

}  // namespace sluice::token_bucket
