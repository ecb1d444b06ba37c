// The clock of a simulated node: up to ten minutes from the server's, and at a speed of its own.
#pragma once

#include <chrono>
#include <cstdint>

#include "sluice/algorithm/testing/trace.h"
#include "sluice/base/clock.h"
#include "tests/simulation/counters.h"
#include "tests/simulation/world.h"

namespace sluice::simulation {

class NodeClock final : public Clock {
 public:
  // `most_drift_ppm`: it goes wrong by at most so many microseconds a second. `world` lives on.
  NodeClock(const World& world, testing::Random& random, std::int64_t most_drift_ppm)
      : world_(world),
        skew_(random.Between(-kMostSkew.count(), kMostSkew.count())),
        drift_ppm_(most_drift_ppm == 0 ? 0 : random.Between(-most_drift_ppm, most_drift_ppm)) {}

  [[nodiscard]] Now Read() const override {
    return testing::After(kStart, skew_ + world_.now() + world_.now() / 1'000'000 * drift_ppm_);
  }

 private:
  static constexpr Duration kMostSkew = std::chrono::minutes{10};

  const World& world_;
  const Duration skew_;
  const std::int64_t drift_ppm_;
};

}  // namespace sluice::simulation
