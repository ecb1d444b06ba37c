// Arithmetic of whole numbers that says how it rounds and where it stops.
#pragma once

#include <cstdint>
#include <limits>

#include "sluice/base/int128.h"

namespace sluice::redis {

inline constexpr std::int64_t kMaxInt64 = std::numeric_limits<std::int64_t>::max();

// In [0, b), for b > 0.
[[nodiscard]] constexpr std::int64_t FloorMod(std::int64_t a, std::int64_t b) {
  const std::int64_t rest = a % b;
  return rest < 0 ? rest + b : rest;
}
// a / b rounded up, for a >= 0 and b > 0.
template <typename T>
[[nodiscard]] constexpr T CeilDiv(T a, T b) {
  return a / b + static_cast<T>(a % b != 0);
}
// a - b, but not below 0.
[[nodiscard]] constexpr std::uint64_t MinusOrZero(std::uint64_t a, std::uint64_t b) {
  return a > b ? a - b : 0;
}

}  // namespace sluice::redis
