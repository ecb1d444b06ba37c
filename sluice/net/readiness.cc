#include "sluice/net/readiness.h"

#include <sys/epoll.h>

#include <cassert>
#include <utility>

namespace sluice::net {
namespace {

constexpr std::uint32_t kEnds = EPOLLRDHUP | EPOLLHUP | EPOLLERR;
constexpr std::uint32_t kReads = EPOLLIN | EPOLLPRI | EPOLLRDHUP | std::uint32_t{EPOLLET};

}  // namespace

HangupWatcher::~HangupWatcher() {
  if (watched_ != nullptr) watched_->watcher_ = nullptr;
}

void HangupWatcher::OnWake(Wake /*why*/) {
  std::exchange(watched_, nullptr)->watcher_ = nullptr;
  OnHangup();
}

Readiness::~Readiness() {
  UnwatchHangup();
  assert(readers_.empty() && writers_.empty());
}

bool Readiness::Watch(int descriptor, bool to_write) {
  descriptor_ = descriptor;
  tells_of_room_ = to_write;
  readable_ = !set_.Add(descriptor, to_write ? kReads | EPOLLOUT : kReads, *this);
  return !readable_;
}

// Most sockets are never full, so the kernel is asked to tell of room only when one is. If there is
// room by then, it tells of it at once.
void Readiness::Wait(Side side, Waiter& waiter) {
  set_.Stand(waiter, side == Side::kRead ? readers_ : writers_);
  if (side == Side::kRead || std::exchange(tells_of_room_, true)) return;
  set_.Change(descriptor_, kReads | EPOLLOUT, *this);
}

void Readiness::CancelWaits() {
  set_.WakeAll(readers_, Wake::kCancelled);
  set_.WakeAll(writers_, Wake::kCancelled);
}

void Readiness::WatchHangup(HangupWatcher& watcher) {
  watcher_ = &watcher;
  watcher.watched_ = this;
  if (hung_up_) set_.Soon(watcher);
}

void Readiness::UnwatchHangup() {
  if (watcher_ == nullptr) return;
  watcher_->watched_ = nullptr;
  set_.Dismiss(*std::exchange(watcher_, nullptr));
}

void Readiness::OnReady(std::uint32_t events) {
  if ((events & kEnds) != 0) hung_up_ = true;
  if ((events & EPOLLPRI) != 0) urgent_ = true;
  if ((events & (kReads | kEnds)) != 0) {
    readable_ = true;
    set_.WakeAll(readers_, Wake::kReady);
  }
  if ((events & (EPOLLOUT | kEnds)) != 0) set_.WakeAll(writers_, Wake::kReady);
  if (hung_up_ && watcher_ != nullptr) set_.Soon(*watcher_);
}

}  // namespace sluice::net
