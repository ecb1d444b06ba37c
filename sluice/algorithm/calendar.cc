#include "sluice/algorithm/calendar.h"

#include <algorithm>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/time/civil_time.h"
#include "sluice/algorithm/internal/arithmetic.h"
#include "sluice/algorithm/internal/counted.h"
#include "sluice/algorithm/internal/validate.h"

namespace sluice::calendar {
namespace {

// The years 1700 and 2259: a year before and after them still fits 64 bits of nanoseconds.
constexpr WallTime kFirst{Duration{-8'520'000'000'000'000'000}};
constexpr WallTime kLast{Duration{9'151'000'000'000'000'000}};

WallTime Clamped(WallTime at) { return std::clamp(at, kFirst, kLast); }

absl::CivilDay FirstDay(Period period, absl::CivilDay day) {
  switch (period) {
    case Period::kDay:
      return day;
    case Period::kWeek:
      return absl::PrevWeekday(day + 1, absl::Weekday::monday);
    case Period::kMonth:
      return absl::CivilDay(absl::CivilMonth(day));
    case Period::kYear:
      return absl::CivilDay(absl::CivilYear(day));
  }
  return day;
}

absl::CivilDay NextFirstDay(Period period, absl::CivilDay first) {
  switch (period) {
    case Period::kDay:
      return first + 1;
    case Period::kWeek:
      return first + 7;
    case Period::kMonth:
      return absl::CivilDay(absl::CivilMonth(first) + 1);
    case Period::kYear:
      return absl::CivilDay(absl::CivilYear(first) + 1);
  }
  return first + 1;
}

// The first instant at which the zone's clocks show `day`, or, where they skip its midnight, the
// first after the gap.
WallTime FirstInstant(const absl::TimeZone& zone, absl::CivilDay day) {
  const absl::TimeZone::TimeInfo info = zone.At(absl::CivilSecond(day));
  const absl::Time time = info.kind == absl::TimeZone::TimeInfo::SKIPPED ? info.trans : info.pre;
  return WallTime{Duration{absl::ToUnixNanos(time)}};
}

bool IsLive(const State& state, WallTime now) {
  const std::int64_t ns = now.time_since_epoch().count();
  return state.used > 0 && state.start <= ns && ns < state.end;
}

// The period that counts at some moment.
struct Current {
  State state;
  Duration left{0};
  bool damaged = false;
};

Current At(const Limit& limit, const State& state, Now now) {
  const WallTime wall = Clamped(now.wall);
  const std::int64_t ns = wall.time_since_epoch().count();
  if (IsLive(state, wall))
    return {.state = state, .left = Duration{internal::SaturatedSub(state.end, ns)}};

  const Span span = SpanOf(limit, wall);
  Current current{.state = {.start = span.start.time_since_epoch().count(),
                            .end = span.end.time_since_epoch().count()},
                  .left = span.end - wall};
  if (state.used == 0 || state.end <= ns) return current;
  // Ahead of now. The next period is kept: the clock stepped back over its beginning.
  if (state.start == current.state.end && state.end > state.start) {
    current.state = state;
    current.left = Duration{internal::SaturatedSub(state.end, ns)};
  } else {
    current.damaged = true;
  }
  return current;
}

Step<State> Answer(const Limit& limit, const State& state, Current current, Verdict verdict,
                   std::uint64_t charged) {
  Step<State> step{.next = state, .damaged = current.damaged};
  if (charged > 0) {
    current.state.used += charged;
    step.next = current.state;
    step.receipt = {.before = current.state.start, .units = charged};
  }
  step.decision = {.verdict = verdict,
                   .remaining = internal::MinusOrZero(limit.limit, current.state.used),
                   .retry_after = internal::RetryAfter(verdict, current.left),
                   .reset_after = current.left};
  return step;
}

// Names of the tz database only: no paths, and nothing that means another zone on another machine.
bool IsZoneName(std::string_view name) {
  if (name.empty() || !absl::ascii_isalpha(static_cast<unsigned char>(name[0]))) return false;
  if (name == "localtime") return false;
  return std::all_of(name.begin(), name.end(), [](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '/' || c == '_' || c == '-' ||
           c == '+';
  });
}

}  // namespace

absl::StatusOr<Limit> MakeLimit(std::int64_t limit, Period period, std::string_view zone_name) {
  if (absl::Status status = internal::CheckLimit(limit); !status.ok()) return status;
  Limit made{.limit = static_cast<std::uint64_t>(limit),
             .period = period,
             .zone_name = std::string(zone_name)};
  if (!IsZoneName(zone_name) || !absl::LoadTimeZone(made.zone_name, &made.zone)) {
    return absl::InvalidArgumentError(
        absl::StrCat("unknown time zone \"", made.zone_name,
                     "\"; write a name of the tz database, such as UTC or Europe/Berlin"));
  }
  return made;
}

Span SpanOf(const Limit& limit, WallTime at) {
  at = Clamped(at);
  const absl::Time time = absl::FromUnixNanos(at.time_since_epoch().count());
  absl::CivilDay first = FirstDay(limit.period, absl::CivilDay(limit.zone.At(time).cs));
  absl::CivilDay next = NextFirstDay(limit.period, first);
  Span span{FirstInstant(limit.zone, first), FirstInstant(limit.zone, next)};
  // A clock that is set back over midnight shows the old day again after the new one began.
  while (span.end <= at) {
    next = NextFirstDay(limit.period, next);
    span = {span.end, FirstInstant(limit.zone, next)};
  }
  return span;
}

Step<State> Decide(const Limit& limit, State state, std::uint64_t cost, Now now) {
  const Current current = At(limit, state, now);
  const Verdict verdict = internal::Judge(limit.limit, current.state.used, cost);
  return Answer(limit, state, current, verdict, verdict == Verdict::kAllowed ? cost : 0);
}

Step<State> Charge(const Limit& limit, State state, std::uint64_t cost, Now now,
                   std::uint64_t max_used) {
  const Current current = At(limit, state, now);
  const Verdict verdict = internal::Judge(limit.limit, current.state.used, cost);
  return Answer(limit, state, current, verdict,
                internal::Charged(verdict, current.state.used, cost, max_used));
}

State Undo(const Limit& limit, State state, const Receipt& receipt, std::uint64_t units, Now now) {
  const Current current = At(limit, state, now);
  if (current.state.used == 0 || current.state.start != receipt.before) return state;
  state.used = internal::MinusOrZero(state.used, std::min(units, receipt.units));
  return state;
}

std::uint64_t Debt(const Limit& limit, State state, Now now) {
  return At(limit, state, now).state.used;
}

State Convert(const Limit& from, State state, const Limit& to, Now now) {
  const std::uint64_t used = Debt(from, state, now);
  if (used == 0) return State{};
  if (from.period == to.period && from.zone_name == to.zone_name) return state;
  return Owing(to, used, now);
}

State Owing(const Limit& limit, std::uint64_t used, Now now) {
  used = std::min(used, limit.limit);
  if (used == 0) return State{};
  State state = At(limit, State{}, now).state;
  state.used = used;
  return state;
}

}  // namespace sluice::calendar
