// One limit of any algorithm, and what can be asked of it whatever the algorithm. What differs from
// one to the next is chosen by what this variant holds.
#pragma once

#include <cstdint>
#include <string_view>
#include <variant>

#include "sluice/algorithm/calendar.h"
#include "sluice/algorithm/concurrency.h"
#include "sluice/algorithm/fixed_window.h"
#include "sluice/algorithm/leaky_bucket.h"
#include "sluice/algorithm/sliding_window_counter.h"
#include "sluice/algorithm/sliding_window_log.h"
#include "sluice/algorithm/sliding_window_strict.h"
#include "sluice/algorithm/token_bucket.h"

namespace sluice {

using Limit =
    std::variant<token_bucket::Limit, leaky_bucket::Limit, fixed_window::Limit,
                 sliding_window_counter::Limit, calendar::Limit, sliding_window_strict::Limit,
                 sliding_window_log::Limit, concurrency::Limit>;

// The name in the configuration: "token-bucket", "sliding-window-log", ...
[[nodiscard]] std::string_view AlgorithmName(const Limit& limit);

// What a caller may spend at most at one instant: the burst, the limit, the longest queue. A cost
// above it is kNever. It is also the q of the RateLimit-Policy field.
[[nodiscard]] std::uint64_t CapacityOf(const Limit& limit);

// The w of that field: the time in which a full capacity is paid back (token bucket), or the
// window's length; zero for concurrency. A calendar period counts as 1, 7, 30 or 365 days there.
[[nodiscard]] Duration WindowOf(const Limit& limit);

// How long after its last charge a state can matter at all: then it is as good as absent. Debts
// forced beyond the capacity count as twice the capacity. Zero for concurrency without a ttl.
[[nodiscard]] Duration LifetimeOf(const Limit& limit);

// Whether units can be leased (store/remote_store.h): charged now, and spent by whoever took them
// at any time up to the lease's end. So it is with the token bucket, fixed windows, the sliding
// log, the strict counter and calendars. Not with the leaky bucket, where each unit leaves at a
// time of its own, the sliding counter, which weighs what was spent by when it was, and
// concurrency.
[[nodiscard]] bool CanLease(const Limit& limit);

// The longest lease under a limit, where CanLease(): half of WindowOf(). A longer one is cut to it.
[[nodiscard]] Duration LongestLease(const Limit& limit);

// How many units a lease of that length can have at most, of a key that owes nothing; more are
// kNever. Token bucket: what is paid back within the lease is not there to be leased.
[[nodiscard]] std::uint64_t MostLeased(const Limit& limit, Duration lease);

// For how long a lease that was granted with this decision may be spent, from the moment that it
// was decided for: no longer than its window lasts, where it was charged to one.
[[nodiscard]] Duration LeaseGoodFor(const Limit& limit, const Decision& granted, Duration lease);

}  // namespace sluice
