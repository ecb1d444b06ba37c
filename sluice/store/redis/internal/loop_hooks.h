// What a part of a store asks of its loop: to be called once in this turn, after all that is under
// way, or at an instant. Destroyed, neither calls any more. For the loop's thread.
#pragma once

#include <memory>
#include <utility>

#include "absl/functional/any_invocable.h"
#include "sluice/base/time.h"
#include "sluice/net/event_loops.h"
#include "sluice/net/timer.h"

namespace sluice::redis {

// However often it is asked for: one call.
class TurnEnd {
 public:
  TurnEnd(net::EventLoop& loop, absl::AnyInvocable<void()> call)
      : loop_(loop), call_(std::move(call)) {}
  TurnEnd(const TurnEnd&) = delete;
  TurnEnd& operator=(const TurnEnd&) = delete;
  ~TurnEnd() { *self_ = nullptr; }

  void Ask() {
    if (std::exchange(asked_, true)) return;
    loop_.Post([self = self_] {
      if (*self == nullptr) return;
      (*self)->asked_ = false;
      (*self)->call_();
    });
  }

 private:
  net::EventLoop& loop_;
  absl::AnyInvocable<void()> call_;
  bool asked_ = false;
  const std::shared_ptr<TurnEnd*> self_ = std::make_shared<TurnEnd*>(this);
};

// To the precision of the machine's timers. It is set again only for an earlier instant: who puts
// something off looks at it in vain once. It may call without need.
class Wake {
 public:
  Wake(net::EventLoop& loop, absl::AnyInvocable<void()> call)
      : timer_(loop.timers()), call_(std::move(call)) {}
  Wake(const Wake&) = delete;
  Wake& operator=(const Wake&) = delete;
  ~Wake() { *self_ = nullptr; }

  void At(Time at) {
    if (at >= at_) return;
    at_ = at;
    const net::Timer::Instant instant(
        std::chrono::duration_cast<net::Timer::Instant::duration>(at.time_since_epoch()));
    timer_.Start(instant, [self = self_](bool come) {
      if (!come || *self == nullptr) return;
      (*self)->at_ = Time::max();
      (*self)->call_();
    });
  }

 private:
  net::Timer timer_;
  absl::AnyInvocable<void()> call_;
  Time at_ = Time::max();
  const std::shared_ptr<Wake*> self_ = std::make_shared<Wake*>(this);
};

}  // namespace sluice::redis
