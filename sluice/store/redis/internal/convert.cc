#include "sluice/store/redis/internal/convert.h"

#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "sluice/algorithm/state.h"
#include "sluice/store/redis/internal/state_text.h"
#include "sluice/store/redis/internal/text_reader.h"

namespace sluice::redis {
namespace {

using LogLimit = sliding_window_log::Limit;
using StrictLimit = sliding_window_strict::Limit;

Now Shifted(Now now, Duration phase) {
  now.wall -= phase;
  return now;
}

// `units`, at most the capacity, as charged at `now`; or, where something may be spent until later
// and the algorithm can tell, as of `until`.
std::string Owed(const ScriptLimit& to, std::uint64_t units, Now now, Time until,
                 std::uint64_t undone) {
  units = std::min(units, CapacityOf(to.limit()));
  if (units == 0) return {};
  const Duration ahead = std::max(until - now.steady, Duration{0});
  const bool can_tell = CanLease(to.limit()) &&
                        !std::holds_alternative<fixed_window::Limit>(to.limit()) &&
                        !std::holds_alternative<calendar::Limit>(to.limit());
  if (can_tell) now = {now.steady + ahead, now.wall + ahead};
  if (HasSmallState(to.limit())) {
    SmallText owed{Owing(to.limit(), units, now), undone};
    const auto* bucket = std::get_if<token_bucket::Limit>(&to.limit());
    if (bucket != nullptr && ahead > Duration{0}) {
      owed.lease_end = token_bucket::TicksAt(*bucket, now.steady);
    }
    return WriteSmall(to, owed);
  }
  if (const auto* strict = std::get_if<StrictLimit>(&to.limit())) {
    StrictText state;
    (void)sliding_window_strict::Charge(*strict, state.ViewOf(*strict), units, now.steady, units);
    return WriteStrict(to, state);
  }
  const auto& log = std::get<LogLimit>(to.limit());
  const std::int64_t tick = sliding_window_log::internal_log::TickUp(log, now.steady);
  return absl::StrCat(SteadyUs(sliding_window_log::internal_log::TimeOf(log, tick)), ":", units);
}

// No lease ends later than this: what is dated further ahead is so since the clock stepped back.
Time NoLater(Int128 until_ns, const Limit& from, Now now) {
  const std::int64_t most = (now.steady + LongestLease(from)).time_since_epoch().count();
  return Time{Duration{static_cast<std::int64_t>(std::min(until_ns, Int128{most}))}};
}

absl::StatusOr<std::string> FromSmall(const Limit& from, std::string_view text,
                                      const ScriptLimit& to, Now now, std::uint32_t phase_bits) {
  const absl::StatusOr<SmallText> state = ReadSmall(from, text);
  if (!state.ok()) return state.status();
  const absl::StatusOr<ScriptLimit> whole = ScriptLimit::Make(from);
  if (!whole.ok()) return absl::DataLossError(whole.status().message());
  const Now before = Shifted(now, whole->PhaseOf(phase_bits));
  const Now after = Shifted(now, to.PhaseOf(phase_bits));
  // What was undone counts on: a larger total errs to the safe side.
  std::uint64_t undone = 0;
  const auto* old_pace = std::get_if<token_bucket::Limit>(&from);
  const auto* new_pace = std::get_if<token_bucket::Limit>(&to.limit());
  if (old_pace != nullptr && new_pace != nullptr && state->undone > 0) {
    const Instant was = InstantOf(*old_pace, state->undone);
    const std::int64_t in_us = new_pace->ticks_per_ns * std::int64_t{1000};
    const std::int64_t us = (was.us + 1) % (std::int64_t{1} << 50);  // as the script counts it
    undone = static_cast<std::uint64_t>(us) * static_cast<std::uint64_t>(in_us);
  }
  if (old_pace != nullptr && new_pace != nullptr) {
    const auto leased = token_bucket::ConvertLeased(
        *old_pace, {std::get<token_bucket::State>(state->state), state->lease_end}, *new_pace,
        now.steady);
    if (Debt(*new_pace, leased.state, now.steady) == 0) return std::string();
    return WriteSmall(to, {leased.state, undone, leased.lease_end});
  }
  if (HasSmallState(to.limit()) && before.wall == after.wall) {
    return WriteSmall(to, {Convert(from, state->state, to.limit(), after), undone});
  }
  Time until = now.steady;
  if (old_pace != nullptr) until = NoLater(state->lease_end / old_pace->ticks_per_ns, from, now);
  return Owed(to, DebtOf(from, state->state, before), after, until, undone);
}

// The latest time of an event in a log, of its head: "latest sum".
Int128 LatestOf(std::string_view head) {
  TextReader reader(head);
  return Int128{reader.Count()} * 1000;
}

}  // namespace

absl::StatusOr<Conversion> ConvertState(std::string_view there, const ScriptLimit& to, Now now,
                                        std::uint32_t phase_bits) {
  if (std::holds_alternative<concurrency::Limit>(to.limit())) {
    return absl::DataLossError("slots have no numbers, and become none");
  }
  std::size_t prefix = 0;
  const absl::StatusOr<Limit> from = LimitOf(there, &prefix);
  if (!from.ok()) return from.status();
  if (there.size() == prefix) return absl::DataLossError("a state that is cut short");
  const Now after = Shifted(now, to.PhaseOf(phase_bits));
  if (std::holds_alternative<LogLimit>(*from)) {
    const std::size_t head = there.rfind(';');
    TextReader units(head == std::string_view::npos ? "" : there.substr(head + 1));
    const auto owed = static_cast<std::uint64_t>(units.Count());
    if (!units.done()) return absl::DataLossError("a log that is damaged");
    const Time until = NoLater(LatestOf(there.substr(prefix)), *from, now);
    return Conversion{std::string(there.substr(0, head)), Owed(to, owed, after, until, 0)};
  }
  const std::string_view text = there.substr(prefix);
  if (const auto* strict = std::get_if<StrictLimit>(&*from)) {
    absl::StatusOr<StrictText> state = ReadStrict(*strict, text);
    if (!state.ok()) return state.status();
    const std::uint64_t owed =
        sliding_window_strict::Debt(*strict, state->ViewOf(*strict), now.steady);
    const Time until =
        NoLater((Int128{state->newest} + 1) * strict->step.count() - 1000, *from, now);
    return Conversion{std::string(there), Owed(to, owed, after, until, 0)};
  }
  absl::StatusOr<std::string> converted = FromSmall(*from, text, to, now, phase_bits);
  if (!converted.ok()) return converted.status();
  return Conversion{std::string(there), *std::move(converted)};
}

}  // namespace sluice::redis
