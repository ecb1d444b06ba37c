#include "sluice/base/clock.h"

namespace sluice {
namespace {

template <typename MachineClock>
std::int64_t NanosecondsOf() {
  return std::chrono::duration_cast<Duration>(MachineClock::now().time_since_epoch()).count();
}

// The steady time at which the process starts. Not zero, so that an instant somewhat before the
// start is still positive.
constexpr std::int64_t kSteadyOriginNs = 3'600'000'000'000;

}  // namespace

SystemClock::SystemClock()
    : origin_ns_(NanosecondsOf<std::chrono::steady_clock>() - kSteadyOriginNs), wall_offset_ns_(0) {
  RefreshOffset();
}

Now SystemClock::Read() const {
  const std::int64_t steady = NanosecondsOf<std::chrono::steady_clock>() - origin_ns_;
  const std::int64_t offset = wall_offset_ns_.load(std::memory_order_relaxed);
  return {Time{Duration{steady}}, WallTime{Duration{steady + offset}}};
}

void SystemClock::RefreshOffset() {
  const std::int64_t steady = NanosecondsOf<std::chrono::steady_clock>() - origin_ns_;
  const std::int64_t wall = NanosecondsOf<std::chrono::system_clock>();
  wall_offset_ns_.store(wall - steady, std::memory_order_relaxed);
}

}  // namespace sluice
