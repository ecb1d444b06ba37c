#include "sluice/net/timer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <random>
#include <vector>

namespace sluice::net {
namespace {

using namespace std::chrono_literals;

class TimerTest : public ::testing::Test {
 protected:
  // Writes down what the timer has to say, under `name`.
  Timer::Done Tell(int name) {
    return [this, name](bool come) { (come ? come_ : called_off_).push_back(name); };
  }
  void Settle() {
    while (ready_.Wait(/*may_wait=*/false)) {
    }
  }
  void RunAll() {
    while (timers_.pending()) ready_.Wait(/*may_wait=*/true);
  }

  const Timer::Instant now_ = std::chrono::steady_clock::now();
  ReadySet ready_;
  Timers timers_{ready_};
  std::vector<int> come_;
  std::vector<int> called_off_;
};

TEST_F(TimerTest, CallsInOrderAndNeverEarly) {
  Timer late(timers_);
  Timer soon(timers_);
  Timer past(timers_);
  late.Start(now_ + 4ms, Tell(3));
  soon.Start(now_ + 2ms, Tell(2));
  past.Start(Timer::Instant(), Tell(1));
  EXPECT_TRUE(come_.empty());
  RunAll();
  EXPECT_GE(std::chrono::steady_clock::now(), now_ + 4ms);
  EXPECT_EQ(come_, (std::vector{1, 2, 3}));
}

TEST_F(TimerTest, WhoeverIsCalledOffIsToldSoon) {
  Timer cancelled(timers_);
  Timer restarted(timers_);
  auto destroyed = std::make_unique<Timer>(timers_);
  cancelled.Start(now_ + 1h, Tell(1));
  restarted.Start(now_ + 1h, Tell(2));
  destroyed->Start(now_ + 1h, Tell(3));
  cancelled.Cancel();
  cancelled.Cancel();
  restarted.Start(now_, Tell(4));
  destroyed.reset();
  EXPECT_TRUE(called_off_.empty());
  RunAll();
  EXPECT_EQ(called_off_, (std::vector{1, 2, 3}));
  EXPECT_EQ(come_, std::vector{4});
}

TEST_F(TimerTest, OneThatComesMayStartItselfAndDestroyAnother) {
  Timer first(timers_);
  auto victim = std::make_unique<Timer>(timers_);
  victim->Start(now_ + 1us, Tell(9));
  first.Start(now_, [&](bool) {
    victim.reset();
    first.Start(Duration{0}, Tell(1));
  });
  RunAll();
  EXPECT_EQ(come_, std::vector{1});
  EXPECT_EQ(called_off_, std::vector{9});
}

TEST_F(TimerTest, AnInstantBeyondTheClocksEndIsNever) {
  Timer timer(timers_);
  timer.Start(Duration::max(), Tell(1));
  Settle();
  EXPECT_TRUE(come_.empty());
  timer.Cancel();
  Settle();
  EXPECT_FALSE(timers_.pending());
}

// All instants have passed when the loop first looks.
TEST_F(TimerTest, AgreesWithASortedListOnRandomTraces) {
  std::mt19937 random(7);
  std::vector<std::unique_ptr<Timer>> timers(200);
  for (auto& timer : timers) timer = std::make_unique<Timer>(timers_);
  for (int round = 0; round < 50; ++round) {
    std::vector<int> at(timers.size(), -1);
    for (int step = 0; step < 600; ++step) {
      const std::size_t i = random() % timers.size();
      if (random() % 3 == 0) {
        timers[i]->Cancel();
        at[i] = -1;
      } else {
        at[i] = static_cast<int>(random() % 100'000);
        timers[i]->Start(Timer::Instant(std::chrono::nanoseconds(1 + at[i])),
                         [this, when = at[i]](bool come) {
                           if (come) come_.push_back(when);
                         });
      }
    }
    std::erase(at, -1);
    std::sort(at.begin(), at.end());
    RunAll();
    ASSERT_EQ(come_, at);
    come_.clear();
  }
}

}  // namespace
}  // namespace sluice::net
