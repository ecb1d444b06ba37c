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

// `units`, at most the capacity, as charged now.
std::string Owed(const ScriptLimit& to, std::uint64_t units, Now now, std::uint64_t undone) {
  units = std::min(units, CapacityOf(to.limit()));
  if (units == 0) return {};
  if (HasSmallState(to.limit())) {
    return WriteSmall(to, {Owing(to.limit(), units, now), undone});
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
    undone = static_cast<std::uint64_t>(was.us + 1) * static_cast<std::uint64_t>(in_us);
  }
  if (HasSmallState(to.limit()) && before.wall == after.wall) {
    return WriteSmall(to, {Convert(from, state->state, to.limit(), after), undone});
  }
  return Owed(to, DebtOf(from, state->state, before), after, undone);
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
    return Conversion{std::string(there.substr(0, head)), Owed(to, owed, after, 0)};
  }
  const std::string_view text = there.substr(prefix);
  if (const auto* strict = std::get_if<StrictLimit>(&*from)) {
    absl::StatusOr<StrictText> state = ReadStrict(*strict, text);
    if (!state.ok()) return state.status();
    const std::uint64_t owed =
        sliding_window_strict::Debt(*strict, state->ViewOf(*strict), now.steady);
    return Conversion{std::string(there), Owed(to, owed, after, 0)};
  }
  absl::StatusOr<std::string> converted = FromSmall(*from, text, to, now, phase_bits);
  if (!converted.ok()) return converted.status();
  return Conversion{std::string(there), *std::move(converted)};
}

}  // namespace sluice::redis
