// `match` and `exempt`: which requests a rule is for.
//
//   match: { method: [POST, PUT], path: /v1/**, host: "*.example.com", ip: 10.0.0.0/8,
//            header: { X-Tier: [gold, silver], X-Debug: "*" } }
//
// All that is given must hold; of several values in one field, one. A header with the value `*`, or
// named without any, must be there with whatever value.
#pragma once

#include <vector>

#include "sluice/config/fields.h"
#include "sluice/rule/rule.h"

namespace sluice::config {

// Complains about what cannot be read, and about a match that says nothing.
Match ReadMatch(const Value& match);

// One match or a list of them.
std::vector<Match> ReadExempt(const Value& exempt);

}  // namespace sluice::config
