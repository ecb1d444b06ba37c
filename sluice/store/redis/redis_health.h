// Whether a store in Redis decides, in words for the operator, and when it is left alone.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "sluice/base/time.h"

namespace sluice::redis {

// Of the circuit breaker (internal/breaker.h).
enum class BreakerState : std::uint8_t {
  kClosed,    // requests are asked
  kOpen,      // none is; probes look whether the store answers again
  kHalfOpen,  // it does; a few requests try
};

struct BreakerOptions {
  int failures = 10;  // groups in a row that were sent and not answered: it opens
  int trials = 1;     // groups at a time while it is half-open
  Duration probe_every = std::chrono::milliseconds{100};
  Duration probe_deadline = std::chrono::milliseconds{5};
  // Half-open for so long, with good probes and no trial that runs: it closes.
  Duration idle = std::chrono::seconds{1};
};

struct RedisHealth {
  bool up = false;     // there is a connection, the script is loaded, the breaker is closed
  WallTime since;      // of `up`
  std::string server;  // that is asked, or was last: its address; empty: none was found yet
  std::string why;     // not up: what went wrong last, with the server's words and without secrets
  BreakerState breaker = BreakerState::kClosed;
};

// "closed", "open", "half-open".
[[nodiscard]] std::string_view NameOf(BreakerState state);

}  // namespace sluice::redis
