// A limit in the words of the configuration: "token-bucket 100/min, burst 20".
#pragma once

#include <string>

#include "sluice/algorithm/limit.h"

namespace sluice::config {

[[nodiscard]] std::string LimitText(const Limit& limit);

// "1m30s", "500ms", "0": what ParseDuration() reads.
[[nodiscard]] std::string DurationText(Duration duration);

// "100/min", "5/30s": what ParseRate() reads.
[[nodiscard]] std::string RateText(std::uint64_t count, Duration period);

}  // namespace sluice::config
