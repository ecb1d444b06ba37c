// Concurrency limit: slots that a request holds while it runs.
//
//   in flight: [a][b][c][ ][ ]      limit 5: cost 2 passes, cost 3 is denied
//
//   allowed    <=> in_flight + cost <= limit
//   remaining   = limit - in_flight
//   retry_after = without a time to live unknown; else until the earliest ends of slots that free
//                 enough, if nobody returns or renews theirs
//   reset_after = unknown
//
// A slot is released once, by its receipt (slot and generation: a second release, or one that comes
// after the slot ran out, is a no-op and frees nobody else's). With `slot_ttl` a slot ends by
// itself that long after it was taken or last renewed: one whose holder crashed comes back.
//
// Guarantee: never more than `limit` units in flight, where a slot past its end is not in flight
// any more (its holder should have renewed it). A smaller limit after a reload evicts nobody: new
// requests are denied until enough slots have come back.
//
// Clock: steady. Cost: one entry a slot (store/memory/internal/concurrency_table.h).
#pragma once

#include <algorithm>
#include <cstdint>
#include <ranges>

#include "absl/status/statusor.h"
#include "sluice/algorithm/decision.h"
#include "sluice/algorithm/internal/arithmetic.h"
#include "sluice/base/time.h"

namespace sluice::concurrency {

struct Limit {
  std::uint64_t limit = 0;  // slots; 0 denies everything
  Duration slot_ttl{0};     // 0: a slot never ends by itself
  friend bool operator==(const Limit&, const Limit&) = default;
};

// Errors: limit negative or above 2^32 - 1; slot_ttl negative or above 100 years.
[[nodiscard]] absl::StatusOr<Limit> MakeLimit(std::int64_t limit, Duration slot_ttl);

// Decides on `cost` slots while `in_flight` are taken. Where it says kLimited, retry_after is
// kUnknown: the keeper of the slots replaces it by RetryAfter when there is a time to live.
[[nodiscard]] Decision Decide(const Limit& limit, std::uint64_t in_flight, std::uint64_t cost);

// One holder's units, and when they come back by themselves.
struct Slot {
  Time end;
  std::uint64_t units = 1;
};

// How long until `cost` fits, from the slots in flight in the order of their ends (any range of
// Slot), if nobody releases or renews theirs. kUnknown without a time to live, or when the slots
// do not free enough; 0 when it fits now.
template <std::ranges::input_range Slots>
[[nodiscard]] Duration RetryAfter(const Limit& limit, std::uint64_t in_flight, std::uint64_t cost,
                                  Slots&& slots, Time now) {
  if (cost == 0 || (cost <= limit.limit && in_flight <= limit.limit - cost)) return Duration{0};
  if (cost > limit.limit) return kNever;
  if (limit.slot_ttl == Duration{0}) return kUnknown;
  const std::uint64_t need = in_flight - (limit.limit - cost);
  std::uint64_t freed = 0;
  for (const Slot slot : slots) {
    freed += slot.units;
    if (freed >= need) {
      return Duration{
          std::max<std::int64_t>(0, internal::SaturatedSub(slot.end.time_since_epoch().count(),
                                                           now.time_since_epoch().count()))};
    }
  }
  return kUnknown;
}

}  // namespace sluice::concurrency
