// Bytes that nobody can guess, from the operating system's random source.
#pragma once

#include <cstdint>
#include <span>

namespace sluice {

// The process ends where there is no such source: without a secret nothing that needs one is safe.
// Costs a system call.
void FillWithRandom(std::span<std::uint8_t> bytes);

}  // namespace sluice
