#include "sluice/limiter/failure_modes.h"

#include <cstddef>

namespace sluice {
namespace {

// What the rule says while the store does not answer.
AnsweredBy ModeOf(const Rule& rule) {
  switch (rule.on_store_failure) {
    case OnStoreFailure::kOpen:
      return AnsweredBy::kOpen;
    case OnStoreFailure::kClosed:
      return rule.mode == RuleMode::kShadow ? AnsweredBy::kOpen : AnsweredBy::kClosed;
    case OnStoreFailure::kLocal:
      break;
  }
  return AnsweredBy::kLocal;
}

}  // namespace

bool TakeFailureModes(Outcome& outcome) {
  const std::size_t before = outcome.local_claims;
  std::size_t kept = before;
  bool closed = false;
  for (RuleResult& result : outcome.results) {
    const auto index = static_cast<std::size_t>(result.claim);
    if (result.claim < 0 || index < before) continue;
    result.answered_by = ModeOf(*result.rule);
    closed |= result.answered_by == AnsweredBy::kClosed;
    if (result.answered_by != AnsweredBy::kLocal) {
      result.claim = -1;
      continue;
    }
    Claim claim = outcome.claims[index];
    claim.limit = &outcome.rules->LocalLimit(result.rule_index, result.limit_index);
    claim.limit_id = outcome.rules->IdOf(result.rule_index, result.limit_index);
    outcome.claims[kept] = claim;
    result.claim = static_cast<std::int32_t>(kept++);
  }
  outcome.claims.resize(kept);
  outcome.local_claims = kept;
  return closed;
}

}  // namespace sluice
