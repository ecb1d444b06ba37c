#include "sluice/store/redis/internal/breaker.h"

namespace sluice::redis {

void Breaker::Enter(BreakerState state, Time now) {
  // The first probe at once. Later ones at their pace, also where a trial failed.
  if (state_ == BreakerState::kClosed) next_probe_ = now;
  state_ = state;
  ++epoch_;
  failed_ = 0;
  trials_ = 0;
  since_ = now;
}

bool Breaker::Admit(Ticket* ticket) {
  if (state_ == BreakerState::kOpen) return false;
  if (state_ == BreakerState::kHalfOpen) {
    if (trials_ == options_.trials) return false;
    ++trials_;
  }
  *ticket = epoch_;
  return true;
}

bool Breaker::Succeeded(Ticket ticket) {
  if (ticket != epoch_) return false;
  failed_ = 0;
  if (state_ != BreakerState::kHalfOpen) return false;
  Enter(BreakerState::kClosed, since_);
  return true;
}

bool Breaker::Failed(Ticket ticket, Time now, bool refused) {
  if (ticket != epoch_) return false;
  if (state_ == BreakerState::kClosed && ++failed_ < options_.failures) return false;
  refused_ = refused;
  Enter(BreakerState::kOpen, now);
  return true;
}

void Breaker::Neither(Ticket ticket) {
  if (ticket == epoch_ && state_ == BreakerState::kHalfOpen) --trials_;
}

bool Breaker::ProbeAnswered(Time now) {
  if (state_ == BreakerState::kOpen) {
    Enter(BreakerState::kHalfOpen, now);
    return true;
  }
  if (state_ == BreakerState::kHalfOpen && !refused_ && trials_ == 0 &&
      now - since_ >= options_.idle) {
    Enter(BreakerState::kClosed, now);
    return true;
  }
  return false;
}

bool Breaker::ProbeFailed(Time now) {
  if (state_ != BreakerState::kHalfOpen) return false;
  Enter(BreakerState::kOpen, now);
  return true;
}

}  // namespace sluice::redis
