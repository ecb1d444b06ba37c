#include "sluice/algorithm/lease_size.h"

#include <algorithm>
#include <chrono>

namespace sluice {

Duration AutomaticLease(const Limit& limit) {
  constexpr Duration kLongest = std::chrono::milliseconds{100};
  return std::min(std::clamp(WindowOf(limit) / 50, kShortestLease, kLongest), LongestLease(limit));
}

std::optional<LeaseSize> LeaseSizeOf(const Limit& limit, std::uint64_t most, Duration length) {
  if (!CanLease(limit)) return std::nullopt;
  length = length > Duration{0} ? std::min(length, LongestLease(limit)) : AutomaticLease(limit);
  if (length < kShortestLease) return std::nullopt;
  const std::uint64_t possible = MostLeased(limit, length);
  most = most > 0 ? std::min(most, possible) : possible;
  if (most < kLeastLeased) return std::nullopt;
  return LeaseSize{.most = most, .length = length};
}

}  // namespace sluice
