#include "sluice/base/clock.h"

#include <gtest/gtest.h>

namespace sluice {
namespace {

using namespace std::chrono_literals;

TEST(ManualClockTest, StepsTheWallClockWithoutTouchingTheSteadyOne) {
  ManualClock clock;
  const Now before = clock.Read();
  clock.StepWall(-1h);
  EXPECT_EQ(clock.Read().steady, before.steady);
  EXPECT_EQ(clock.Read().wall, before.wall - 1h);
  clock.Advance(5ms);
  EXPECT_EQ(clock.Read().steady, before.steady + 5ms);
  EXPECT_EQ(clock.Read().wall, before.wall - 1h + 5ms);
}

TEST(SystemClockTest, ReadsNeverStepBackAndStartAfterZero) {
  const SystemClock clock;
  Now last = clock.Read();
  EXPECT_GT(last.steady.time_since_epoch(), 0ns);
  for (int i = 0; i < 1000; ++i) {
    const Now now = clock.Read();
    EXPECT_GE(now.steady, last.steady);
    last = now;
  }
}

TEST(SystemClockTest, TellsTheMachinesWallTime) {
  const SystemClock clock;
  const auto machine = std::chrono::system_clock::now().time_since_epoch();
  const auto told = clock.Read().wall.time_since_epoch();
  EXPECT_LT(std::chrono::abs(told - machine), 1min);
}

}  // namespace
}  // namespace sluice
