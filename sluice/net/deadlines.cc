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
    next_ = std::chrono::steady_clock::now() + kTick;
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
  timer_.Cancel();
}

void Deadlines::RunTimer() {
  timer_.Start(next_, [this](bool come) {
    if (come && !stopped_) OnTimer();
  });
}

void Deadlines::OnTimer() {
  // A loop that was held up turns the wheel by all the ticks it missed.
  const auto now = std::chrono::steady_clock::now();
  while (next_ <= now) {
    Tick();
    next_ += std::chrono::duration_cast<Timer::Instant::duration>(kTick);
  }
  if (linked_ == 0) {
    running_ = false;
    return;
  }
  RunTimer();
}

}  // namespace sluice::net
