// The machine's steady clock as it stands, for waits and rests that go by real time whatever clock
// the limits go by (base/clock.h). Not for decisions: those get their Now as an argument.
#pragma once

#include <chrono>

#include "sluice/base/time.h"

namespace sluice {

[[nodiscard]] inline Time SteadyNow() {
  return Time{std::chrono::steady_clock::now().time_since_epoch()};
}

}  // namespace sluice
