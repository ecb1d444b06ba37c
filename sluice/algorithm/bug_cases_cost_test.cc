// Mistakes that other limiters made, as rows of this one: costs, what remains, waits, refunds.
// tests/bug_cases.txt says which test stands for which of the collected reports.
#include <gtest/gtest.h>

#include <vector>

#include "sluice/algorithm/testing/hits.h"

namespace sluice {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::seconds;
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
PureKey Log(std::int64_t limit, Duration window) {
  return PureKey(sliding_window_log::MakeLimit(limit, window, true).value());
}

// --- costs ---

TEST(CostCasesTest, ACostBeyondTheLogIsNeverMet) {
  PureKey key = Log(10, kMinute);
  Expect(key, {{Duration{0}, 5, true, 5},
               {Duration{0}, 100, false, 5, kNever},
               {Duration{0}, 5, true, 0},
               {Duration{0}, 1, false, 0}});
}

TEST(CostCasesTest, ACostOfZeroIsALook) {
  PureKey key = Fixed(10, kMinute);
  Expect(key, {{Duration{0}, 3, true, 7}, {Duration{0}, 0, true, 7}, {Duration{0}, 0, true, 7}});
}

TEST(CostCasesTest, AnOversizeRequestLeavesTheNumbersInTheirBounds) {
  PureKey key = Bucket(6, 1);
  Expect(key, {{seconds{0}, 1, true, 5}, {seconds{6}, 7, false, 6, kNever}});
  const Decision look = key.Look(0, At(kAligned + seconds{6}));
  EXPECT_EQ(look.remaining, 6U);
  EXPECT_EQ(look.reset_after, Duration{0});
}

TEST(CostCasesTest, NeverIsNoNumberOfSeconds) {
  PureKey key = Bucket(3, 3, seconds{2});
  Expect(key, {{Duration{0}, 4, false, 3, kNever}, {Duration{0}, 3, true, 0}});
}

TEST(CostCasesTest, TheCostIsAddedBeforeItIsCompared) {
  PureKey key = Fixed(100, kMinute);
  Expect(key, {{Duration{0}, 80, true, 20},
               {Duration{0}, 200, false, 20},
               {Duration{0}, 20, true, 0},
               {Duration{0}, 1, false, 0}});
}

TEST(CostCasesTest, ARateOfZeroIsRefusedAndALimitOfZeroDeniesEverything) {
  EXPECT_EQ(token_bucket::MakeLimit({0, kSecond}, 1).status().code(),
            absl::StatusCode::kInvalidArgument);
  for (PureKey key : {Fixed(0, kMinute), Log(0, kMinute),
                      PureKey(sliding_window_counter::MakeLimit(0, kMinute).value()),
                      PureKey(sliding_window_strict::MakeLimit(0, kMinute).value()),
                      PureKey(calendar::MakeLimit(0, calendar::Period::kDay, "UTC").value()),
                      PureKey(concurrency::MakeLimit(0, Duration{0}).value())}) {
    SCOPED_TRACE(AlgorithmName(key.limit()));
    Expect(key, {{seconds{0}, 1, false, 0, kNever},
                 {seconds{1}, 1, false, 0, kNever},
                 {hours{24 * 3650}, 1, false, 0, kNever}});
  }
}

TEST(CostCasesTest, ABucketHoldsAtLeastOneUnit) {
  EXPECT_FALSE(token_bucket::MakeLimit({1, seconds{10}}, 0).ok());
  PureKey key = Bucket(1, 1, seconds{10});
  EXPECT_EQ(Verdicts(key, {milliseconds{0}, milliseconds{9'999}, milliseconds{10'000}}), "ADA");
}

// --- what remains ---

TEST(RemainingCasesTest, RemainingIsNeverAboveTheLimit) {
  PureKey key = Bucket(10, 10, seconds{30});
  Expect(key, {{seconds{0}, 5, true, 5}, {hours{1}, 0, true, 10}});
}

TEST(RemainingCasesTest, AStateDoesNotStartAgainEachPeriod) {
  PureKey key = Bucket(3, 3);
  std::vector<Duration> moments;
  for (int i = 0; i <= 30; ++i) moments.push_back(i * milliseconds{100});
  const std::string verdicts = Verdicts(key, moments);
  std::vector<int> allowed;
  for (int i = 0; i <= 30; ++i) {
    if (verdicts[static_cast<std::size_t>(i)] == 'A') allowed.push_back(i);
  }
  EXPECT_EQ(allowed, (std::vector<int>{0, 1, 2, 4, 7, 10, 14, 17, 20, 24, 27, 30}));
}

TEST(RemainingCasesTest, ARefundAfterTheWindowMintsNothing) {
  PureKey key = Fixed(5, kSecond, fixed_window::Align::kFirstHit);
  const PureKey::Answer slow = key.Acquire(1, At(kAligned));
  key.Undo(slow.receipt, 1, At(kAligned + milliseconds{1500}));
  EXPECT_EQ(Verdicts(key, std::vector<Duration>(7, milliseconds{1600})), "AAAAADD");
}

TEST(RemainingCasesTest, OneASecondNeverTripsTwoHundredInTenSeconds) {
  PureKey log = Log(200, seconds{10});
  PureKey counter(sliding_window_counter::MakeLimit(200, seconds{10}).value());
  PureKey strict(sliding_window_strict::MakeLimit(200, seconds{10}).value());
  for (PureKey* key : {&log, &counter, &strict}) {
    EXPECT_EQ(CountAllowed(*key, Duration{0}, kSecond, 400), 400);
    EXPECT_LE(key->Debt(At(kAligned + seconds{400})), 12U);
  }
}

TEST(RemainingCasesTest, DenialsAreNotCharged) {
  PureKey key = Fixed(5, kSecond);
  EXPECT_EQ(CountAllowed(key, seconds{1}, milliseconds{100}, 6), 5);
  EXPECT_EQ(CountAllowed(key, seconds{2}, milliseconds{100}, 5), 5);
  EXPECT_EQ(CountAllowed(key, seconds{3}, milliseconds{100}, 8), 5);
}

TEST(RemainingCasesTest, HitsAtOneInstantCountEach) {
  PureKey unit(sliding_window_log::MakeLimit(5, seconds{10}, false).value());
  PureKey weighted = Log(5, seconds{10});
  for (PureKey* key : {&unit, &weighted}) {
    EXPECT_EQ(Verdicts(*key, std::vector<Duration>(10, Duration{0})), "AAAAADDDDD");
  }
}

TEST(RemainingCasesTest, ALimitThatIsRaisedOrLoweredKeepsWhatWasUsed) {
  PureKey lowered = Fixed(100, kMinute);
  Expect(lowered, {{seconds{0}, 1, true, 99}});
  lowered.Convert(fixed_window::MakeLimit(10, kMinute).value(), At(kAligned));
  Expect(lowered, {{seconds{0}, 1, true, 8}});

  PureKey raised = Fixed(5, kMinute);
  Expect(raised, {{seconds{0}, 5, true, 0}});
  raised.Convert(fixed_window::MakeLimit(20, kMinute).value(), At(kAligned));
  Expect(raised, {{seconds{0}, 5, true, 10}});

  // Forty denials were not charged, so a raise helps at once.
  PureKey quota = Fixed(10, hours{1});
  EXPECT_EQ(CountAllowed(quota, Duration{0}, Duration{1}, 50), 10);
  quota.Convert(fixed_window::MakeLimit(20, hours{1}).value(), At(kAligned + seconds{1}));
  EXPECT_EQ(CountAllowed(quota, seconds{1}, Duration{1}, 11), 10);
}

// --- waits ---

TEST(WaitCasesTest, TheLogWaitsForItsOldestAndNotForItsNewest) {
  PureKey key = Log(2, kMinute);
  Expect(key, {{seconds{0}, 1, true},
               {seconds{10}, 1, true},
               {seconds{20}, 1, false, 0, seconds{40}},
               {milliseconds{59'999}, 1, false, 0, milliseconds{1}},
               {seconds{60}, 1, true}});
}

TEST(WaitCasesTest, TheWaitIsForOneUnitAndNotForTheWholeBurst) {
  PureKey key = Bucket(5, 1);
  Expect(key, {{Duration{0}, 5, true, 0}, {Duration{0}, 1, false, 0, kSecond}});
}

TEST(WaitCasesTest, WhoWaitsAsToldIsNotToldToWaitAgain) {
  for (const milliseconds wait : {milliseconds{1}, milliseconds{999}, milliseconds{1000},
                                  milliseconds{1001}, milliseconds{1500}}) {
    PureKey key = Bucket(1, 1, wait);
    Expect(key, {{Duration{0}, 1, true}, {Duration{0}, 1, false, 0, wait}, {wait, 1, true}});
  }
}

// --- slots ---

TEST(SlotCasesTest, FourHundredRequestsOneAfterAnotherAreNeverDenied) {
  PureKey key(concurrency::MakeLimit(100, Duration{0}).value());
  for (int i = 0; i < 400; ++i) {
    const PureKey::Answer answer = key.Acquire(1, At(kAligned + i * kSecond));
    ASSERT_TRUE(answer.decision.allowed()) << i;
    ASSERT_TRUE(key.Undo(answer.receipt, 1, At(kAligned + i * kSecond)));
    ASSERT_FALSE(key.Undo(answer.receipt, 1, At(kAligned + i * kSecond))) << "released twice";
  }
  EXPECT_EQ(key.Debt(At(kAligned + hours{1})), 0U);
}

}  // namespace
}  // namespace sluice
