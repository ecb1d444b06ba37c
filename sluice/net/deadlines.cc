#include "sluice/net/deadlines.h"

#include <algorithm>

namespace sluice::net {

void Deadline::Unlink() {
  if (link_ == nullptr) return;
  *link_ = next_;
  if (next_ != nullptr) next_->link_ = link_;
  link_ = nullptr;
  next_ = nullptr;
  --deadlines_.linked_;
}

Deadlines::~Deadlines() {
  for (Deadline*& slot : slots_) {
    while (slot != nullptr) slot->Unlink();
  }
}

void Deadlines::Link(Deadline& deadline, std::uint64_t tick) {
  deadline.Unlink();
  // A far deadline is looked at once a turn of the wheel.
  deadline.looked_at_ = std::min(tick, now_ + kSlots - 1);
  Deadline*& slot = slots_[deadline.looked_at_ % kSlots];
  deadline.next_ = slot;
  deadline.link_ = &slot;
  if (slot != nullptr) slot->link_ = &deadline.next_;
  slot = &deadline;
  ++linked_;
  if (!running_ && !stopped_) {
    running_ = true;
    timer_.expires_after(kTick);
    RunTimer();
  }
}

void Deadlines::Tick() {
  ++now_;
  // The list is taken out whole: what is linked meanwhile, at the earliest for the next tick, lies
  // in another slot, and what is destroyed meanwhile unlinks itself from `due`.
  Deadline* due = slots_[now_ % kSlots];
  slots_[now_ % kSlots] = nullptr;
  if (due != nullptr) due->link_ = &due;
  while (due != nullptr) {
    Deadline& deadline = *due;
    deadline.Unlink();
    if (deadline.due_ == Deadline::kNever) continue;
    if (deadline.due_ > now_) {
      Link(deadline, deadline.due_);
      continue;
    }
    deadline.due_ = Deadline::kNever;
    deadline.OnDeadline();
  }
}

void Deadlines::Stop() {
  stopped_ = true;
  timer_.cancel();
}

void Deadlines::RunTimer() {
  timer_.async_wait([this](const boost::system::error_code& error) {
    if (!error && !stopped_) OnTimer();
  });
}

void Deadlines::OnTimer() {
  // A loop that was held up turns the wheel by all the ticks it missed.
  const auto now = std::chrono::steady_clock::now();
  auto next = timer_.expiry();
  while (next <= now) {
    Tick();
    next += std::chrono::duration_cast<std::chrono::steady_clock::duration>(kTick);
  }
  if (linked_ == 0) {
    running_ = false;
    return;
  }
  timer_.expires_at(next);
  RunTimer();
}

}  // namespace sluice::net
