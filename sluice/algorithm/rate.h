// N units a period, as people write it: 100/min, 5/30s.
#pragma once

#include <cstdint>

#include "sluice/base/time.h"

namespace sluice {

struct Rate {
  std::int64_t count = 0;  // units; a valid rate has at least 1
  Duration period{0};      // a valid rate has at least 1 ns
  friend bool operator==(const Rate&, const Rate&) = default;
};

}  // namespace sluice
