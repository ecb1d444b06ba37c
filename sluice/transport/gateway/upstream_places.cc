#include "sluice/transport/gateway/upstream_places.h"

#include <utility>

namespace sluice::gateway {

struct UpstreamPlaces::Place::Turn {
  Place& place;
  bool await_ready() const { return false; }
  void await_suspend(std::coroutine_handle<> waiter) const { place.waiter_ = waiter; }
  bool await_resume() const { return place.granted_; }
};

net::Task<bool> UpstreamPlaces::Enter(Place& place, Duration patience) {
  if (in_use_ < max_) {
    ++in_use_;
    co_return true;
  }
  place.granted_ = false;
  place.in_line_ = waiting_.insert(waiting_.end(), &place);
  place.Set(patience);
  co_return co_await Place::Turn{place};
}

void UpstreamPlaces::GiveUp(Place& place) {
  if (!place.waiter_) return;
  waiting_.erase(place.in_line_);
  Resume(place);
}

void UpstreamPlaces::Resume(Place& place) {
  place.Clear();
  // Not from here: whoever calls is in the midst of its own work.
  loop_.Post([waiter = std::exchange(place.waiter_, nullptr)] { waiter.resume(); });
}

void UpstreamPlaces::Leave() {
  --in_use_;
  LetIn();
}

void UpstreamPlaces::SetMax(std::size_t max) {
  max_ = max;
  LetIn();
}

// The place is taken here and not when the other one runs: nobody gets in between.
void UpstreamPlaces::LetIn() {
  while (!waiting_.empty() && in_use_ < max_) {
    Place& next = *waiting_.front();
    waiting_.pop_front();
    next.granted_ = true;
    ++in_use_;
    Resume(next);
  }
}

}  // namespace sluice::gateway
