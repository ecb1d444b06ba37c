// The rules in force as JSON, for `GET /v1/rules`.
#pragma once

#include <string>

#include "sluice/rule/rule_set.h"

namespace sluice::admin {

// {"generation": 3, "rules": [{"name", "mode", "match": {...}, "exempt": [...], "key": [...],
//   "on_missing_key", "limits": [{"plan", "algorithm", "quota", "window_ms"}], "charge_denied",
//   "block_for_ms"}]}
//
// In the order of the configuration; a rule with `deny: true` ends with "deny" after "exempt".
// Milliseconds are rounded up. window_ms is left out for concurrency, "plan" for the rule's own
// numbers, block_for_ms for a rule that does not block.
[[nodiscard]] std::string RulesJson(const RuleSet& rules);

}  // namespace sluice::admin
