#include "sluice/config/rule_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <map>
#include <string>
#include <utility>

#include "sluice/base/ascii.h"
#include "sluice/config/limit_reader.h"
#include "sluice/config/match_reader.h"

namespace sluice::config {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kMaxNameBytes = 128;
constexpr std::size_t kMaxMessageBytes = 1000;
// Below it the way to the client takes longer; above it nobody would know any more why: that is a
// decision for somebody who writes `deny: true`.
constexpr Duration kShortestBlock = 1ms;
constexpr Duration kLongestBlock = 24h * 365;

// Fields of a rule that counts; one with `deny: true` has none of them.
constexpr std::string_view kCountingFields[] = {
    "key",    "on_missing_key", "algorithm",    "limit",     "burst",     "align",
    "offset", "sub_windows",    "queue",        "slot_ttl",  "time_zone", "charge_denied",
    "cost",   "plans",          "retry_jitter", "block_for", "scope",     "on_store_failure",
    "lease"};

std::string ReadName(Fields& fields) {
  const auto value = fields.Require("name");
  const auto text = value ? value->Text() : std::nullopt;
  if (!text) return "";
  const bool printable =
      std::all_of(text->begin(), text->end(), [](char c) { return c >= ' ' && c <= '~'; });
  if (!printable) {
    value->Complain(fmt::format("must be printable ASCII, got {}", Quoted(*text)),
                    "it stands in headers and metrics");
  } else if (text->size() > kMaxNameBytes) {
    value->Complain(
        fmt::format("must have at most {} characters, got {}", kMaxNameBytes, text->size()));
  } else {
    return std::string(*text);
  }
  return "";
}

std::vector<Source> ReadKey(const Value& key, const RuleContext& context) {
  std::vector<Source> sources;
  const std::vector<Value> items = key.Items();
  for (const Value& item : items) {
    auto source = context.sources.Find(item);
    if (!source) continue;
    const bool twice = std::find(sources.begin(), sources.end(), *source) != sources.end();
    if (twice) {
      item.Complain(fmt::format("has {} twice", Quoted(source->label)));
    } else if (source->kind == SourceKind::kGlobal && items.size() > 1) {
      item.Complain("has `global` beside others",
                    "`global` counts everybody together; leave it out");
    } else if (source->kind == SourceKind::kAttribute && context.has_gateway) {
      key.diagnostics().Warning(
          item.node().location,
          fmt::format("the gateway passes no attributes: `{}` is always missing there",
                      source->label),
          "");
      sources.push_back(*std::move(source));
    } else {
      sources.push_back(*std::move(source));
    }
  }
  return sources;
}

void ReadOnMissingKey(const Value& value, const RuleContext& context, Rule& rule) {
  const auto text = value.Text();
  if (!text) return;
  if (*text == "deny") return;
  if (*text == "skip") {
    rule.on_missing_key = OnMissingKey::kSkip;
  } else if (const auto source = context.sources.Find(value)) {
    rule.on_missing_key = OnMissingKey::kFallback;
    rule.fallback = *source;
  }
}

// `cost: 5` or `cost: { header: X-Cost, max: 100 }`
Cost ReadCost(const Value& value) {
  Cost cost;
  if (value.node().kind != NodeKind::kMap) {
    cost.fixed = static_cast<std::uint64_t>(value.Integer(1, INT64_MAX).value_or(1));
    return cost;
  }
  Fields fields(value.node(), "`cost`", value.diagnostics());
  const auto header = fields.Require("header");
  const auto max = fields.Require("max", "so that no client can ask for more than you expect");
  fields.Finish();
  if (header) {
    const auto name = header->Text();
    if (name && !IsToken(*name)) {
      header->Complain(fmt::format("has {}, which is no name of a header", Quoted(*name)));
    } else if (name) {
      cost.header = Source{.kind = SourceKind::kHeader,
                           .name = std::string(*name),
                           .label = "header." + std::string(*name)};
    }
  }
  if (max) cost.max = static_cast<std::uint64_t>(max->Integer(1, INT64_MAX).value_or(1));
  return cost;
}

void CheckCost(const Value& cost_field, const Cost& cost, const std::vector<RuleLimit>& limits) {
  if (cost.header) return;
  for (const RuleLimit& limit : limits) {
    const std::uint64_t capacity = CapacityOf(limit.limit);
    if (cost.fixed <= capacity) {
      if (!limit.local || cost.fixed <= CapacityOf(*limit.local)) continue;
      cost_field.Complain(
          fmt::format("is {}, and a node that counts for itself never holds more than {}: no "
                      "request could pass while the store is away",
                      cost.fixed, CapacityOf(*limit.local)),
          "lower the cost, or let `on_store_failure` be a larger part");
      return;
    }
    cost_field.Complain(
        fmt::format("is {}, and the limit{} never holds more than {}: no request could pass",
                    cost.fixed, limit.plan.empty() ? "" : fmt::format(" of plan `{}`", limit.plan),
                    capacity),
        "lower the cost, or raise the limit or its burst");
    return;
  }
}

void ReadPlans(const Value& plans, const AlgorithmOptions& options, const Shares& shares,
               const RuleContext& context, std::vector<RuleLimit>& limits) {
  if (!context.has_plans) {
    plans.Complain("says what each plan may, but nothing says who has which plan",
                   "write `plans: { file: plans.csv, key: api_key }` at the top of the file");
  }
  if (plans.node().kind != NodeKind::kMap) {
    plans.Complain("must be a map of plans", "write `plans: { pro: { limit: 1000/min } }`");
    return;
  }
  for (const Node::Entry& entry : plans.node().entries) {
    const std::string& plan = entry.key.text;
    Fields fields(entry.value, fmt::format("plan {}", Quoted(plan)), plans.diagnostics());
    auto limit = ReadLimit(fields, options, shares);
    fields.Finish();
    if (limit) {
      limit->plan = plan;
      limits.push_back(*std::move(limit));
    }
    const auto& known = context.plans;
    if (known.empty() || std::find(known.begin(), known.end(), plan) != known.end()) continue;
    plans.diagnostics().Warning(entry.key.location,
                                UnknownName("plan", plan, known) + " (nobody has it)");
  }
}

void WarnOfLostSlots(const Fields& fields) {
  if (fields.node().Find("slot_ttl") != nullptr) return;
  fields.diagnostics().Warning(
      fields.node().Find("algorithm")->location,
      "without `slot_ttl` the slots of a node that dies come back after 24 h only",
      "write for example `slot_ttl: 30s`; a request that still runs keeps its slot");
}

// Once for all rules.
void WarnOfFailuresWithoutStore(const Value& rules) {
  for (const Node& rule : rules.node().items) {
    const Node* failure = rule.Find("on_store_failure");
    if (failure == nullptr) continue;
    rules.diagnostics().Warning(failure->location,
                                "`on_store_failure` has no effect without `store.redis`: all is "
                                "counted in memory",
                                "");
    return;
  }
}

void ReadCounting(Fields& fields, const RuleContext& context, Rule& rule) {
  if (const auto key = fields.Require("key",
                                      "write who is counted: `key: ip`, or `key: global` for "
                                      "everybody together")) {
    rule.key = ReadKey(*key, context);
  }
  if (const auto value = fields.Take("on_missing_key")) ReadOnMissingKey(*value, context, rule);
  if (const auto value = fields.Take("charge_denied")) {
    rule.charge_denied = value->Bool().value_or(false);
  }
  if (const auto value = fields.Take("retry_jitter")) {
    rule.retry_jitter = value->Length(1ms, 24h).value_or(Duration{0});
  }
  if (const auto value = fields.Take("block_for")) {
    rule.block_for = value->Length(kShortestBlock, kLongestBlock).value_or(Duration{0});
  }
  const Shares shares = ReadSharing(fields, context.store, rule);
  AlgorithmOptions options = ReadAlgorithm(fields);
  if (shares.remote && options.algorithm == Algorithm::kConcurrency) WarnOfLostSlots(fields);
  const auto cost = fields.Take("cost");
  if (cost) rule.cost = ReadCost(*cost);
  options.weighted = rule.cost.header.has_value() || rule.cost.fixed != 1;
  if (auto limit = ReadLimit(fields, options, shares)) rule.limits.push_back(*std::move(limit));
  if (const auto plans = fields.Take("plans")) {
    ReadPlans(*plans, options, shares, context, rule.limits);
  }
  if (cost) CheckCost(*cost, rule.cost, rule.limits);
  ReadLease(fields, rule);
}

Rule ReadRule(Fields& fields, const RuleContext& context) {
  Rule rule;
  rule.name = ReadName(fields);
  if (const auto match = fields.Take("match")) rule.match = ReadMatch(*match);
  if (const auto exempt = fields.Take("exempt")) rule.exempt = ReadExempt(*exempt);
  static constexpr std::array<Value::Word<RuleMode>, 2> kModes = {
      {{"enforce", RuleMode::kEnforce}, {"shadow", RuleMode::kShadow}}};
  if (const auto mode = fields.Take("mode")) {
    rule.mode = mode->OneOf(kModes, {"soft"}).value_or(RuleMode::kEnforce);
  }
  if (const auto hide = fields.Take("hide")) rule.hide = hide->Bool().value_or(false);
  if (const auto value = fields.Take("message")) {
    rule.message = value->Text().value_or("");
    if (rule.message.size() > kMaxMessageBytes) {
      value->Complain(
          fmt::format("must have at most {} bytes, got {}", kMaxMessageBytes, rule.message.size()));
    }
  }
  if (const auto deny = fields.Take("deny")) rule.deny = deny->Bool().value_or(false);
  if (rule.deny) {
    for (const std::string_view name : kCountingFields) {
      fields.Refuse(name, "means nothing with `deny: true`", "leave one of the two out");
    }
  } else {
    ReadCounting(fields, context, rule);
  }
  fields.Finish();
  return rule;
}

}  // namespace

std::vector<Rule> ReadRules(const Value& value, const RuleContext& context) {
  std::vector<Rule> rules;
  if (value.node().kind != NodeKind::kList) {
    value.Complain("must be a list", "begin each rule with `- name: ...`");
    return rules;
  }
  std::map<std::string, Location> names;
  const Node* leased = nullptr;  // the first
  for (const Node& node : value.node().items) {
    Fields fields(node, "a rule", value.diagnostics());
    Rule rule = ReadRule(fields, context);
    if (rule.lease && leased == nullptr) leased = node.Find("lease");
    if (rule.name.empty()) continue;
    const Node* name = node.Find("name");
    const auto [first, added] = names.try_emplace(rule.name, name->location);
    if (!added) {
      Value("name", *name, value.diagnostics())
          .Complain(fmt::format("{} is already the name of the rule in line {}", Quoted(rule.name),
                                first->second.line),
                    "counters are kept by name; give each rule its own");
    }
    rules.push_back(std::move(rule));
  }
  if (!context.store.has_redis) {
    WarnOfFailuresWithoutStore(value);
    if (leased != nullptr) {
      value.diagnostics().Warning(
          leased->location, "`lease` has no effect without `store.redis`: all is counted in memory",
          "");
    }
  }
  return rules;
}

}  // namespace sluice::config
