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
#include <string_view>

#include "sluice/config/fields.h"
#include "sluice/config/limit_numbers.h"
#include "sluice/rule/rule.h"

namespace sluice::config {

// Takes `algorithm`, `align`, `offset`, `sub_windows`, `slot_ttl`, `time_zone`.
AlgorithmOptions ReadAlgorithm(Fields& rule);

// Which parts of a rule's numbers this node counts by.
struct Shares {
  std::int64_t nodes = 1;     // each has one part of so many (`scope: node`)
  std::optional<Part> local;  // of what is shared, while the store is away; nothing: all of it
  bool remote = false;        // counted in a shared store, which must be able to
};

// Takes `limit`, `burst`, `queue` of a rule or of a plan; nothing after a complaint. The result has
// no plan's name yet.
std::optional<RuleLimit> ReadLimit(Fields& fields, const AlgorithmOptions& options,
                                   const Shares& shares);

// As the configuration calls it.
[[nodiscard]] std::string_view NameOf(Algorithm algorithm);

}  // namespace sluice::config
