// The rules in force as JSON, for `GET /v1/rules`.
#pragma once

#include <string>

#include "sluice/rule/rule_set.h"

namespace sluice::admin {

// {"generation": 3, "rules": [{"name", "mode", "match": {...}, "exempt": [...], "key": [...],
//   "on_missing_key", "limits": [{"plan", "algorithm", "quota", "window_ms"}], "charge_denied"}]}
//
// In the order of the configuration; a rule with `deny: true` ends with "deny" after "exempt".
// window_ms is rounded up and left out for concurrency, "plan" is left out for the rule's own
// numbers.
[[nodiscard]] std::string RulesJson(const RuleSet& rules);

}  // namespace sluice::admin
