#include "sluice/algorithm/token_bucket.h"

#include <numeric>
#include <optional>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace sluice::token_bucket {
namespace {

using internal::kMaxInt64;

constexpr int kMaxTicksPerNs = 8;
constexpr std::int64_t kUptimeNs = Duration{std::chrono::hours{262'980}}.count();  // 30 years

// The limit at a given length of the tick; nullopt when its numbers do not fit.
std::optional<Limit> AtTick(Rate rate, std::uint64_t burst, int ticks_per_ns) {
  const Uint128 period = Uint128{static_cast<std::uint64_t>(rate.period.count())} *
                         static_cast<std::uint64_t>(ticks_per_ns);
  const auto count = static_cast<std::uint64_t>(rate.count);
  const Uint128 interval = internal::CeilDiv(period, count);
  // Above one unit a tick, rounding up would not be a detail any more.
  if (count > period || period > static_cast<Uint128>(kMaxInt64)) return std::nullopt;
  const Uint128 capacity = interval * burst;
  const Uint128 needed =
      Uint128{static_cast<std::uint64_t>(kUptimeNs)} * static_cast<std::uint64_t>(ticks_per_ns) +
      2 * capacity;
  if (capacity > static_cast<Uint128>(kMaxInt64) || needed > static_cast<Uint128>(kMaxInt64)) {
    return std::nullopt;
  }
  const auto period_ticks = static_cast<std::uint64_t>(period);
  const std::uint64_t divisor = std::gcd(period_ticks, count);
  Limit limit{.rate = rate,
              .burst = burst,
              .interval = static_cast<std::int64_t>(interval),
              .capacity = static_cast<std::int64_t>(capacity),
              .period_ticks = period_ticks / divisor,
              .units = count / divisor,
              .ticks_per_ns = static_cast<std::uint8_t>(ticks_per_ns)};
  limit.last_ns = (kMaxInt64 - 2 * limit.capacity) / ticks_per_ns;
  return limit;
}

// The state's debt in ticks.
std::int64_t DebtTicks(const Limit& limit, State state, Time now) {
  const std::int64_t now_ticks = TicksAt(limit, now);
  return std::max(state.tat, now_ticks) - now_ticks;
}

// Ticks that `units` of a charge of `charged` are worth on the way back. A part is rounded down, so
// that what stays charged is never less than the units that stay.
Int128 TicksBack(const Limit& limit, std::uint64_t units, std::uint64_t charged) {
  const Uint128 product = Uint128{units} * limit.period_ticks;
  return static_cast<Int128>(units == charged ? internal::CeilDiv(product, limit.units)
                                              : product / limit.units);
}

}  // namespace

absl::StatusOr<Limit> MakeLimit(Rate rate, std::uint64_t burst) {
  if (rate.count <= 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("rate must be positive, got ", rate.count, " units a period"));
  }
  if (rate.period <= Duration{0}) {
    return absl::InvalidArgumentError(
        absl::StrCat("period must be positive, got ", rate.period.count(), " ns"));
  }
  if (Uint128{static_cast<std::uint64_t>(rate.count)} >
      Uint128{static_cast<std::uint64_t>(rate.period.count())} * kMaxTicksPerNs) {
    return absl::InvalidArgumentError(
        absl::StrCat("rate must be at most ", kMaxTicksPerNs, " units a nanosecond, got ",
                     rate.count, " per ", rate.period.count(), " ns; count in larger units"));
  }
  if (burst == 0) {
    return absl::InvalidArgumentError(
        "burst must be positive, got 0; a bucket that holds nothing denies every request");
  }
  std::optional<Limit> rounded;
  for (int ticks = 1; ticks <= kMaxTicksPerNs; ++ticks) {
    const std::optional<Limit> limit = AtTick(rate, burst, ticks);
    if (limit && limit->units == 1) return *limit;
    if (limit) rounded = limit;
  }
  if (rounded) return *rounded;
  return absl::InvalidArgumentError(absl::StrCat(
      "burst is too long to pay back: ", burst, " units at ", rate.count, " per ",
      rate.period.count(),
      " ns; burst * period / count must stay under 131 years, and the burst under 4 * 10^18"));
}

Step<State> Charge(const Limit& limit, State state, std::uint64_t cost, Time now,
                   std::uint64_t max_debt) {
  Step<State> step = Decide(limit, state, cost, now);
  if (step.receipt.units > 0 || cost == 0) return step;

  const std::int64_t now_ticks = TicksAt(limit, now);
  const std::int64_t debt = DebtTicks(limit, state, now);
  const Uint128 increment = internal::CeilDiv(Uint128{cost} * limit.period_ticks, limit.units);
  const Uint128 ceiling = std::min(Uint128{max_debt} * static_cast<std::uint64_t>(limit.interval),
                                   static_cast<Uint128>(kMaxInt64 - now_ticks));
  const auto wanted = static_cast<Uint128>(debt) + increment;
  const std::int64_t charged_debt =
      std::max(debt, static_cast<std::int64_t>(std::min(wanted, ceiling)));
  const bool whole = static_cast<Uint128>(charged_debt) == wanted;
  const auto units = static_cast<std::uint64_t>((charged_debt - debt) / limit.interval);

  // Deeper in debt the answer is no again, with the wait as it is now.
  step = Decide(limit, State{now_ticks + charged_debt}, cost, now);
  step.receipt = {.before = state.tat,
                  .charged_at = now_ticks,
                  .undone_before = 0,
                  .units = whole ? cost : units};
  return step;
}

namespace {

Undone UndoAt(const Limit& limit, State state, const Receipt& receipt, std::uint64_t units,
              std::int64_t now_ticks, std::uint64_t undone) {
  units = std::min(units, receipt.units);
  if (units == 0 || state.tat <= now_ticks) return {state, 0};

  // Charges and undos of others since then have moved the instant from which this one was paid
  // back; time since that instant has paid back what it could.
  const auto moved = static_cast<Int128>(undone - receipt.undone_before);
  const Int128 origin = std::max(receipt.before - moved, Int128{receipt.charged_at});
  const Int128 paid = std::max(now_ticks - origin, Int128{0});
  const Int128 ticks = std::clamp(TicksBack(limit, units, receipt.units) - paid, Int128{0},
                                  Int128{state.tat - now_ticks});
  return {State{static_cast<std::int64_t>(state.tat - ticks)}, static_cast<std::uint64_t>(ticks)};
}

// The length of a lease in ticks, rounded up; longer than the capacity is as good as any more.
std::int64_t LeaseTicks(const Limit& limit, Duration length) {
  const Int128 ticks = Int128{std::max(length, Duration{0}).count()} * limit.ticks_per_ns;
  return static_cast<std::int64_t>(std::min(ticks, Int128{limit.capacity} + 1));
}

}  // namespace

Undone Undo(const Limit& limit, State state, const Receipt& receipt, std::uint64_t units, Time now,
            std::uint64_t undone) {
  return UndoAt(limit, state, receipt, units, TicksAt(limit, now), undone);
}

Step<State> DecideLease(const Limit& limit, State state, std::uint64_t cost, Time now,
                        Duration length) {
  const std::int64_t now_ticks = TicksAt(limit, now);
  const std::int64_t ahead = LeaseTicks(limit, length);
  const std::int64_t debt = std::max(state.tat, now_ticks) - now_ticks;
  Step<State> step = Decide(limit, state, 0, now);
  if (cost == 0) return step;
  if (cost > limit.burst || ahead > limit.capacity - Increment(limit, cost)) {
    step.decision.verdict = Verdict::kNever;
    step.decision.retry_after = kNever;
    return step;
  }
  const std::int64_t room = limit.capacity - Increment(limit, cost);
  if (debt > room) {
    step.decision.verdict = Verdict::kLimited;
    step.decision.retry_after = ToDuration(limit, debt - room);
    return step;
  }
  const State next{now_ticks + std::max(debt, ahead) + Increment(limit, cost)};
  step = Decide(limit, next, 0, now);
  step.receipt = {.before = state.tat, .charged_at = now_ticks + ahead, .units = cost};
  return step;
}

std::uint64_t MostLeased(const Limit& limit, Duration length) {
  const std::int64_t room = limit.capacity - LeaseTicks(limit, length);
  if (room <= 0) return 0;
  const Uint128 units =
      Uint128{static_cast<std::uint64_t>(room)} * limit.units / limit.period_ticks;
  return static_cast<std::uint64_t>(std::min(units, Uint128{limit.burst}));
}

Undone UndoLeased(const Limit& limit, State state, const Receipt& receipt, std::uint64_t units,
                  Time now, std::uint64_t undone, std::int64_t lease_end) {
  return UndoAt(limit, state, receipt, units, std::max(TicksAt(limit, now), lease_end), undone);
}

std::uint64_t Debt(const Limit& limit, State state, Time now) {
  return static_cast<std::uint64_t>(
      internal::CeilDiv(DebtTicks(limit, state, now), limit.interval));
}

State Convert(const Limit& from, State state, const Limit& to, Time now) {
  const auto debt = static_cast<Uint128>(DebtTicks(from, state, now));
  if (debt == 0) return State{};
  const Uint128 ticks = internal::CeilDiv(debt * static_cast<std::uint64_t>(to.interval),
                                          static_cast<Uint128>(from.interval));
  return State{TicksAt(to, now) +
               static_cast<std::int64_t>(std::min(ticks, static_cast<Uint128>(to.capacity)))};
}

Leased ConvertLeased(const Limit& from, Leased leased, const Limit& to, Time now) {
  State state = Convert(from, leased.state, to, now);
  if (leased.lease_end <= TicksAt(from, now)) return {state, 0};
  const Time end{Duration{internal::CeilDiv(leased.lease_end, std::int64_t{from.ticks_per_ns})}};
  const std::int64_t end_ticks = TicksAt(to, end);
  const State at_end = Convert(from, leased.state, to, end);
  state.tat = std::max({state.tat, at_end.tat, end_ticks});
  return {state, end_ticks};
}

State Owing(const Limit& limit, std::uint64_t used, Time now) {
  if (used == 0) return State{};
  return State{TicksAt(limit, now) +
               static_cast<std::int64_t>(std::min(used, limit.burst)) * limit.interval};
}

}  // namespace sluice::token_bucket
