// The checks that several algorithms' MakeLimit share. Each message names the value found and the
// values that are possible.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "sluice/base/time.h"

namespace sluice::internal {

// 100 years of 365.25 days: any sum of two of them fits 64 bits of nanoseconds.
inline constexpr Duration kLongestWindow = std::chrono::hours{876'600};
inline constexpr Duration kShortestWindow = std::chrono::milliseconds{1};

[[nodiscard]] absl::Status CheckLimit(std::int64_t limit);
[[nodiscard]] absl::Status CheckWindow(Duration window);
[[nodiscard]] absl::Status CheckOffset(Duration offset, Duration window);

}  // namespace sluice::internal
