// Which limits can be counted in a shared store.
//
// A server with scripts counts in doubles, of which every whole number up to 2^53 is exact; what it
// adds to a count before it compares must fit, too.
#pragma once

#include <chrono>
#include <cstdint>

#include "absl/status/status.h"
#include "sluice/algorithm/limit.h"
#include "sluice/base/time.h"

namespace sluice {

// Of units in a window, a log or in flight.
inline constexpr std::uint64_t kMostRemoteUnits = std::uint64_t{1} << 50;
// Of the time in which a full bucket is paid back, or the longest queue leaves: 100 years.
inline constexpr Duration kMostRemoteCapacity = std::chrono::hours{876'600};

// InvalidArgument: it can not. The message begins with the name of the field that is too large.
[[nodiscard]] absl::Status FitsRemote(const Limit& limit);

}  // namespace sluice
