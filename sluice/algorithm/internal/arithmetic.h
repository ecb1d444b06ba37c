// Arithmetic of integers that says how it rounds and where it stops.
#pragma once

#include <cstdint>
#include <limits>

#include "sluice/base/int128.h"
#include "sluice/base/time.h"

namespace sluice::internal {

inline constexpr std::int64_t kMaxInt64 = std::numeric_limits<std::int64_t>::max();
inline constexpr std::uint64_t kMaxUint64 = std::numeric_limits<std::uint64_t>::max();

// b > 0 in all of these.
[[nodiscard]] constexpr std::int64_t FloorDiv(std::int64_t a, std::int64_t b) {
  return a / b - static_cast<std::int64_t>(a % b < 0);
}
[[nodiscard]] constexpr std::int64_t CeilDiv(std::int64_t a, std::int64_t b) {
  return a / b + static_cast<std::int64_t>(a % b > 0);
}
// In [0, b).
[[nodiscard]] constexpr std::int64_t FloorMod(std::int64_t a, std::int64_t b) {
  const std::int64_t rest = a % b;
  return rest < 0 ? rest + b : rest;
}
[[nodiscard]] constexpr Uint128 CeilDiv(Uint128 a, Uint128 b) {
  // A product that fits 64 bits is the common case, and its division several times as fast.
  if (a <= kMaxUint64 && b <= kMaxUint64) {
    const auto x = static_cast<std::uint64_t>(a);
    const auto y = static_cast<std::uint64_t>(b);
    return x / y + static_cast<std::uint64_t>(x % y != 0);
  }
  return a / b + static_cast<Uint128>(a % b != 0);
}

[[nodiscard]] constexpr std::int64_t SaturatedSub(std::int64_t a, std::int64_t b) {
  std::int64_t result = 0;
  if (!__builtin_sub_overflow(a, b, &result)) return result;
  return a < 0 ? std::numeric_limits<std::int64_t>::min() : kMaxInt64;
}
[[nodiscard]] constexpr std::uint64_t SaturatedAdd(std::uint64_t a, std::uint64_t b) {
  return a > kMaxUint64 - b ? kMaxUint64 : a + b;
}
// a - b, but not below 0.
[[nodiscard]] constexpr std::uint64_t MinusOrZero(std::uint64_t a, std::uint64_t b) {
  return a > b ? a - b : 0;
}

// The longest Duration that is not kNever.
inline constexpr Duration kLongest{kMaxInt64 - 1};
[[nodiscard]] constexpr Duration ToDuration(Uint128 ns) {
  return ns >= static_cast<Uint128>(kLongest.count()) ? kLongest
                                                      : Duration{static_cast<std::int64_t>(ns)};
}

}  // namespace sluice::internal
