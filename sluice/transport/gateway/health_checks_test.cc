#include "sluice/transport/gateway/health_checks.h"

#include <gtest/gtest.h>

namespace sluice::gateway {
namespace {

TEST(CheckedHealthTest, ChangesAfterAsManyInARowAndNotBefore) {
  CheckedHealth health(/*failures=*/2, /*successes=*/3, /*up=*/true);
  const struct {
    bool passed;
    bool news;
    bool up;
  } steps[] = {
      {true, false, true},  {false, false, true},  {true, false, true},  // the row is broken
      {false, false, true}, {false, true, false},  {false, false, false}, {true, false, false},
      {true, false, false}, {false, false, false},  // here too
      {true, false, false}, {true, false, false},  {true, true, true},    {false, false, true},
  };
  int row = 0;
  for (const auto& step : steps) {
    SCOPED_TRACE(row++);
    EXPECT_EQ(health.Note(step.passed), step.news);
    EXPECT_EQ(health.up(), step.up);
  }
}

TEST(CheckedHealthTest, OneThatIsDownGoesOnFromThere) {
  CheckedHealth health(/*failures=*/1, /*successes=*/1, /*up=*/false);
  EXPECT_FALSE(health.Note(false));
  EXPECT_TRUE(health.Note(true));
  EXPECT_TRUE(health.Note(false));
}

}  // namespace
}  // namespace sluice::gateway
