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
  for (Timer* timer : heap_) timer->place_ = Timer::kNone;
  ::close(descriptor_);
}

void Timers::Insert(Timer& timer) {
  heap_.push_back(&timer);
  Up(heap_.size() - 1);
  Arm();
}

void Timers::Remove(Timer& timer) {
  const std::size_t place = std::exchange(timer.place_, Timer::kNone);
  Timer* last = heap_.back();
  heap_.pop_back();
  if (last == &timer) return;
  Put(place, *last);
  Up(place);
  Down(last->place_);
}

// The kernel may come in vain then; that is cheaper than to tell it.
void Timers::CallOff(Timer& timer) {
  Remove(timer);
  called_off_.push_back(std::move(timer.done_));
  set_.Soon(*this);
}

void Timers::Put(std::size_t place, Timer& timer) {
  heap_[place] = &timer;
  timer.place_ = place;
}

void Timers::Up(std::size_t place) {
  Timer& timer = *heap_[place];
  while (place > 0 && timer.at_ < heap_[(place - 1) / 2]->at_) {
    Put(place, *heap_[(place - 1) / 2]);
    place = (place - 1) / 2;
  }
  Put(place, timer);
}

void Timers::Down(std::size_t place) {
  Timer& timer = *heap_[place];
  while (true) {
    std::size_t child = 2 * place + 1;
    if (child >= heap_.size()) break;
    if (child + 1 < heap_.size() && heap_[child + 1]->at_ < heap_[child]->at_) ++child;
    if (timer.at_ <= heap_[child]->at_) break;
    Put(place, *heap_[child]);
    place = child;
  }
  Put(place, timer);
}

void Timers::Arm() {
  if (heap_.empty() || heap_.front()->at_ >= armed_) return;
  armed_ = heap_.front()->at_;
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
  while (!heap_.empty() && heap_.front()->at_ <= now) {
    Timer& timer = *heap_.front();
    Remove(timer);
    Timer::Done done = std::move(timer.done_);
    done(true);
  }
  Arm();
}

}  // namespace sluice::net
