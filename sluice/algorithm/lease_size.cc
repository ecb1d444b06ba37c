#include "sluice/algorithm/lease_size.h"

#include <algorithm>
#include <chrono>

namespace sluice {

namespace {

// While the store is slow; what it then says of the demand is from as long ago.
constexpr Duration kLongestOfAll = std::chrono::seconds{1};

}  // namespace

Duration AutomaticLease(const Limit& limit) {
  constexpr Duration kLongest = std::chrono::milliseconds{100};
  return std::min(std::clamp(WindowOf(limit) / 50, kShortestLease, kLongest), LongestLease(limit));
}

std::optional<LeaseSize> LeaseSizeOf(const Limit& limit, std::uint64_t most, Duration length) {
  if (!CanLease(limit)) return std::nullopt;
  const bool automatic = length == Duration{0};
  length = automatic ? AutomaticLease(limit) : std::min(length, LongestLease(limit));
  if (length < kShortestLease) return std::nullopt;
  const std::uint64_t possible = MostLeased(limit, length);
  most = most > 0 ? std::min(most, possible) : possible;
  if (most < kLeastLeased) return std::nullopt;
  return LeaseSize{.most = most,
                   .length = length,
                   .longest = automatic ? std::min(kLongestOfAll, LongestLease(limit)) : length};
}

}  // namespace sluice
