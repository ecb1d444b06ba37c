// `rules`: each rule of the file, compiled.
#pragma once

#include <string_view>
#include <vector>

#include "sluice/config/fields.h"
#include "sluice/config/sharing_reader.h"
#include "sluice/config/source_names.h"
#include "sluice/rule/rule.h"

namespace sluice::config {

struct RuleContext {
  const SourceNames& sources;
  bool has_plans = false;  // there is a `plans` in the file
  bool has_gateway = false;
  // The plans that somebody has; for warnings. Empty: not known.
  std::vector<std::string_view> plans;
  StoreContext store;
};

// Complains about everything that is wrong; rules that cannot be compiled are left out, so the
// result is good only when there was no error.
std::vector<Rule> ReadRules(const Value& rules, const RuleContext& context);

}  // namespace sluice::config
