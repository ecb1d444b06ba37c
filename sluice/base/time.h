// Instants and lengths of time. Everything in Sluice counts whole nanoseconds in 64 bits.
//
// Two clocks, two types, so that neither is taken for the other:
//
//   Time      the steady clock: never steps, starts anywhere. Rates run on it.
//   WallTime  UTC since 1970, no leap seconds. It may step. Windows aligned to the clock and
//             calendars run on it.
//
// One Now is read for each request or batch (base/clock.h) and handed down as an argument; nobody
// below the limiter asks what time it is.
#pragma once

#include <chrono>
#include <cstdint>

namespace sluice {

using Duration = std::chrono::nanoseconds;

// Tags in the place of a clock: neither has a now(), on purpose.
struct SteadyTimeline {
  using duration = Duration;
};
struct WallTimeline {
  using duration = Duration;
};

using Time = std::chrono::time_point<SteadyTimeline, Duration>;
using WallTime = std::chrono::time_point<WallTimeline, Duration>;

// The one moment at which a request, or a batch of them, is judged.
struct Now {
  Time steady;
  WallTime wall;
};

}  // namespace sluice
