// What the algorithms share that count units up to a limit: fixed window, calendar, sliding log.
#pragma once

#include <algorithm>
#include <cstdint>

#include "sluice/algorithm/decision.h"
#include "sluice/algorithm/internal/arithmetic.h"
#include "sluice/base/time.h"

namespace sluice::internal {

// Whether `cost` more units fit beside `used`. A cost of 0 always does.
[[nodiscard]] constexpr Verdict Judge(std::uint64_t limit, std::uint64_t used, std::uint64_t cost) {
  if (cost == 0) return Verdict::kAllowed;
  if (cost > limit) return Verdict::kNever;
  return cost <= MinusOrZero(limit, used) ? Verdict::kAllowed : Verdict::kLimited;
}

// What a forced charge of `cost` counts: all where there is room, else up to `max_used` in all.
[[nodiscard]] constexpr std::uint64_t Charged(Verdict verdict, std::uint64_t used,
                                              std::uint64_t cost, std::uint64_t max_used) {
  return verdict == Verdict::kAllowed ? cost : std::min(cost, MinusOrZero(max_used, used));
}

// Where all units come back at one instant, `left` from now.
[[nodiscard]] constexpr Duration RetryAfter(Verdict verdict, Duration left) {
  if (verdict == Verdict::kNever) return kNever;
  return verdict == Verdict::kLimited ? left : Duration{0};
}

}  // namespace sluice::internal
