#include "sluice/config/values.h"

#include <gtest/gtest.h>

#include <string>

namespace sluice::config {
namespace {

using namespace std::chrono_literals;

TEST(RateTest, ReadsWhatPeopleWrite) {
  using enum PeriodUnit;
  const struct {
    std::string_view text;
    WrittenRate rate;
  } rows[] = {
      {"100/min", {100, 1, kMinute}}, {"5/30s", {5, 30, kSecond}},
      {"10 / s", {10, 1, kSecond}},   {"1/2h", {1, 2, kHour}},
      {"10k/day", {10'000, 1, kDay}}, {"1_000_000/week", {1'000'000, 1, kWeek}},
      {"3/month", {3, 1, kMonth}},    {"3/year", {3, 1, kYear}},
      {"7/seconds", {7, 1, kSecond}}, {"9223372036854775807/s", {INT64_MAX, 1, kSecond}},
      {"1/36525d", {1, 36525, kDay}},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.text);
    const auto rate = ParseRate(row.text);
    ASSERT_TRUE(rate.ok()) << rate.complaint().message;
    EXPECT_EQ(*rate, row.rate);
  }
  EXPECT_EQ(ParseRate("5/30s")->Period(), 30s);
  EXPECT_EQ(ParseRate("5/2week")->Period(), 336h);
  EXPECT_FALSE(ParseRate("5/month")->Period().has_value());
}

TEST(RateTest, RefusesWithWhatToWrite) {
  const struct {
    std::string_view text;
    std::string_view message;
    std::string_view hint;
  } rows[] = {
      {"", "must be a rate, got ``", "write for example `100/min` or `5/30s`"},
      {"100", "must say a period, got `100`", "write for example `100/min`"},
      {"0", "must be at least 1, got 0",
       "a limit of 0 denies every request; to deny on purpose write `deny: true`"},
      {"fast", "must be a rate, got `fast`", "write for example `100/min` or `5/30s`"},
      {"0/s", "must be at least 1, got 0",
       "a limit of 0 denies every request; to deny on purpose write `deny: true`"},
      {"-5/s", "must not be negative, got `-5`", ""},
      {"0.5/s", "must be a whole number, got `0.5`",
       "for less than one a period write a longer period: `1/2s` for `0.5/s`"},
      {"/s", "must be a whole number, got ``",
       "write digits, and k, M or G for thousands, millions, billions"},
      {"5/", "must name the unit of its period",
       "write s, min, h, day, week, month or year after the number"},
      {"5/30", "must name the unit of its period",
       "write s, min, h, day, week, month or year after the number"},
      {"5/m", "has the period `m`, which may be a minute or a month", "write `min` or `month`"},
      {"5/ms", "has the period `ms`; the shortest is a second",
       "write what passes in a second: `10/s`"},
      {"5/minuts", "has an unknown period `minuts`", "did you mean `minute`?"},
      {"5/fortnight", "has an unknown period `fortnight`",
       "write s, min, h, day, week, month or year"},
      {"5/0s", "must have a period of at least 1s, got `0s`", ""},
      {"5/-1s", "must have a period of at least 1s, got `-1s`", ""},
      {"5/36526d", "must have a period of at most 100 years", ""},
      {"5/101year", "", ""},  // a calendar has one year at a time; who compiles the rule says so
      {"5/99999999999999999999s", "must have a period of at most 100 years", ""},
      {"5/s/s", "has an unknown period `s/s`", "write s, min, h, day, week, month or year"},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.text);
    const auto rate = ParseRate(row.text);
    ASSERT_EQ(rate.ok(), row.message.empty());
    if (rate.ok()) continue;
    EXPECT_EQ(rate.complaint().message, row.message);
    EXPECT_EQ(rate.complaint().hint, row.hint);
  }
}

TEST(RateTest, HugeNumbersAreExactOrRefusedAndNeverWrap) {
  const struct {
    std::string_view text;
    std::int64_t count;  // 0: refused
  } rows[] = {
      {"3355443200/s", 3355443200},
      {"4294967296/s", 4294967296},
      {"2199023255552/s", 2199023255552},
      {"9223372036854775807/s", INT64_MAX},
      {"9223372036854775808/s", 0},
      {"18446744073709551615/s", 0},
      {"18446744073709551617/s", 0},  // 1 if it wrapped
      {"1e30/s", 0},
      {"9223372036854775807k/s", 0},
      {"9300000000G/s", 0},
      {"0x10/s", 0},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.text);
    const auto rate = ParseRate(row.text);
    ASSERT_EQ(rate.ok(), row.count != 0);
    EXPECT_EQ(rate.ok() ? rate->count : 0, row.count);
  }
}

TEST(CountTest, ReadsDigitsAndThousands) {
  EXPECT_EQ(*ParseCount("0"), 0);
  EXPECT_EQ(*ParseCount("007"), 7);
  EXPECT_EQ(*ParseCount("10k"), 10'000);
  EXPECT_EQ(*ParseCount("3M"), 3'000'000);
  EXPECT_EQ(*ParseCount("2G"), 2'000'000'000);
  EXPECT_EQ(*ParseCount("1_000"), 1'000);
  for (const auto* text : {"", "k", "1m", "10 k", "1__0", "_1", "1_", "+1", "1.0", "1k5", "one"}) {
    EXPECT_FALSE(ParseCount(text).ok()) << text;
  }
}

TEST(BytesTest, ReadsBothKindsOfThousands) {
  EXPECT_EQ(*ParseBytes("65536"), 65536);
  EXPECT_EQ(*ParseBytes("64KiB"), 65536);
  EXPECT_EQ(*ParseBytes("1MiB"), 1 << 20);
  EXPECT_EQ(*ParseBytes("10MB"), 10'000'000);
  for (const auto* text : {"", "8k", "8m", "1.5MiB", "-1", "9999999999GiB"}) {
    EXPECT_FALSE(ParseBytes(text).ok()) << text;
  }
}

TEST(DurationTest, ReadsWhatPeopleWrite) {
  const struct {
    std::string_view text;
    Duration duration;
  } rows[] = {
      {"30s", 30s}, {"5ms", 5ms},           {"1h30m", 90min}, {"1h30min", 90min},       {"2d", 48h},
      {"1w", 168h}, {"100us", 100us},       {"7ns", 7ns},     {"1m30s500ms", 90'500ms}, {"0", 0s},
      {"0s", 0s},   {"36525d", kMaxPeriod},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.text);
    const auto duration = ParseDuration(row.text);
    ASSERT_TRUE(duration.ok()) << duration.complaint().message;
    EXPECT_EQ(*duration, row.duration);
  }
}

TEST(DurationTest, RefusesWithWhatToWrite) {
  const struct {
    std::string_view text;
    std::string_view message;
    std::string_view hint;
  } rows[] = {
      {"", "must be a length of time, got ``", "write for example `30s`, `500ms` or `1h30m`"},
      {"30", "must have a unit, got `30`", "write for example `30s` or `30ms`"},
      {"1.5s", "must be a length of time, got `1.5s`",
       "write for example `30s`, `500ms` or `1h30m`"},
      {"-1s", "must be a length of time, got `-1s`", "write for example `30s`, `500ms` or `1h30m`"},
      {"1 h", "must be a length of time, got `1 h`", "write for example `30s`, `500ms` or `1h30m`"},
      {"5S", "must be a length of time, got `5S`", "write for example `30s`, `500ms` or `1h30m`"},
      {"1h5", "must have a unit, got `1h5`", "write for example `1h5s` or `1h5ms`"},
      {"30m1h", "must have each unit once, the largest first, got `30m1h`",
       "write for example `1h30m`"},
      {"1m1min", "must have each unit once, the largest first, got `1m1min`",
       "write for example `1h30m`"},
      {"36526d", "must be at most 100 years, got `36526d`", ""},
      {"99999999999999999999w", "must be at most 100 years, got `99999999999999999999w`", ""},
      {"1month", "must be a length of time, got `1month`",
       "write for example `30s`, `500ms` or `1h30m`"},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.text);
    const auto duration = ParseDuration(row.text);
    ASSERT_FALSE(duration.ok());
    EXPECT_EQ(duration.complaint().message, row.message);
    EXPECT_EQ(duration.complaint().hint, row.hint);
  }
}

}  // namespace
}  // namespace sluice::config
