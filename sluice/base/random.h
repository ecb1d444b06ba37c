// Bytes that nobody can guess, from the operating system's random source.
#pragma once

#include <cstdint>
#include <span>

#include "sluice/base/time.h"

namespace sluice {

// The process ends where there is no such source: without a secret nothing that needs one is safe.
// Costs a system call.
void FillWithRandom(std::span<std::uint8_t> bytes);

// A number of 64 bits, as FillWithRandom() makes it.
[[nodiscard]] std::uint64_t RandomNumber();
// From 0 to `most` (>= 0), evenly: for waits of many who must not come together.
[[nodiscard]] Duration DrawEvenly(Duration most);

}  // namespace sluice
