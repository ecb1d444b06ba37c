#include "sluice/config/load.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "sluice/base/closest_name.h"
#include "sluice/config/document.h"
#include "sluice/config/fields.h"
#include "sluice/config/plan_file.h"
#include "sluice/config/read_file.h"
#include "sluice/config/rule_reader.h"
#include "sluice/config/settings_reader.h"
#include "sluice/config/source_names.h"

namespace sluice::config {
namespace {

// `node: { name, region, count }`
void ReadNode(const Value& value, Config& config, RuleSetOptions& options) {
  Fields fields(value.node(), "`node`", value.diagnostics());
  if (const auto name = fields.Take("name")) config.node_name = name->Text().value_or("");
  if (const auto region = fields.Take("region")) options.region = region->Text().value_or("");
  if (const auto count = fields.Take("count")) {
    config.node_count = count->Integer(1, kMaxNodes).value_or(1);
  }
  fields.Finish();
}

// `plans: { file: plans.csv, key: api_key, default: free }`. Returns the plans that somebody has;
// nothing when that could not be found out.
PlanNames ReadPlans(const Value& value, const SourceNames& sources, const std::string& base_dir,
                    RuleSetOptions& options) {
  Fields fields(value.node(), "`plans`", value.diagnostics());
  const auto file = fields.Require("file");
  const auto key = fields.Require("key", "write which identity has a plan: `key: api_key`");
  const auto fallback = fields.Take("default");
  fields.Later({"header", "redis"});
  fields.Finish();

  const auto source = key ? sources.Find(*key) : std::nullopt;
  if (source && (source->kind == SourceKind::kGlobal || source->kind == SourceKind::kRoute)) {
    key->Complain("must name who has a plan");
  }
  const auto fallback_name = fallback ? fallback->Text() : std::nullopt;
  PlanTable plans(source.value_or(Source{}), std::string(fallback_name.value_or("")));
  PlanNames names;
  if (const auto path = file ? file->Text() : std::nullopt) {
    Diagnostics& diagnostics = value.diagnostics();
    const std::string full_path = PathFrom(base_dir, *path);
    const auto text = ReadFile(full_path, kMaxPlanFileBytes, file->node().location, diagnostics);
    if (text) names = ReadPlanFile(*text, diagnostics.AddFile(full_path, ""), diagnostics, plans);
  }
  if (fallback_name && !names.empty())
    names.try_emplace(std::string(*fallback_name), fallback->node().location);
  options.plans = std::move(plans);
  return names;
}

std::vector<std::string_view> NamesOf(const PlanNames& plans) {
  std::vector<std::string_view> names;
  for (const auto& [name, location] : plans) names.push_back(name);
  return names;
}

// A plan without numbers of its own in any rule is well; one that nearly has a name that some rule
// knows is a slip.
void WarnOfMisspeltPlans(const PlanNames& plans, const std::vector<Rule>& rules,
                         Diagnostics& diagnostics) {
  std::vector<std::string_view> known;
  for (const Rule& rule : rules) {
    for (const RuleLimit& limit : rule.limits) {
      if (!limit.plan.empty()) known.push_back(limit.plan);
    }
  }
  for (const auto& [name, location] : plans) {
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    const auto meant = ClosestName(name, known);
    if (!meant) continue;
    diagnostics.Warning(location, fmt::format("no rule has numbers for the plan {}", Quoted(name)),
                        fmt::format("did you mean {}?", Quoted(*meant)));
  }
}

// Everything but the file itself.
void ReadRoot(const Node& node, const std::string& base_dir, std::uint64_t generation,
              Config& config, Diagnostics& diagnostics) {
  Fields root(node, "the file", diagnostics);
  RuleSetOptions options;
  SourceNames sources;
  if (const auto value = root.Take("node")) ReadNode(*value, config, options);
  sources.set_has_region(!options.region.empty());
  if (const auto value = root.Take("attributes")) sources.ReadAttributes(*value);
  if (const auto value = root.Take("identity")) sources.ReadIdentities(*value, options);
  const auto plans = root.Take("plans");
  PlanNames plan_names;
  if (plans) plan_names = ReadPlans(*plans, sources, base_dir, options);
  ReadSettings(root, base_dir, config);

  std::vector<Rule> rules;
  if (const auto value = root.Take("rules")) {
    const RuleContext context{
        .sources = sources,
        .has_plans = plans.has_value(),
        .has_gateway = config.gateway.has_value(),
        .plans = NamesOf(plan_names),
        .store = {.has_redis = config.redis.has_value(), .nodes = config.node_count}};
    rules = ReadRules(*value, context);
    WarnOfMisspeltPlans(plan_names, rules, diagnostics);
  }
  root.Later({"api", "resp", "rls", "telemetry"});
  root.Finish();
  if (diagnostics.errors() > 0) return;
  config.rules = std::make_shared<const RuleSet>(std::move(rules), std::move(options), generation);
}

LoadResult Read(std::optional<Node> node, const std::string& base_dir, std::uint64_t generation,
                Diagnostics diagnostics) {
  LoadResult result{.config = std::nullopt, .diagnostics = std::move(diagnostics)};
  if (!node) return result;
  Config config;
  ReadRoot(*node, base_dir, generation, config, result.diagnostics);
  if (result.diagnostics.errors() == 0) result.config = std::move(config);
  return result;
}

}  // namespace

LoadResult Load(const std::string& path, std::uint64_t generation) {
  Diagnostics diagnostics;
  auto node = ReadDocument(path, diagnostics);
  const std::string base_dir = std::filesystem::path(path).parent_path().string();
  return Read(std::move(node), base_dir, generation, std::move(diagnostics));
}

LoadResult LoadText(const std::string& name, std::string_view text, const std::string& base_dir,
                    std::uint64_t generation) {
  Diagnostics diagnostics;
  auto node = ParseDocument(name, text, diagnostics);
  return Read(std::move(node), base_dir, generation, std::move(diagnostics));
}

}  // namespace sluice::config
