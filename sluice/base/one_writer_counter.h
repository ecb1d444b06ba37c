// A number that one thread counts and any may read, so that counting is no locked instruction.
#pragma once

#include <atomic>
#include <cstdint>

namespace sluice {

class OneWriterCounter {
 public:
  void Add(std::uint64_t more = 1) { Set(value() + more); }
  void Set(std::uint64_t value) { value_.store(value, std::memory_order_relaxed); }
  [[nodiscard]] std::uint64_t value() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<std::uint64_t> value_{0};
};

}  // namespace sluice
