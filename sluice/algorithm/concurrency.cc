#include "sluice/algorithm/concurrency.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "sluice/algorithm/internal/arithmetic.h"
#include "sluice/algorithm/internal/validate.h"

namespace sluice::concurrency {

absl::StatusOr<Limit> MakeLimit(std::int64_t limit, Duration slot_ttl) {
  constexpr std::int64_t kMaxSlots = 4'294'967'295;
  if (absl::Status status = internal::CheckLimit(limit); !status.ok()) return status;
  if (limit > kMaxSlots) {
    return absl::InvalidArgumentError(
        absl::StrCat("limit must be at most ", kMaxSlots, " slots, got ", limit));
  }
  if (slot_ttl < Duration{0} || slot_ttl > internal::kLongestWindow) {
    return absl::InvalidArgumentError(
        absl::StrCat("slot_ttl must be from 0 (a slot never ends by itself) to 100 years, got ",
                     slot_ttl.count(), " ns"));
  }
  return Limit{.limit = static_cast<std::uint64_t>(limit), .slot_ttl = slot_ttl};
}

Decision Decide(const Limit& limit, std::uint64_t in_flight, std::uint64_t cost) {
  const std::uint64_t free = internal::MinusOrZero(limit.limit, in_flight);
  Decision decision{.remaining = free, .reset_after = kUnknown};
  if (cost > limit.limit) {
    decision.verdict = Verdict::kNever;
    decision.retry_after = kNever;
  } else if (cost > 0 && cost > free) {
    decision.verdict = Verdict::kLimited;
    decision.retry_after = kUnknown;
  } else {
    decision.remaining = free - cost;
  }
  return decision;
}

}  // namespace sluice::concurrency
