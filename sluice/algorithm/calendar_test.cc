#include "sluice/algorithm/calendar.h"

#include <gtest/gtest.h>

#include <string>

#include "absl/time/civil_time.h"

namespace sluice::calendar {
namespace {

using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::seconds;

Limit Make(Period period, std::string_view zone, std::int64_t limit = 5) {
  return MakeLimit(limit, period, zone).value();
}

WallTime Utc(int year, int month, int day, int hour = 0, int minute = 0) {
  return WallTime{Duration{absl::ToUnixNanos(
      absl::FromCivil(absl::CivilMinute(year, month, day, hour, minute), absl::UTCTimeZone()))}};
}

TEST(CalendarTest, ZonesAreThoseOfTheDatabaseAndNothingElse) {
  for (const char* name : {"UTC", "Europe/Berlin", "America/Argentina/Buenos_Aires", "Etc/GMT+5",
                           "America/Port-au-Prince"}) {
    EXPECT_TRUE(MakeLimit(1, Period::kDay, name).ok()) << name;
  }
  for (const char* name : {"", "Europe/Atlantis", "localtime", "/etc/localtime", "../../etc/passwd",
                           "Europe/../Europe/Berlin", "file:UTC", "libc:UTC", "berlin?", " UTC"}) {
    const auto refused = MakeLimit(1, Period::kDay, name);
    EXPECT_EQ(refused.status().code(), absl::StatusCode::kInvalidArgument) << name;
    EXPECT_NE(refused.status().ToString().find("unknown time zone"), std::string::npos) << name;
  }
  EXPECT_EQ(MakeLimit(-1, Period::kDay, "UTC").status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(CalendarTest, PeriodsBeginAtLocalMidnight) {
  const struct {
    Period period;
    const char* zone;
    WallTime at;
    WallTime start;
    WallTime end;
  } rows[] = {
      {Period::kDay, "UTC", Utc(2026, 5, 4, 12), Utc(2026, 5, 4), Utc(2026, 5, 5)},
      {Period::kDay, "Asia/Tokyo", Utc(2026, 5, 4, 12), Utc(2026, 5, 3, 15), Utc(2026, 5, 4, 15)},
      {Period::kWeek, "UTC", Utc(2026, 5, 4), Utc(2026, 5, 4), Utc(2026, 5, 11)},   // a Monday
      {Period::kWeek, "UTC", Utc(2026, 5, 10), Utc(2026, 5, 4), Utc(2026, 5, 11)},  // a Sunday
      {Period::kWeek, "UTC", Utc(2027, 1, 1), Utc(2026, 12, 28), Utc(2027, 1, 4)},  // over a year
      {Period::kMonth, "UTC", Utc(2026, 12, 31), Utc(2026, 12, 1), Utc(2027, 1, 1)},
      {Period::kYear, "UTC", Utc(2028, 2, 29), Utc(2028, 1, 1), Utc(2029, 1, 1)},
      {Period::kDay, "America/Toronto", Utc(1919, 3, 31, 5), Utc(1919, 3, 31, 4, 30),
       Utc(1919, 4, 1, 4)},  // the clocks went from 23:30 to 00:30
      {Period::kDay, "UTC", Utc(1969, 12, 31, 23), Utc(1969, 12, 31), Utc(1970, 1, 1)},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.at.time_since_epoch().count());
    const Span span = SpanOf(Make(row.period, row.zone), row.at);
    EXPECT_EQ(span.start, row.start);
    EXPECT_EQ(span.end, row.end);
  }
}

TEST(CalendarTest, SpansFollowEachOtherWithoutGapOrOverlap) {
  // Every hour of twelve years in zones with clock changes of all kinds.
  for (const char* zone :
       {"Europe/Berlin", "America/Santiago", "America/Havana", "America/St_Johns", "Pacific/Apia",
        "Australia/Lord_Howe", "Africa/Casablanca", "Asia/Gaza", "America/Asuncion"}) {
    for (const Period period : {Period::kDay, Period::kWeek, Period::kMonth, Period::kYear}) {
      SCOPED_TRACE(std::string(zone) + " " + std::to_string(static_cast<int>(period)));
      const Limit limit = Make(period, zone);
      Span last = SpanOf(limit, Utc(2004, 1, 1));
      for (WallTime at = Utc(2004, 1, 1); at < Utc(2016, 1, 1); at += minutes{30}) {
        const Span span = SpanOf(limit, at);
        ASSERT_LE(span.start, at);
        ASSERT_LT(at, span.end);
        if (span.start != last.start) {
          ASSERT_EQ(span.start, last.end) << at.time_since_epoch().count();
        } else {
          ASSERT_EQ(span.end, last.end);
        }
        last = span;
      }
    }
  }
}

TEST(CalendarTest, TheEndsOfTimeAreNoTrap) {
  for (const Period period : {Period::kDay, Period::kWeek, Period::kMonth, Period::kYear}) {
    const Limit limit = Make(period, "Pacific/Apia");
    for (const WallTime at : {WallTime::min(), WallTime::max()}) {
      const Step<State> step = Decide(limit, {}, 5, {Time{}, at});
      EXPECT_TRUE(step.decision.allowed());
      EXPECT_EQ(Decide(limit, step.next, 1, {Time{}, at}).decision.verdict, Verdict::kLimited);
    }
  }
}

TEST(CalendarTest, APeriodAheadOfTheNextIsDamage) {
  const Limit limit = Make(Period::kDay, "UTC");
  const auto at = [](WallTime wall) { return Now{Time{}, wall}; };
  const State state = Decide(limit, {}, 5, at(Utc(2026, 5, 6, 1))).next;
  // A day back: kept.
  const Step<State> kept = Decide(limit, state, 1, at(Utc(2026, 5, 5, 1)));
  EXPECT_EQ(kept.decision.verdict, Verdict::kLimited);
  EXPECT_EQ(kept.decision.retry_after, Duration{hours{47}});
  EXPECT_FALSE(kept.damaged);
  // Two days back: that cannot be.
  const Step<State> dropped = Decide(limit, state, 1, at(Utc(2026, 5, 4, 1)));
  EXPECT_TRUE(dropped.decision.allowed());
  EXPECT_TRUE(dropped.damaged);
}

TEST(CalendarTest, AReloadKeepsWhatWasUsedInThePeriod) {
  const Now now{Time{}, Utc(2026, 5, 4, 12)};
  const Limit five = Make(Period::kDay, "Europe/Berlin", 5);
  const Limit ten = Make(Period::kDay, "Europe/Berlin", 10);
  const Limit month = Make(Period::kMonth, "Europe/Berlin", 4);
  const State used = Decide(five, {}, 5, now).next;
  EXPECT_EQ(Convert(five, used, ten, now), used);
  EXPECT_EQ(Decide(ten, Convert(five, used, ten, now), 5, now).decision.remaining, 0U);
  // Another period: it counts there, as far as there is room.
  EXPECT_EQ(Debt(month, Convert(five, used, month, now), now), 4U);
  EXPECT_EQ(Convert(five, used, month, {Time{}, Utc(2026, 5, 5, 12)}), State{});  // it is over
}

}  // namespace
}  // namespace sluice::calendar
