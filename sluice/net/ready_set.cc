#include "sluice/net/ready_set.h"

#include <sys/epoll.h>
#include <unistd.h>

#include <array>
#include <cstdlib>

namespace sluice::net {

void Waiter::Leave() {
  *link_ = next_;
  if (next_ != nullptr) {
    next_->link_ = link_;
  } else {
    *end_ = link_;
  }
  link_ = nullptr;
  next_ = nullptr;
  if (counted_ != nullptr) --*counted_;
  counted_ = nullptr;
}

void Line::Add(Waiter& waiter) {
  waiter.link_ = end_;
  waiter.end_ = &end_;
  *end_ = &waiter;
  end_ = &waiter.next_;
}

ReadySet::ReadySet() : epoll_(::epoll_create1(EPOLL_CLOEXEC)) {
  if (epoll_ < 0) std::abort();  // no loop without it
}

ReadySet::~ReadySet() { ::close(epoll_); }

bool ReadySet::Add(int descriptor, std::uint32_t events, Member& member) {
  epoll_event event{.events = events, .data = {.ptr = &member}};
  return ::epoll_ctl(epoll_, EPOLL_CTL_ADD, descriptor, &event) == 0;
}

void ReadySet::Change(int descriptor, std::uint32_t events, Member& member) {
  epoll_event event{.events = events, .data = {.ptr = &member}};
  ::epoll_ctl(epoll_, EPOLL_CTL_MOD, descriptor, &event);
}

void ReadySet::Stand(Waiter& waiter, Line& line) {
  Dismiss(waiter);
  line.Add(waiter);
  waiter.counted_ = &waiting_;
  ++waiting_;
}

void ReadySet::WakeAll(Line& line, Wake why) {
  while (!line.empty()) Soon(*line.first_, why);
}

void ReadySet::Soon(Waiter& waiter, Wake why) {
  Dismiss(waiter);
  waiter.why_ = why;
  waiter.turn_ = turn_;
  due_.Add(waiter);
}

bool ReadySet::Wait(bool may_wait) {
  std::array<epoll_event, kBatch> batch;  // NOLINT: the kernel fills it
  const int timeout = may_wait && due_.empty() ? -1 : 0;
  const int count = ::epoll_wait(epoll_, batch.data(), static_cast<int>(batch.size()), timeout);
  for (int i = 0; i < count; ++i) {
    static_cast<Member*>(batch[static_cast<std::size_t>(i)].data.ptr)
        ->OnReady(batch[static_cast<std::size_t>(i)].events);
  }
  if (due_.empty()) return count > 0;
  // Who becomes due from now on is of the next turn.
  ++turn_;
  while (!due_.empty() && due_.first_->turn_ != turn_) {
    Waiter& waiter = *due_.first_;
    waiter.Leave();
    waiter.OnWake(waiter.why_);
  }
  return true;
}

}  // namespace sluice::net
