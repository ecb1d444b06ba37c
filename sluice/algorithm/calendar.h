// Calendar quota: so many units a day, week, month or year of a time zone.
//
//   | Jan 31 days | Feb 28 | Mar 31 (one of 23 h) | ...      the edges are local midnights
//
// A day begins at local midnight (where a clock change skips it, at the first instant after; where
// it comes twice, at the first); a week on Monday (ISO 8601), a month on its 1st, a year on 1
// January. A day may have 23 or 25 hours; nothing here counts in 24 h.
//
//   allowed    <=> used + cost <= limit;  retry_after = reset_after = period end - now
//
// Guarantee: at most `limit` units in a period; up to 2 * limit across an edge.
//
// Clock: UTC from 1700 to 2259, steps as fixed_window.h (the period after the current one is kept,
// further ahead is damage). Cost: 24 bytes a key; the time zone is asked only when the state holds
// no current period.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "sluice/algorithm/decision.h"
#include "sluice/base/time.h"

namespace sluice::calendar {

enum class Period : std::uint8_t { kDay, kWeek, kMonth, kYear };

struct Limit {
  std::uint64_t limit = 0;  // 0 denies everything
  Period period = Period::kDay;
  std::string zone_name;  // as in the tz database: "Europe/Berlin"
  absl::TimeZone zone;
  friend bool operator==(const Limit& a, const Limit& b) {
    return a.limit == b.limit && a.period == b.period && a.zone_name == b.zone_name;
  }
};

// Errors (InvalidArgument): limit negative; a zone that the machine's tz database does not have, or
// that is no name in it ("localtime", paths): every node must count the same days.
[[nodiscard]] absl::StatusOr<Limit> MakeLimit(std::int64_t limit, Period period,
                                              std::string_view zone_name);

// The period that holds `at`: [start, end).
struct Span {
  WallTime start;
  WallTime end;
};
[[nodiscard]] Span SpanOf(const Limit& limit, WallTime at);

struct State {
  std::int64_t start = 0;  // of the period, UTC ns
  std::int64_t end = 0;
  std::uint64_t used = 0;  // 0 is the same as absent
  friend bool operator==(const State&, const State&) = default;
};

// As in fixed_window.h: the receipt names the period, by its start.
[[nodiscard]] Step<State> Decide(const Limit& limit, State state, std::uint64_t cost, Now now);
[[nodiscard]] Step<State> Charge(const Limit& limit, State state, std::uint64_t cost, Now now,
                                 std::uint64_t max_used);
[[nodiscard]] State Undo(const Limit& limit, State state, const Receipt& receipt,
                         std::uint64_t units, Now now);
[[nodiscard]] std::uint64_t Debt(const Limit& limit, State state, Now now);
// Same period and zone: what was used stays used. Else it counts in the new period.
[[nodiscard]] State Convert(const Limit& from, State state, const Limit& to, Now now);
[[nodiscard]] State Owing(const Limit& limit, std::uint64_t used, Now now);

}  // namespace sluice::calendar
