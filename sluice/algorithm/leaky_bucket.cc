#include "sluice/algorithm/leaky_bucket.h"

#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "sluice/algorithm/internal/arithmetic.h"

namespace sluice::leaky_bucket {
namespace {

using internal::kMaxInt64;

std::int64_t Backlog(State state, std::int64_t now_ticks) {
  return std::max(state.next_free, now_ticks) - now_ticks;
}

std::uint64_t Remaining(const Limit& limit, std::int64_t backlog) {
  if (backlog > limit.max_delay) return 0;
  return static_cast<std::uint64_t>((limit.max_delay - backlog) / limit.pace.interval) + 1;
}

// Where a charge of `cost` units that found `backlog` would put the end of the queue, from now on.
Uint128 After(const Limit& limit, std::int64_t backlog, std::uint64_t cost) {
  return static_cast<Uint128>(backlog) +
         internal::CeilDiv(Uint128{cost} * limit.pace.period_ticks, limit.pace.units);
}

Decision Answer(const Limit& limit, Verdict verdict, std::int64_t delay, std::int64_t backlog) {
  Decision decision{.verdict = verdict,
                    .remaining = Remaining(limit, backlog),
                    .retry_after = Duration{0},
                    .reset_after = token_bucket::ToDuration(limit.pace, backlog),
                    .delay = Duration{0}};
  if (verdict == Verdict::kNever) decision.retry_after = kNever;
  if (verdict == Verdict::kDelayed) decision.delay = token_bucket::ToDuration(limit.pace, delay);
  if (verdict == Verdict::kLimited) {
    decision.retry_after = token_bucket::ToDuration(limit.pace, backlog - limit.max_delay);
  }
  return decision;
}

Verdict Judge(const Limit& limit, std::int64_t backlog, std::uint64_t cost) {
  if (cost == 0) return Verdict::kAllowed;
  if (cost > limit.max_cost) return Verdict::kNever;
  if (backlog > limit.max_delay) return Verdict::kLimited;
  return backlog > 0 ? Verdict::kDelayed : Verdict::kAllowed;
}

}  // namespace

absl::StatusOr<Limit> MakeLimit(Rate rate, std::uint64_t queue, Duration wait) {
  if (wait < Duration{0}) {
    return absl::InvalidArgumentError(
        absl::StrCat("wait must not be negative, got ", wait.count(), " ns"));
  }
  // How many units can wait that long; the interval only grows by rounding, so this is enough.
  std::uint64_t waiting = queue;
  if (rate.count > 0 && rate.period > Duration{0}) {
    const Uint128 by_time = static_cast<Uint128>(wait.count()) * static_cast<Uint128>(rate.count) /
                            static_cast<Uint128>(rate.period.count());
    waiting = static_cast<std::uint64_t>(
        std::min({Uint128{queue}, by_time, Uint128{internal::kMaxUint64 - 1}}));
  }
  absl::StatusOr<token_bucket::Limit> pace = token_bucket::MakeLimit(rate, waiting + 1);
  if (!pace.ok()) return pace.status();
  const Uint128 by_queue = Uint128{queue} * static_cast<std::uint64_t>(pace->interval);
  const Uint128 by_time = static_cast<Uint128>(wait.count()) * pace->ticks_per_ns;
  Limit limit{.pace = *pace, .max_delay = static_cast<std::int64_t>(std::min(by_queue, by_time))};
  limit.max_cost = static_cast<std::uint64_t>(limit.max_delay / pace->interval) + 1;
  limit.pace.burst = limit.max_cost;
  limit.pace.capacity = static_cast<std::int64_t>(limit.max_cost) * pace->interval;
  return limit;
}

Step<State> Decide(const Limit& limit, State state, std::uint64_t cost, Time now) {
  const std::int64_t now_ticks = token_bucket::TicksAt(limit.pace, now);
  const std::int64_t backlog = Backlog(state, now_ticks);
  const Verdict verdict = Judge(limit, backlog, cost);
  if (verdict > Verdict::kDelayed || cost == 0) {
    return {.decision = Answer(limit, verdict, 0, backlog), .next = state, .receipt = {}};
  }
  const std::int64_t after = backlog + token_bucket::Increment(limit.pace, cost);
  return {
      .decision = Answer(limit, verdict, backlog, after),
      .next = State{now_ticks + after},
      .receipt = {
          .before = state.next_free, .charged_at = now_ticks, .undone_before = 0, .units = cost}};
}

Step<State> Charge(const Limit& limit, State state, std::uint64_t cost, Time now,
                   std::uint64_t max_debt) {
  const Step<State> step = Decide(limit, state, cost, now);
  if (step.receipt.units > 0 || cost == 0) return step;

  const std::int64_t now_ticks = token_bucket::TicksAt(limit.pace, now);
  const std::int64_t backlog = Backlog(state, now_ticks);
  const Uint128 wanted = After(limit, backlog, cost);
  const Uint128 ceiling =
      std::min(Uint128{max_debt} * static_cast<std::uint64_t>(limit.pace.interval),
               static_cast<Uint128>(kMaxInt64 - now_ticks));
  const std::int64_t after =
      std::max(backlog, static_cast<std::int64_t>(std::min(wanted, ceiling)));
  const bool whole = static_cast<Uint128>(after) == wanted;
  return {.decision = Answer(limit, step.decision.verdict, 0, after),
          .next = State{now_ticks + after},
          .receipt = {.before = state.next_free,
                      .charged_at = now_ticks,
                      .undone_before = 0,
                      .units = whole ? cost
                                     : static_cast<std::uint64_t>((after - backlog) /
                                                                  limit.pace.interval)}};
}

State Undo(const Limit& limit, State state, const Receipt& receipt, std::uint64_t units, Time now) {
  units = std::min(units, receipt.units);
  const std::int64_t now_ticks = token_bucket::TicksAt(limit.pace, now);
  if (units == 0 || state.next_free <= now_ticks) return state;
  const std::int64_t start = std::max(receipt.before, receipt.charged_at);
  const Uint128 end = After(limit, start, receipt.units);
  if (static_cast<Uint128>(state.next_free) != end) return state;  // others wait behind it
  return State{std::max(static_cast<std::int64_t>(After(limit, start, receipt.units - units)),
                        std::min(now_ticks, state.next_free))};
}

std::uint64_t Debt(const Limit& limit, State state, Time now) {
  return token_bucket::Debt(limit.pace, {state.next_free}, now);
}

State Convert(const Limit& from, State state, const Limit& to, Time now) {
  return State{token_bucket::Convert(from.pace, {state.next_free}, to.pace, now).tat};
}

State Owing(const Limit& limit, std::uint64_t used, Time now) {
  return State{token_bucket::Owing(limit.pace, used, now).tat};
}

}  // namespace sluice::leaky_bucket
