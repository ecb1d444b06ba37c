// The rules in force as JSON, for `GET /v1/rules`.
#pragma once

#include <string>

#include "sluice/rule/rule_set.h"

namespace sluice::admin {

// {"generation": 3, "rules": [{"name", "mode", "match": {...}, "exempt": [...], "key": [...],
//   "on_missing_key", "limits": [{"plan", "algorithm", "quota", "window_ms", "local": {...}}],
//   "charge_denied", "block_for_ms", "scope", "on_store_failure"}]}
//
// In the order of the configuration; a rule with `deny: true` ends with "deny" after "exempt".
// Milliseconds are rounded up. window_ms is left out for concurrency, "plan" for the rule's own
// numbers, block_for_ms for a rule that does not block, on_store_failure with the scope `node`.
// "local" are the quota and window_ms of a node while the shared store is away, where those are a
// part of the limit.
[[nodiscard]] std::string RulesJson(const RuleSet& rules);
// The list alone: the same text for the same rules, whatever their generation.
[[nodiscard]] std::string RuleListJson(const RuleSet& rules);

}  // namespace sluice::admin
