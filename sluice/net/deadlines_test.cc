#include "sluice/net/deadlines.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <random>
#include <vector>

namespace sluice::net {
namespace {

using namespace std::chrono_literals;

// The wheel is turned by hand: its timer belongs to a loop that never runs.
class DeadlinesTest : public ::testing::Test {
 protected:
  class Probe final : public Deadline {
   public:
    explicit Probe(DeadlinesTest& test) : Deadline(test.deadlines_), test_(test) {}
    void OnDeadline() override {
      fired_at = test_.ticks_;
      ++times;
      if (then) then();
    }
    int fired_at = -1;
    int times = 0;
    std::function<void()> then;

   private:
    DeadlinesTest& test_;
  };

  void Turn(int ticks) {
    for (int i = 0; i < ticks; ++i) {
      ++ticks_;
      deadlines_.Tick();
    }
  }

  ReadySet ready_;
  Timers timers_{ready_};
  Deadlines deadlines_{timers_};
  int ticks_ = 0;
};

TEST_F(DeadlinesTest, FiresOnceAndNoSoonerThanAsked) {
  Probe probe(*this);
  probe.Set(100ms);
  Turn(2);
  EXPECT_EQ(probe.times, 0);  // the first tick may have come at once
  Turn(1);
  EXPECT_EQ(probe.times, 1);
  Turn(2000);
  EXPECT_EQ(probe.times, 1);
}

TEST_F(DeadlinesTest, ClearAndDestructionKeepItFromFiring) {
  Probe cleared(*this);
  auto destroyed = std::make_unique<Probe>(*this);
  cleared.Set(50ms);
  destroyed->Set(50ms);
  cleared.Clear();
  destroyed.reset();
  Turn(10);
  EXPECT_EQ(cleared.times, 0);
}

TEST_F(DeadlinesTest, CanBePutOffAndBroughtForward) {
  Probe later(*this);
  later.Set(50ms);
  later.Set(500ms);
  Probe sooner(*this);
  sooner.Set(10s);
  sooner.Set(50ms);
  Turn(300);
  EXPECT_EQ(later.fired_at, 11);
  EXPECT_EQ(sooner.fired_at, 2);
}

TEST_F(DeadlinesTest, WaitsLongerThanOneTurnOfTheWheel) {
  Probe probe(*this);
  probe.Set(120s);
  Turn(2400);
  EXPECT_EQ(probe.times, 0);
  Turn(1);
  EXPECT_EQ(probe.times, 1);
}

TEST_F(DeadlinesTest, OneThatFiresMayDestroyAnotherOfTheSameTickAndSetItself) {
  Probe first(*this);
  auto victim = std::make_unique<Probe>(*this);
  Probe last(*this);
  for (Probe* probe : {&first, victim.get(), &last}) probe->Set(50ms);
  last.then = [&] { victim.reset(); };  // the one linked last is looked at first
  first.then = [&] { first.Set(50ms); };
  Turn(2);
  EXPECT_EQ(first.times, 1);
  EXPECT_EQ(last.times, 1);
  Turn(2);
  EXPECT_EQ(first.times, 2);
}

TEST_F(DeadlinesTest, AgreesWithAListOfTimesOnRandomTraces) {
  std::mt19937 random(7);
  std::vector<std::unique_ptr<Probe>> probes(50);
  std::vector<int> due(probes.size(), -1);
  for (auto& probe : probes) probe = std::make_unique<Probe>(*this);
  for (int step = 0; step < 20000; ++step) {
    const std::size_t i = random() % probes.size();
    switch (random() % 4) {
      case 0: {
        const int ticks = static_cast<int>(random() % 1500);
        probes[i]->Set(ticks * Deadlines::kTick);
        due[i] = ticks_ + ticks + 1;
        break;
      }
      case 1:
        probes[i]->Clear();
        due[i] = -1;
        break;
      default:
        Turn(1);
        for (std::size_t k = 0; k < probes.size(); ++k) {
          ASSERT_EQ(probes[k]->fired_at == ticks_, due[k] == ticks_) << "at step " << step;
        }
    }
  }
}

}  // namespace
}  // namespace sluice::net
