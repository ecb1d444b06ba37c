#include "sluice/net/timer.h"

#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

namespace sluice::net {

void Timer::Start(Instant at, Done done) {
  Cancel();
  at_ = at;
  done_ = std::move(done);
  timers_.Insert(*this);
}

void Timer::Start(Duration after, Done done) {
  const Instant now = std::chrono::steady_clock::now();
  Start(after < Instant::max() - now ? now + after : Instant::max(), std::move(done));
}

void Timer::Cancel() {
  if (place_ != kNone) timers_.CallOff(*this);
}

Timers::Timers(ReadySet& set)
    : set_(set), descriptor_(::timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC)) {
  // It is never read: each time it runs out is an edge.
  const bool watched =
      descriptor_ >= 0 && set_.Add(descriptor_, EPOLLIN | std::uint32_t{EPOLLET}, *this);
  if (!watched) std::abort();  // no loop without it
}

Timers::~Timers() {
  for (Timer* timer : heap_.all()) timer->place_ = Timer::kNone;
  ::close(descriptor_);
}

void Timers::Insert(Timer& timer) {
  heap_.Add(timer);
  Arm();
}

void Timers::Remove(Timer& timer) {
  heap_.Remove(timer);
  timer.place_ = Timer::kNone;
}

// The kernel may come in vain then; that is cheaper than to tell it.
void Timers::CallOff(Timer& timer) {
  Remove(timer);
  called_off_.push_back(std::move(timer.done_));
  set_.Soon(*this);
}

void Timers::Arm() {
  if (heap_.empty() || heap_.first().at_ >= armed_) return;
  armed_ = heap_.first().at_;
  // Zero would switch it off.
  const auto since_start = std::max(armed_.time_since_epoch(), std::chrono::nanoseconds(1));
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(since_start);
  itimerspec when{};
  when.it_value.tv_sec = seconds.count();
  when.it_value.tv_nsec = (since_start - seconds).count();
  ::timerfd_settime(descriptor_, TFD_TIMER_ABSTIME, &when, nullptr);
}

void Timers::OnReady(std::uint32_t /*events*/) {
  armed_ = Timer::Instant::max();
  set_.Soon(*this);
}

void Timers::OnWake(Wake /*why*/) {
  telling_.swap(called_off_);
  for (Timer::Done& done : telling_) done(false);
  telling_.clear();
  const Timer::Instant now = std::chrono::steady_clock::now();
  while (!heap_.empty() && heap_.first().at_ <= now) {
    Timer& timer = heap_.first();
    Remove(timer);
    Timer::Done done = std::move(timer.done_);
    done(true);
  }
  Arm();
}

}  // namespace sluice::net
