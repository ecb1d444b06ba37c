// Counts what a test program takes from the heap. Linked in, it stands behind every operator new of
// the program; a thread is counted once it asks to be.
#pragma once

#include <cstdint>

namespace sluice {

void CountAllocationsOfThisThread();

// By all threads that are counted, so far.
[[nodiscard]] std::uint64_t CountedAllocations();

}  // namespace sluice
