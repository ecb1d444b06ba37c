// The numbers of a limit before an algorithm has taken them: all that was written, or one node's
// part of it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "sluice/algorithm/limit.h"
#include "sluice/base/time.h"
#include "sluice/config/values.h"

namespace sluice::config {

enum class Algorithm : std::uint8_t {
  kTokenBucket,
  kLeakyBucket,
  kFixedWindow,
  kSlidingWindowLog,
  kSlidingWindowCounter,
  kSlidingWindowStrict,
  kConcurrency,
  kCalendar,
};

// What all plans of a rule have in common.
struct AlgorithmOptions {
  Algorithm algorithm = Algorithm::kTokenBucket;
  fixed_window::Align align = fixed_window::Align::kClock;
  Duration offset{0};
  bool per_key_offset = false;
  int sub_windows = 16;
  Duration slot_ttl{0};
  std::string time_zone = "UTC";
  bool weighted = false;  // the log keeps the cost of each event
};

struct LimitNumbers {
  std::int64_t count = 1;  // units in a period, or slots; >= 1
  Duration period{0};      // not of concurrency and calendar
  calendar::Period calendar_period = calendar::Period::kDay;
  std::int64_t burst = 1;          // token bucket; >= 1
  std::int64_t queue = INT64_MAX;  // leaky bucket: how many wait; INT64_MAX: any number ...
  Duration wait = kMaxPeriod;      // ... and for how long
};

// Errors as those of the algorithm's own MakeLimit.
[[nodiscard]] absl::StatusOr<Limit> MakeLimit(const LimitNumbers& numbers,
                                              const AlgorithmOptions& options);

// of / whole; 1 <= of <= whole.
struct Part {
  std::int64_t of = 1;
  std::int64_t whole = 1;
  friend bool operator==(const Part&, const Part&) = default;
};

// That part of the numbers, and never more: `whole` nodes that take `of` = 1 each allow together at
// most what `all` does. Units, bursts, slots and waiting requests are whole, rounded down. The rate
// of a bucket is exact, by a longer period where its count cannot be divided; only where that does
// not fit 64 bits it is lower, by at most a nanosecond for each unit or a millionth. How long a
// request may wait stays as it is.
//
// Nothing: there would be no unit, and every request denied. (A queue of 0 is none of that: then
// requests do not wait.)
[[nodiscard]] std::optional<LimitNumbers> PartOf(const LimitNumbers& all, Part part,
                                                 Algorithm algorithm);

}  // namespace sluice::config
