// The file that says who has which plan.
//
//   # key,plan
//   k-7f3a,pro
//   "key, with a comma",free
//
// One identity and its plan a line; blank lines and lines that begin with `#` say nothing, and
// neither does a first line whose second field is `plan`: a heading. A field that holds a comma, a
// quote or blanks at its ends stands in quotes, with "" for a quote. Bytes are taken as they are.
//
// The identities are often secrets (API keys): no complaint shows any.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "sluice/config/diagnostics.h"
#include "sluice/rule/plan_table.h"

namespace sluice::config {

inline constexpr std::size_t kMaxPlanFileBytes = std::size_t{64} << 20;

// The plans that somebody has, each with the place where it comes first.
using PlanNames = std::map<std::string, Location>;

// Fills `plans` and returns the names in it. Complains at the lines of
// `file`, which was added to `diagnostics` without its text.
PlanNames ReadPlanFile(std::string_view text, FileId file, Diagnostics& diagnostics,
                       PlanTable& plans);

}  // namespace sluice::config
