// Mistakes that other limiters made, as rows of this one: edges, clocks, precision, extremes.
// tests/bug_cases.txt says which test stands for which of the collected reports.
#include <gtest/gtest.h>

#include <vector>

#include "sluice/algorithm/testing/hits.h"

namespace sluice {
namespace {

using std::chrono::hours;
using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using std::chrono::seconds;
using testing::After;
using testing::At;
using testing::CountAllowed;
using testing::Expect;
using testing::kAligned;
using testing::PureKey;
using testing::Verdicts;

constexpr Duration kSecond = seconds{1};
constexpr Duration kMinute = seconds{60};

PureKey Bucket(std::uint64_t burst, std::int64_t count, Duration period = kSecond) {
  return PureKey(token_bucket::MakeLimit({count, period}, burst).value());
}
PureKey Fixed(std::int64_t limit, Duration window,
              fixed_window::Align align = fixed_window::Align::kClock) {
  return PureKey(fixed_window::MakeLimit(limit, window, align).value());
}
PureKey Counter(std::int64_t limit, Duration window) {
  return PureKey(sliding_window_counter::MakeLimit(limit, window).value());
}

// --- edges ---

TEST(EdgeCasesTest, RemainingZeroOnTheLastAllowedHitIsNotADenial) {
  PureKey key = Fixed(2, kMinute);
  Expect(key, {{Duration{0}, 1, true, 1},
               {nanoseconds{1'000'000}, 1, true, 0},
               {nanoseconds{2'000'000}, 1, false, 0}});
}

TEST(EdgeCasesTest, ACostOneAboveTheCapacityIsNeverMetHoweverLongOneWaits) {
  PureKey key = Bucket(10, 10);
  Expect(key, {{seconds{0}, 11, false, 10, kNever},
               {hours{1}, 11, false, 10, kNever},
               {hours{1}, 10, true, 0}});
}

TEST(EdgeCasesTest, APauseGivesBackTheBurstAndNotOneMore) {
  PureKey key = Bucket(5, 5);
  EXPECT_EQ(Verdicts(key, std::vector<Duration>(6, seconds{0})), "AAAAAD");
  EXPECT_EQ(Verdicts(key, std::vector<Duration>(6, seconds{2})), "AAAAAD");
}

TEST(EdgeCasesTest, EachNewWindowServesTheWholeLimit) {
  PureKey key = Fixed(5, kSecond, fixed_window::Align::kFirstHit);
  for (int window = 0; window < 4; ++window) {
    EXPECT_EQ(CountAllowed(key, window * kSecond, milliseconds{10}, 8), 5) << window;
  }
}

TEST(EdgeCasesTest, AWindowThatEndedIsRenewedAndRecountedInOneStep) {
  PureKey key = Fixed(3, kSecond, fixed_window::Align::kFirstHit);
  Expect(key, {{milliseconds{0}, 3, true, 0},
               {milliseconds{999}, 1, false, 0, milliseconds{1}},
               {milliseconds{1001}, 1, true, 2}});  // the first of the new window
}

// --- clocks ---

TEST(ClockCasesTest, AWallClockSetBackAnHourIsOverWithinAWindow) {
  PureKey bucket = Bucket(2, 2);
  PureKey fixed = Fixed(2, kSecond);
  PureKey counter = Counter(2, kSecond);
  const Now start = At(kAligned);
  for (PureKey* key : {&bucket, &fixed, &counter}) {
    EXPECT_TRUE(key->Acquire(1, start).decision.allowed());
    EXPECT_TRUE(key->Acquire(1, start).decision.allowed());
    EXPECT_FALSE(key->Acquire(1, start).decision.allowed());
    // The steady clock goes on by a window, the wall clock is an hour back.
    const Now back{start.steady + kSecond, start.wall + kSecond - hours{1}};
    EXPECT_TRUE(key->Acquire(1, back).decision.allowed());
  }
}

TEST(ClockCasesTest, AStepBackTakesNoMoreThanItsTime) {
  // The window counts on UTC; the bucket's clock is steady, and on it a step back only delays.
  PureKey key = Bucket(5, 1);
  Expect(key, {{seconds{11}, 3, true, 2}, {seconds{11}, 3, false, 2, seconds{1}}});
  Expect(key, {{seconds{0}, 1, false, 0}, {seconds{11}, 2, true, 0}});
  // What was left then is still left: the denial at 0 s took nothing and moved nothing.
}

TEST(ClockCasesTest, ASlowNodesTimestampDoesNotRefillTheBucket) {
  PureKey key = Bucket(4, 2);
  EXPECT_EQ(Verdicts(key, std::vector<Duration>(5, seconds{10})), "AAAAD");
  EXPECT_EQ(Verdicts(key, {seconds{0}}), "D");
  EXPECT_EQ(Verdicts(key, std::vector<Duration>(5, seconds{10})), "DDDDD");
}

TEST(ClockCasesTest, AReadingFromBeforeTheLastChargeCountsAsNoTimeGone) {
  PureKey key = Bucket(10, 10);
  Expect(key, {{milliseconds{1000}, 10, true, 0}, {milliseconds{999}, 1, false, 0}});
}

TEST(ClockCasesTest, DecreasingReadingsAreNoError) {
  // As if all four had been at 1000 ns.
  const std::vector<Duration> readings = {nanoseconds{1000}, nanoseconds{999}, nanoseconds{1000},
                                          nanoseconds{1000}};
  PureKey bucket = Bucket(3, 1);
  PureKey fixed = Fixed(3, kSecond);
  PureKey first_hit = Fixed(3, kSecond, fixed_window::Align::kFirstHit);
  PureKey counter = Counter(3, kSecond);
  PureKey log(sliding_window_log::MakeLimit(3, kSecond, false).value());
  PureKey strict(sliding_window_strict::MakeLimit(3, kSecond).value());
  for (PureKey* key : {&bucket, &fixed, &first_hit, &counter, &log, &strict}) {
    SCOPED_TRACE(AlgorithmName(key->limit()));
    EXPECT_EQ(Verdicts(*key, readings), "AAAD");
  }
}

TEST(ClockCasesTest, WindowsOfHoursDoNotKnowSummerTime) {
  // 27 October 2024 00:20 UTC: forty minutes before clocks in Rome go back.
  const WallTime start{seconds{1729988400}};
  for (const Duration window : {Duration{hours{1}}, Duration{hours{24}}}) {
    PureKey key(fixed_window::MakeLimit(100, window).value());
    for (const seconds after : {seconds{0}, seconds{1800}, seconds{3600}, seconds{7200}}) {
      const Now now{Time{hours{1}} + after, start + after};
      const Decision decision = key.Acquire(1, now).decision;
      EXPECT_EQ(decision.reset_after, window - now.wall.time_since_epoch() % window);
    }
  }
}

// --- precision ---

TEST(PrecisionCasesTest, AHitExactlyWhenATokenIsDuePassesAThousandTimes) {
  PureKey key = Bucket(1, 10, milliseconds{13'000});
  EXPECT_EQ(CountAllowed(key, seconds{0}, milliseconds{1300}, 1000), 1000);
}

TEST(PrecisionCasesTest, OneAnHourIsFullAfterAnHourAndAfterTenYears) {
  PureKey key = Bucket(1, 1, hours{1});
  Expect(key, {{milliseconds{0}, 1, true},
               {milliseconds{3'599'999}, 1, false, 0, milliseconds{1}},
               {milliseconds{3'600'000}, 1, true},
               {hours{24 * 3650}, 1, true}});
}

TEST(PrecisionCasesTest, ASlidingCounterOfOneLetsItsFirstHitThrough) {
  PureKey key = Counter(1, seconds{10});
  EXPECT_EQ(Verdicts(key, {seconds{3}, milliseconds{23'001}}), "AA");
}

TEST(PrecisionCasesTest, TheWaitCountsThePartOfATokenThatIsThere) {
  PureKey key = Bucket(1, 1);
  Expect(key, {{milliseconds{0}, 1, true}, {milliseconds{200}, 1, false, 0, milliseconds{800}}});
}

TEST(PrecisionCasesTest, ThreeThousandASecondIsThreeThousandASecond) {
  PureKey key = Bucket(3000, 3000);
  Expect(key, {{Duration{0}, 3000, true, 0}});
  const int allowed = CountAllowed(key, microseconds{200}, microseconds{200}, 50'000);
  EXPECT_NEAR(allowed, 30'000, 1);
}

TEST(PrecisionCasesTest, ANewKeyIsFullWhateverTheUptime) {
  PureKey key = Bucket(1, 1, seconds{10'000});
  EXPECT_EQ(key.Acquire(1, At(seconds{3760})).decision.verdict, Verdict::kAllowed);
}

TEST(PrecisionCasesTest, WithoutABurstTheRateIsStillTheRate) {
  // One that comes back exactly when it may gets 3000 in a second ...
  PureKey exact = Bucket(1, 3000);
  int allowed = 0;
  for (Duration at{0}; at < kSecond;) {
    const Decision decision = exact.Acquire(1, At(kAligned + at)).decision;
    allowed += decision.allowed() ? 1 : 0;
    at += decision.retry_after;
    if (decision.allowed()) at += Duration{1};
  }
  EXPECT_NEAR(allowed, 3000, 1);
  // ... and one that knocks 27 times a millisecond misses its moment by one knock at most.
  PureKey knocking = Bucket(1, 3000);
  EXPECT_GE(CountAllowed(knocking, Duration{0}, Duration{37'037}, 27'000), 2700);
}

TEST(PrecisionCasesTest, RatesAboveAThousandASecondAreLimited) {
  PureKey two_thousand = Bucket(1, 2000);
  EXPECT_NEAR(CountAllowed(two_thousand, Duration{0}, microseconds{250}, 4000), 2000, 1);
  PureKey eight_thousand = Bucket(2, 8000);
  EXPECT_NEAR(CountAllowed(eight_thousand, Duration{0}, Duration{62'500}, 16'000), 8001, 1);
  PureKey at_once = Bucket(6001, 6000);
  EXPECT_EQ(CountAllowed(at_once, Duration{0}, Duration{0}, 6002), 6001);
}

// --- extremes ---

TEST(ExtremeCasesTest, LongIdleTimesDoNotOverflow) {
  PureKey large = Bucket(1'000'000, 1'000'000, hours{1});
  Expect(large, {{hours{0}, 1, true, 999'999},
                 {hours{12}, 1, true, 999'999},
                 {hours{12 + 24 * 30}, 1, true, 999'999}});
  PureKey infrequent = Bucket(1000, 1000);
  Expect(infrequent, {{hours{0}, 1, true, 999}, {hours{24 * 30}, 1, true, 999}});
}

TEST(ExtremeCasesTest, AStateShorterThanASecondIsKept) {
  PureKey key = Bucket(1, 3);
  EXPECT_EQ(Verdicts(key, std::vector<Duration>(5, Duration{0})), "ADDDD");
}

TEST(ExtremeCasesTest, HugeLimitsAreExactOrRefused) {
  for (const std::int64_t limit :
       {3'355'443'200LL, 4'294'967'296LL, 2'199'023'255'552LL, 9'223'372'036'854'775'807LL}) {
    SCOPED_TRACE(limit);
    const auto units = static_cast<std::uint64_t>(limit);
    PureKey fixed = Fixed(limit, kSecond);
    Expect(fixed, {{Duration{0}, units, true, 0}, {Duration{0}, 1, false, 0, kSecond}});
    PureKey counter = Counter(limit, kSecond);
    Expect(counter, {{Duration{0}, units, true, 0}, {Duration{0}, 1, false, 0}});

    const auto bucket = token_bucket::MakeLimit({limit, kSecond}, units);
    if (!bucket.ok()) {
      EXPECT_EQ(bucket.status().code(), absl::StatusCode::kInvalidArgument);
      continue;
    }
    PureKey key(*bucket);
    Expect(key, {{Duration{0}, units, true}, {Duration{0}, units / 2, false}});
    Expect(key, {{Duration{0}, units + 1, false, std::nullopt, kNever}});
  }
}

TEST(ExtremeCasesTest, OneACenturyWaitsACentury) {
  const Duration century{3'200'000'000'000'000'000};
  PureKey key = Bucket(1, 1, century);
  const Time start{hours{1}};
  EXPECT_TRUE(key.Acquire(1, {start, WallTime{}}).decision.allowed());
  const Decision denied = key.Acquire(1, {start + seconds{1}, WallTime{}}).decision;
  EXPECT_EQ(denied.verdict, Verdict::kLimited);
  EXPECT_EQ(denied.retry_after, century - kSecond);
}

TEST(ExtremeCasesTest, APeriodBelowAMillisecondRefills) {
  PureKey key = Bucket(10, 1, microseconds{500});
  Expect(key, {{Duration{0}, 10, true, 0}, {milliseconds{5}, 10, true, 0}});
}

// Every algorithm at every extreme at once; the sanitizers watch.
TEST(ExtremeCasesTest, NoMomentAndNoCostOverflows) {
  const std::vector<Limit> limits = {
      token_bucket::MakeLimit({333, kMinute}, 1'000'000).value(),
      token_bucket::MakeLimit({1, Duration{3'200'000'000'000'000'000}}, 1).value(),
      leaky_bucket::MakeLimit({7, kSecond}, ~std::uint64_t{0}, hours{24 * 365}).value(),
      fixed_window::MakeLimit(INT64_MAX, hours{876'600}).value(),
      fixed_window::MakeLimit(5, hours{876'600}, fixed_window::Align::kFirstHit).value(),
      sliding_window_counter::MakeLimit(INT64_MAX, hours{876'600}).value(),
      sliding_window_counter::MakeLimit(5, milliseconds{1}, Duration{999'999}).value(),
      sliding_window_strict::MakeLimit(INT64_MAX, hours{876'600}, 1).value(),
      sliding_window_strict::MakeLimit(5, milliseconds{1}, 60).value(),
      sliding_window_log::MakeLimit(5, hours{876'600}, true).value(),
      sliding_window_log::MakeLimit(5, milliseconds{1}, true).value(),
      calendar::MakeLimit(5, calendar::Period::kYear, "Pacific/Apia").value(),
      concurrency::MakeLimit(5, hours{876'600}).value(),
  };
  const std::vector<Duration> moments = {
      Duration{0},     Duration::min(), Duration{-1},           Duration{1LL << 62},
      Duration::max(), Duration{1},     Duration{-(1LL << 62)}, hours{1}};
  for (const Limit& limit : limits) {
    SCOPED_TRACE(AlgorithmName(limit));
    const bool has_debts = !std::holds_alternative<concurrency::Limit>(limit);
    PureKey key(limit);
    for (const Duration at : moments) {
      const Now now{Time{at}, WallTime{at}};
      for (const std::uint64_t cost : {std::uint64_t{1}, std::uint64_t{0}, ~std::uint64_t{0},
                                       std::uint64_t{1} << 63, CapacityOf(limit)}) {
        const PureKey::Answer answer = key.Acquire(cost, now);
        EXPECT_GE(answer.decision.retry_after, kUnknown);
        EXPECT_LE(answer.decision.remaining, CapacityOf(limit));
        if (has_debts) {
          const PureKey::Answer forced = key.Force(cost, now, ~std::uint64_t{0});
          EXPECT_GE(forced.decision.reset_after, Duration{0});
          key.Undo(forced.receipt, cost, now);
        }
        key.Undo(answer.receipt, answer.receipt.units, now);
        static_cast<void>(key.Debt(now));
      }
    }
  }
}

}  // namespace
}  // namespace sluice
