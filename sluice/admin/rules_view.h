// The rules in force as JSON, for `GET /v1/rules`.
#pragma once

#include <string>

#include "sluice/rule/rule_set.h"

namespace sluice::admin {

// {"generation": 3, "rules": [{"name", "algorithm", "limits": [...], "key": [...], ...}]}, in the
// order of the configuration. Durations are in milliseconds.
[[nodiscard]] std::string RulesJson(const RuleSet& rules);

}  // namespace sluice::admin
