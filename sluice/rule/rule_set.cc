#include "sluice/rule/rule_set.h"

#include <utility>

#include "sluice/rule/internal/evaluation.h"

namespace sluice {
namespace {

std::string KeyPrefix(const std::string& rule_name) {
  return std::to_string(rule_name.size()) + ":" + rule_name;
}

}  // namespace

RuleSet::RuleSet(std::vector<Rule> rules, RuleSetOptions options, std::uint64_t generation)
    : rules_(std::move(rules)), options_(std::move(options)), generation_(generation) {
  key_prefixes_.reserve(rules_.size());
  for (const Rule& rule : rules_) key_prefixes_.push_back(KeyPrefix(rule.name));
}

RuleSet::~RuleSet() = default;

void RuleSet::Evaluate(const LimitRequest& request, Scratch& scratch,
                       std::vector<RuleResult>& results) const {
  using Criterion = Evaluation::Criterion;
  using Reading = Evaluation::Reading;
  Evaluation evaluation(*this, request, scratch);
  for (std::size_t i = 0; i < rules_.size(); ++i) {
    const Rule& rule = rules_[i];
    if (request.exempt && !rule.deny) [[unlikely]]
      continue;
    const PathPattern* route = nullptr;
    if (evaluation.FirstMismatch(rule.match, Reading::kAny, &route) != Criterion::kNone) continue;
    const PathPattern* exempt_route = nullptr;
    bool exempt = false;
    for (const Match& match : rule.exempt) {
      exempt = exempt ||
               evaluation.FirstMismatch(match, Reading::kEvery, &exempt_route) == Criterion::kNone;
    }
    if (exempt) continue;

    const std::size_t key_start = scratch.keys_size_;
    const Source* missing = rule.deny ? nullptr : evaluation.AppendKey(i, route);
    if (missing != nullptr && rule.on_missing_key == OnMissingKey::kSkip) continue;

    // Written where it stays: a copy of what was written just now waits for the writes.
    RuleResult& result = results.emplace_back();
    result.rule = &rule;
    result.rule_index = static_cast<std::uint32_t>(i);
    result.missing = missing;
    if (rule.deny) {
      result.match = MatchOutcome::kDenies;
    } else if (missing != nullptr) {
      result.match = MatchOutcome::kMissingKey;
    } else {
      result.key = {.begin = key_start, .size = scratch.keys_size_ - key_start};
      result.limit_index = evaluation.LimitIndex(rule);
      result.cost = evaluation.CostOf(rule.cost);
    }
  }
}

RuleSet::Caller RuleSet::Identify(const LimitRequest& request) const {
  Scratch scratch;
  Evaluation evaluation(*this, request, scratch);
  return {.client = evaluation.client(),
          .path = std::string(evaluation.path().ok() ? evaluation.path().literal
                                                     : std::string_view(request.target)),
          .plan = std::string(options_.plans.enabled() ? evaluation.plan() : std::string_view())};
}

std::vector<RuleSet::Explanation> RuleSet::Explain(const LimitRequest& request) const {
  using Criterion = Evaluation::Criterion;
  using Reading = Evaluation::Reading;
  std::vector<Explanation> explanations;
  Scratch scratch;
  Evaluation evaluation(*this, request, scratch);
  for (const Rule& rule : rules_) {
    Explanation& told = explanations.emplace_back(Explanation{.rule = &rule});
    const PathPattern* route = nullptr;
    if (const Criterion failed = evaluation.FirstMismatch(rule.match, Reading::kAny, &route);
        failed != Criterion::kNone) {
      told.reason = std::string(Evaluation::Name(failed)) + " does not match";
      continue;
    }
    const PathPattern* exempt_route = nullptr;
    for (std::size_t i = 0; i < rule.exempt.size() && told.reason.empty(); ++i) {
      if (evaluation.FirstMismatch(rule.exempt[i], Reading::kEvery, &exempt_route) ==
          Criterion::kNone) {
        told.reason = "exempt by entry " + std::to_string(i + 1);
      }
    }
    if (!told.reason.empty()) continue;
    told.meets = true;
    if (rule.deny) {
      told.reason = "denies every request that it meets";
      continue;
    }
    ExplainKey(rule, evaluation, route, told);
    told.limit = &rule.limits[evaluation.LimitIndex(rule)];
    told.cost = evaluation.CostOf(rule.cost);
  }
  return explanations;
}

void RuleSet::ExplainKey(const Rule& rule, Evaluation& evaluation, const PathPattern* route,
                         Explanation& told) {
  for (const Source& source : rule.key) {
    std::optional<std::string> value = evaluation.Describe(source, route);
    std::string label = source.label;
    if (!value && rule.on_missing_key == OnMissingKey::kFallback) {
      value = evaluation.Describe(rule.fallback, route);
      label = rule.fallback.label;
    }
    if (value) {
      told.key.push_back(label + (source.kind == SourceKind::kGlobal ? "" : "=" + *value));
      continue;
    }
    told.reason = source.label + " is missing or ambiguous";
    told.meets = rule.on_missing_key == OnMissingKey::kDeny;
    return;
  }
}

}  // namespace sluice
