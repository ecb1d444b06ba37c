#include "sluice/transport/gateway/balancer.h"

#include <algorithm>
#include <cassert>
#include <tuple>

namespace sluice::gateway {

Balancer::Balancer(std::vector<std::uint32_t> weights, Options options) : options_(options) {
  assert(!weights.empty() && weights.size() <= kMaxUpstreams);
  for (const std::uint32_t weight : weights) {
    upstreams_.push_back({.weight = std::max<std::int64_t>(weight, 1)});
  }
}

bool Balancer::resting(std::size_t upstream, Time now) const {
  return now < upstreams_[upstream].rests_until;
}

std::size_t Balancer::Choose(Time now, Tried tried) {
  if (upstreams_.size() == 1) return 0;
  const auto was_tried = [tried](std::size_t i) { return (tried >> i & 1) != 0; };
  bool any_up = false;
  for (std::size_t i = 0; i < upstreams_.size(); ++i) {
    any_up = any_up || (!was_tried(i) && !upstreams_[i].down);
  }

  std::int64_t sum = 0;
  Upstream* chosen = nullptr;
  for (std::size_t i = 0; i < upstreams_.size(); ++i) {
    Upstream& upstream = upstreams_[i];
    if (was_tried(i) || resting(i, now) || (any_up && upstream.down)) continue;
    upstream.credit += upstream.weight;
    sum += upstream.weight;
    if (chosen == nullptr || upstream.credit > chosen->credit) chosen = &upstream;
  }
  if (chosen != nullptr) {
    chosen->credit -= sum;
    return static_cast<std::size_t>(chosen - upstreams_.data());
  }

  // Only resting ones are left, or none that was not tried.
  const auto last_resort = [&](std::size_t i) {
    return std::tuple(was_tried(i), upstreams_[i].down, upstreams_[i].rests_until);
  };
  std::size_t first = 0;
  for (std::size_t i = 1; i < upstreams_.size(); ++i) {
    if (last_resort(i) < last_resort(first)) first = i;
  }
  return first;
}

bool Balancer::Failed(std::size_t upstream, Time now) {
  Upstream& failed = upstreams_[upstream];
  failed.failures = std::min(failed.failures + 1, options_.failures);
  if (failed.failures < options_.failures) return false;
  const bool news = failed.rests_until == Time::min();
  failed.rests_until = now + options_.rest;
  return news;
}

bool Balancer::Succeeded(std::size_t upstream) {
  Upstream& answered = upstreams_[upstream];
  const bool news = answered.rests_until != Time::min();
  answered.failures = 0;
  answered.rests_until = Time::min();
  return news;
}

bool Balancer::TakeOver(std::size_t upstream, const Balancer& other, std::size_t others) {
  const Upstream& from = other.upstreams_[others];
  Upstream& to = upstreams_[upstream];
  to.failures = std::min(from.failures, options_.failures);
  to.rests_until = from.rests_until;
  return to.rests_until != Time::min();
}

}  // namespace sluice::gateway
