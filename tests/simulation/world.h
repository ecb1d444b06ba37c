// Simulated time: what is to happen, in order, on one thread. The same seed gives the same run.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <utility>

#include "sluice/base/time.h"

namespace sluice::simulation {

class World {
 public:
  // Since the beginning.
  [[nodiscard]] Duration now() const { return now_; }

  // What is for one instant happens in the order in which it was asked for.
  void After(Duration wait, std::function<void()> what) {
    events_.emplace(now_ + wait, std::move(what));
  }
  void RunUntil(Duration end) {
    while (!events_.empty() && events_.begin()->first <= end) {
      auto next = events_.extract(events_.begin());
      now_ = next.key();
      next.mapped()();
    }
    now_ = end;
  }

 private:
  Duration now_{0};
  std::multimap<Duration, std::function<void()>> events_;
};

}  // namespace sluice::simulation
