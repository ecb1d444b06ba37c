// The numbers of a rule, and which algorithm they are for.
//
//   algorithm: fixed-window         how: once for each rule
//   align: clock
//   limit: 100/min                  how much: the rule's own, and again for each plan
//   plans: { pro: { limit: 1000/min } }
//
// A field that means nothing to the algorithm is refused rather than ignored.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "sluice/algorithm/limit.h"
#include "sluice/config/fields.h"

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

// Takes `algorithm`, `align`, `offset`, `sub_windows`, `slot_ttl`, `time_zone`.
AlgorithmOptions ReadAlgorithm(Fields& rule);

// Takes `limit`, `burst`, `queue` of a rule or of a plan; nothing after a complaint.
std::optional<Limit> ReadLimit(Fields& fields, const AlgorithmOptions& options);

// As the configuration calls it.
[[nodiscard]] std::string_view NameOf(Algorithm algorithm);

}  // namespace sluice::config
