// How many units of a limit are leased at a time (CanLease, limit.h), and for how long.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

#include "sluice/algorithm/limit.h"
#include "sluice/base/time.h"

namespace sluice {

// A lease costs the store as much as several requests: one of fewer units is not worth it.
inline constexpr std::uint64_t kLeastLeased = 8;

// The store takes a part of that to answer.
inline constexpr Duration kShortestLease = std::chrono::milliseconds{1};

// A fiftieth of WindowOf(limit), from 1 ms up to 100 ms, and at most LongestLease(): what goes
// unused for a lease (docs/redis.md) is then next to nothing, and a lease lasts for many times as
// long as the store takes to answer.
[[nodiscard]] Duration AutomaticLease(const Limit& limit);

struct LeaseSize {
  std::uint64_t most = 0;  // units of one lease; >= kLeastLeased
  Duration length{0};      // of one lease; from kShortestLease up to LongestLease()
  // While the store is slow to answer a lease may be longer than that, up to this, a second at
  // most. As `length` where that was said.
  Duration longest{0};
};

// `most` 0: as many as one lease can have. `length` 0: AutomaticLease(). Nothing where the limit
// has no leases (CanLease), none of kLeastLeased units that long (MostLeased), or none that is long
// enough.
[[nodiscard]] std::optional<LeaseSize> LeaseSizeOf(const Limit& limit, std::uint64_t most,
                                                   Duration length);

}  // namespace sluice
