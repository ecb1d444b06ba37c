// A whole configuration: rules that can be asked about a request, or complaints.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "sluice/config/limit_text.h"
#include "sluice/config/load.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(bytes), size);
  // No file is to be found there.
  const auto result = sluice::config::LoadText("f", text, "/nowhere/at/all", 1);
  if (result.config.has_value() != (result.diagnostics.errors() == 0)) std::abort();
  if (!result.config) return 0;

  const sluice::RuleSet& rules = *result.config->rules;
  for (const sluice::Rule& rule : rules.rules()) {
    if (rule.name.empty() || rule.limits.empty() != rule.deny) std::abort();
    for (const sluice::RuleLimit& limit : rule.limits) {
      if (sluice::CapacityOf(limit.limit) == 0) std::abort();
      if (sluice::config::LimitText(limit.limit).empty()) std::abort();
      if (!limit.local) continue;
      const std::uint64_t part = sluice::CapacityOf(*limit.local);
      if (part == 0 || part > sluice::CapacityOf(limit.limit)) std::abort();
    }
  }
  const sluice::Field headers[] = {{"X-API-Key", "ann"}, {"X-Cost", "7"}, {"Cookie", "sid=1"}};
  const sluice::LimitRequest request{
      .method = "GET", .target = "/v1/orders?user=1", .host = "a.example", .headers = headers};
  sluice::RuleSet::Scratch scratch;
  std::vector<sluice::RuleResult> results;
  rules.Evaluate(request, scratch, results);
  if (rules.Explain(request).size() != rules.rules().size()) std::abort();
  return 0;
}
