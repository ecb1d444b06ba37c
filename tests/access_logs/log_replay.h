// Real access logs through Limiter::Check on a manual clock that is set to each line's time, and
// the sliding counter's reference model.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "sluice/limiter/limiter.h"
#include "sluice/store/memory/memory_store.h"
#include "tests/access_logs/access_log.h"

namespace sluice::testing {

// One decision for each line, for one rule `limit` keyed by the client of the line.
std::vector<bool> Replay(const std::vector<LoggedRequest>& log, const Limit& limit);

std::int64_t CountAllowed(const std::vector<bool>& decisions);

// The sliding window counter in the plainest form: exact fractions over 128 bits, a map of keys.
std::vector<bool> SlidingCounterModel(const std::vector<LoggedRequest>& log, std::int64_t limit,
                                      std::int64_t window_seconds);

}  // namespace sluice::testing
