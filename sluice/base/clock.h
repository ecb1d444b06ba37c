// Where a Now comes from: the machine's clocks, or a test's hand.
#pragma once

#include <atomic>

#include "sluice/base/time.h"

namespace sluice {

// Safe to read from any thread.
class Clock {
 public:
  virtual ~Clock() = default;
  [[nodiscard]] virtual Now Read() const = 0;
};

// The machine's steady clock, counted from an arbitrary instant shortly before this object was
// made (so that 64 bits last for the process whatever the machine's uptime). The wall clock is
// derived from it by an offset: one reading of a clock gives both. RefreshOffset() takes over what
// happened to the machine's wall clock since; call it from a timer, about once a second.
class SystemClock final : public Clock {
 public:
  SystemClock();

  [[nodiscard]] Now Read() const override;
  void RefreshOffset();

 private:
  const std::int64_t origin_ns_;  // of the machine's steady clock: an hour before this was made
  std::atomic<std::int64_t> wall_offset_ns_;
};

// A clock that stands still until it is moved. Steady and wall time move together with Advance();
// StepWall() moves the wall clock alone, in either direction.
class ManualClock final : public Clock {
 public:
  explicit ManualClock(Now start = {Time{std::chrono::hours{1}}, WallTime{std::chrono::hours{24}}})
      : steady_(start.steady), wall_(start.wall) {}

  [[nodiscard]] Now Read() const override {
    return {steady_.load(std::memory_order_relaxed), wall_.load(std::memory_order_relaxed)};
  }
  void Advance(Duration by) {
    steady_ = steady_.load() + by;
    wall_ = wall_.load() + by;
  }
  void StepWall(Duration by) { wall_ = wall_.load() + by; }
  void Set(Now now) {
    steady_ = now.steady;
    wall_ = now.wall;
  }

 private:
  std::atomic<Time> steady_;
  std::atomic<WallTime> wall_;
};

}  // namespace sluice
