#include "sluice/server/housekeeping.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>

namespace sluice {
namespace {

using namespace std::chrono_literals;

TEST(HousekeepingTest, DoesEachChoreAgainAndAgain) {
  std::promise<void> often;
  std::atomic<int> times = 0;
  std::promise<void> other;
  std::atomic<bool> other_done = false;
  const Housekeeping housekeeping({{.every = 1ms,
                                    .work =
                                        [&] {
                                          if (++times == 3) often.set_value();
                                        }},
                                   {.every = 2ms, .work = [&] {
                                      if (!other_done.exchange(true)) other.set_value();
                                    }}});
  EXPECT_EQ(often.get_future().wait_for(20s), std::future_status::ready);
  EXPECT_EQ(other.get_future().wait_for(20s), std::future_status::ready);
}

TEST(HousekeepingTest, EndsAtOnceWhateverTheIntervals) {
  std::atomic<int> times = 0;
  {
    const Housekeeping housekeeping({{.every = 1h, .work = [&] { ++times; }}});
  }
  EXPECT_EQ(times, 0);
}

}  // namespace
}  // namespace sluice
