#include "sluice/store/lease/lease_terms.h"

#include <algorithm>
#include <chrono>

namespace sluice {

namespace {

// The store takes a part of that to answer.
constexpr Duration kShortest = std::chrono::milliseconds{1};

}  // namespace

Duration AutomaticLease(const Limit& limit) {
  constexpr Duration kLongest = std::chrono::milliseconds{100};
  return std::min(std::clamp(WindowOf(limit) / 50, kShortest, kLongest), LongestLease(limit));
}

std::optional<LeaseTerms> MakeLeaseTerms(const std::shared_ptr<const RemoteLimit>& limit,
                                         std::uint64_t most, Duration length) {
  if (!CanLease(limit->limit())) return std::nullopt;
  length = length > Duration{0} ? std::min(length, LongestLease(limit->limit()))
                                : AutomaticLease(limit->limit());
  if (length < kShortest) return std::nullopt;
  const std::uint64_t possible = MostLeased(limit->limit(), length);
  most = most > 0 ? std::min(most, possible) : possible;
  if (most < kLeastLeased) return std::nullopt;
  return LeaseTerms{.limit = limit, .most = most, .length = length};
}

}  // namespace sluice
