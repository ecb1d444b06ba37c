#include "tests/allocations/counting_new.h"

#include <atomic>
#include <cstdlib>
#include <new>

namespace {

std::atomic<std::uint64_t> allocations{0};
thread_local bool counted = false;

void* Allocate(std::size_t size) {
  if (counted) allocations.fetch_add(1, std::memory_order_relaxed);
  void* const memory = std::malloc(size > 0 ? size : 1);
  if (memory == nullptr) std::abort();
  return memory;
}

}  // namespace

void* operator new(std::size_t size) { return Allocate(size); }
void* operator new[](std::size_t size) { return Allocate(size); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t /*size*/) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t /*size*/) noexcept { std::free(memory); }

namespace sluice {

void CountAllocationsOfThisThread() { counted = true; }
std::uint64_t CountedAllocations() { return allocations.load(); }

}  // namespace sluice
