// The plainest keeper of a sliding window log's events, for tests and as an example of one.
#pragma once

#include <cstdint>
#include <vector>

#include "sluice/algorithm/sliding_window_log.h"

namespace sluice::testing {

class VectorLog {
 public:
  [[nodiscard]] std::uint64_t size() const { return events_.size(); }
  [[nodiscard]] std::uint64_t sum() const {
    std::uint64_t sum = 0;
    for (const auto& event : events_) sum += event.cost;
    return sum;
  }
  [[nodiscard]] Time latest() const { return latest_; }
  [[nodiscard]] sliding_window_log::Event at(std::uint64_t n) const { return events_.at(n); }

  void erase(std::uint64_t n) { events_.erase(events_.begin() + static_cast<std::ptrdiff_t>(n)); }
  void set_cost(std::uint64_t n, std::uint32_t cost) { events_.at(n).cost = cost; }

  // Does what an answer says about a charge.
  void Keep(const sliding_window_log::Limit& limit, const sliding_window_log::Answer& answer) {
    events_.erase(events_.begin(), events_.begin() + static_cast<std::ptrdiff_t>(answer.expired));
    if (answer.receipt.units == 0) return;
    latest_ = answer.latest;
    if (limit.weighted) {
      events_.push_back(answer.event);
    } else {
      events_.insert(events_.end(), answer.event.cost, {.stamp = answer.event.stamp, .cost = 1});
    }
  }

  // A reload.
  void Rescale(const sliding_window_log::Limit& from, const sliding_window_log::Limit& to,
               Time now) {
    const bool same_times = from.tick == to.tick && from.window == to.window;
    if (!same_times) Keep(from, sliding_window_log::Decide(from, *this, 0, now));
    std::vector<sliding_window_log::Event> rescaled;
    for (const auto& event : events_) {
      const auto moved = sliding_window_log::Rescale(from, latest_, event, to);
      if (to.weighted) {
        rescaled.push_back(moved);
      } else {
        rescaled.insert(rescaled.end(), moved.cost, {.stamp = moved.stamp, .cost = 1});
      }
    }
    latest_ = sliding_window_log::RescaleLatest(from, latest_, to);
    events_ = std::move(rescaled);
  }

  friend bool operator==(const VectorLog&, const VectorLog&) = default;

 private:
  std::vector<sliding_window_log::Event> events_;
  Time latest_{};
};

static_assert(sliding_window_log::MutableEventLog<VectorLog>);

}  // namespace sluice::testing
