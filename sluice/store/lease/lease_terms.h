// Whether units of a limit are leased, how many at a time, and for how long.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "sluice/algorithm/limit.h"
#include "sluice/base/time.h"
#include "sluice/store/remote_store.h"

namespace sluice {

// A lease costs the store as much as several requests: one that is good for fewer than so many is
// not asked for.
inline constexpr std::uint64_t kLeastLeased = 8;

// A fiftieth of WindowOf(limit), from 1 ms up to 100 ms, and at most LongestLease(): what goes
// unused for a lease (docs/redis.md) is then next to nothing, and a lease lasts for many times as
// long as the store takes to answer.
[[nodiscard]] Duration AutomaticLease(const Limit& limit);

struct LeaseTerms {
  std::shared_ptr<const RemoteLimit> limit;  // of which CanLease()
  std::uint64_t most = 0;                    // units of one lease; >= kLeastLeased
  Duration length{0};                        // of one lease; from 1 ms up to LongestLease()
};

// `most` 0: as many as one lease can have. `length` 0: AutomaticLease(). Nothing where the limit
// has no leases (CanLease), none of kLeastLeased units that long (MostLeased), or none of a
// millisecond.
[[nodiscard]] std::optional<LeaseTerms> MakeLeaseTerms(
    const std::shared_ptr<const RemoteLimit>& limit, std::uint64_t most, Duration length);

}  // namespace sluice
