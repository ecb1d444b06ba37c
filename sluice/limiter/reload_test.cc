// Counters over a change of the rules.
#include <gtest/gtest.h>

#include "sluice/limiter/limiter_fixture.h"

namespace sluice {
namespace {

class ReloadTest : public LimiterFixture {};

TEST_F(ReloadTest, ALoweredLimitKeepsWhatWasUsed) {
  Use({MakeRule("r", HeaderSource("K"), Window(100, 1min))});
  EXPECT_TRUE(Allowed("ann"));
  Use({MakeRule("r", HeaderSource("K"), Window(10, 1min))});
  EXPECT_TRUE(Allowed("ann"));
  EXPECT_EQ(outcome_.claims[0].decision.remaining, 8u);
}

TEST_F(ReloadTest, ARaisedLimitHelpsAtOnce) {
  Use({MakeRule("r", HeaderSource("K"), Window(5, 1min))});
  EXPECT_EQ(Passing("ann", 6), 5);
  Use({MakeRule("r", HeaderSource("K"), Window(20, 1min))});
  EXPECT_EQ(Passing("ann", 5), 5);
  EXPECT_EQ(outcome_.claims[0].decision.remaining, 10u);
}

TEST_F(ReloadTest, ARaisedQuotaCountsNoDenials) {
  Use({MakeRule("r", HeaderSource("K"), Window(10, 1h))});
  EXPECT_EQ(Passing("ann", 50), 10);
  Use({MakeRule("r", HeaderSource("K"), Window(20, 1h))});
  EXPECT_EQ(Passing("ann", 11), 10);
}

TEST_F(ReloadTest, ADenialIsNotRememberedPastAHigherLimit) {
  Use({MakeRule("r", HeaderSource("K"), Window(2, 1min))});
  EXPECT_EQ(Passing("ann", 3), 2);
  Use({MakeRule("r", HeaderSource("K"), Window(10, 1min))});
  EXPECT_TRUE(Allowed("ann"));
}

TEST_F(ReloadTest, TheSameRulesAgainChangeNothing) {
  for (int generation = 0; generation < 5; ++generation) {
    Use({MakeRule("r", HeaderSource("K"), Window(5, 1min))});
    EXPECT_EQ(Allowed("ann"), generation < 5) << generation;
  }
  EXPECT_FALSE(Allowed("ann"));
}

TEST_F(ReloadTest, ManyReloadsUseUpNoIds) {
  for (int i = 1; i <= 20'000; ++i) {
    Use({MakeRule("r", HeaderSource("K"), Bucket(i, 1s, 1))});
    clock_.Advance(10s);
  }
}

TEST_F(ReloadTest, OutcomesOfTheOldRulesStayGood) {
  Use({MakeRule("slots", HeaderSource("K"), Slots(1))});
  Outcome held = Ask("ann");
  Use({MakeRule("slots", HeaderSource("K"), Slots(2))});
  EXPECT_TRUE(Allowed("ann"));
  EXPECT_FALSE(Allowed("ann"));
  EXPECT_EQ(held.decisive_result()->rule->name, "slots");
  limiter_->Finish(held);
  EXPECT_TRUE(Allowed("ann"));
}

TEST_F(ReloadTest, AnotherAlgorithmTakesOverWhatIsOwed) {
  Use({MakeRule("r", HeaderSource("K"), Bucket(10, 1min, 10))});
  EXPECT_EQ(Passing("ann", 7), 7);
  Use({MakeRule("r", HeaderSource("K"), Window(10, 1min))});
  EXPECT_EQ(Passing("ann", 10), 3);
  Use({MakeRule("r", HeaderSource("K"), *sliding_window_log::MakeLimit(12, 1min, false))});
  EXPECT_EQ(Passing("ann", 10), 2);
}

}  // namespace
}  // namespace sluice
