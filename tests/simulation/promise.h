// A limit, and what it lets pass from one instant of the server's clock to another. Both clocks of
// the server show the same.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <vector>

#include "sluice/algorithm/limit.h"
#include "sluice/base/time.h"

namespace sluice::simulation {

struct Promise {
  Limit limit;
  std::function<std::int64_t(Time begin, Time end)> most;
};

inline Promise Bucket(std::int64_t count, Duration period, std::uint64_t burst) {
  return {*token_bucket::MakeLimit({count, period}, burst), [=](Time begin, Time end) {
            return static_cast<std::int64_t>(burst) + (end - begin) * count / period;
          }};
}

inline Promise Log(std::int64_t limit, Duration window) {
  return {*sliding_window_log::MakeLimit(limit, window, /*weighted=*/false),
          [=](Time begin, Time end) { return limit * ((end - begin) / window + 1); }};
}

inline Promise Strict(std::int64_t limit, Duration window) {
  return {*sliding_window_strict::MakeLimit(limit, window),
          [=](Time begin, Time end) { return limit * ((end - begin) / window + 1); }};
}

inline Promise Window(std::int64_t limit, Duration window) {
  return {*fixed_window::MakeLimit(limit, window, fixed_window::Align::kClock),
          [=](Time begin, Time end) {
            return limit *
                   (end.time_since_epoch() / window - begin.time_since_epoch() / window + 1);
          }};
}

// The most by which a stretch of the server's time has more than was promised, in units; 0: none
// has. `admitted`: when each unit was, by the server's clock.
inline std::int64_t OverAdmission(std::vector<Time> admitted, const Promise& promise) {
  std::sort(admitted.begin(), admitted.end());
  std::int64_t worst = 0;
  for (std::size_t i = 0; i < admitted.size(); ++i) {
    for (std::size_t j = i; j < admitted.size(); ++j) {
      const auto passed = static_cast<std::int64_t>(j - i + 1);
      worst = std::max(worst, passed - promise.most(admitted[i], admitted[j]));
    }
  }
  return worst;
}

}  // namespace sluice::simulation
