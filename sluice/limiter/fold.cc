#include "sluice/limiter/fold.h"

#include <algorithm>

namespace sluice {
namespace {

// Whether the rule had nothing to say: it was not asked, or passes while the store is silent.
bool Silent(const RuleResult& result) {
  return result.answered_by == AnsweredBy::kNobody || result.answered_by == AnsweredBy::kOpen;
}

// How a result bears on the answer, worst last.
Answer AnswerOf(const RuleResult& result, const Claim* claim) {
  switch (result.match) {
    case MatchOutcome::kDenies:
      return Answer::kDenied;
    case MatchOutcome::kMissingKey:
      return Answer::kMissingIdentity;
    case MatchOutcome::kCounts:
      break;
  }
  if (claim == nullptr) return Answer::kUnavailable;
  switch (claim->decision.verdict) {
    case Verdict::kAllowed:
      return Answer::kAllowed;
    case Verdict::kDelayed:
      return Answer::kDelayed;
    case Verdict::kLimited:
      return Answer::kLimited;
    case Verdict::kNever:
      return Answer::kNeverPasses;
  }
  return Answer::kAllowed;
}

// An unknown wait counts as none here: a known one tells the client more.
Duration Wait(const Claim* claim) {
  return claim == nullptr ? Duration{0} : claim->decision.retry_after;
}

// Whether `result`, which bears on the answer as `answer`, is to be shown rather than `shown`.
bool TellsMore(Answer answer, const Claim* claim, Answer shown_answer, const Claim* shown) {
  if (answer != shown_answer) return answer > shown_answer;
  if (claim == nullptr || shown == nullptr) return false;  // the first of its kind stays
  if (answer <= Answer::kDelayed) return Tighter(*claim, *shown);
  return Wait(claim) > Wait(shown);
}

}  // namespace

void Fold(Outcome& outcome) {
  Answer shown_answer = Answer::kAllowed;
  const Claim* shown = nullptr;
  bool any_denied = false;
  for (std::size_t i = 0; i < outcome.results.size(); ++i) {
    const RuleResult& result = outcome.results[i];
    if (result.rule->mode == RuleMode::kShadow || Silent(result)) continue;
    const Claim* claim = outcome.ClaimOf(result);
    const Answer answer = AnswerOf(result, claim);
    if (claim != nullptr) outcome.delay = std::max(outcome.delay, claim->decision.delay);
    if (claim != nullptr && !claim->decision.allowed()) {
      // kNever is the longest of all; kUnknown (-1) gives way to any known wait.
      outcome.retry_after = any_denied ? std::max(outcome.retry_after, Wait(claim)) : Wait(claim);
      any_denied = true;
    }
    if (outcome.decisive < 0 || TellsMore(answer, claim, shown_answer, shown)) {
      outcome.decisive = static_cast<std::int32_t>(i);
      shown_answer = answer;
      shown = claim;
    }
  }
  outcome.answer = shown_answer;
  if (shown_answer != Answer::kLimited && shown_answer != Answer::kNeverPasses) {
    outcome.retry_after = Duration{0};
  }
  if (shown_answer == Answer::kUnavailable) outcome.retry_after = kRetryUnavailable;
  if (!outcome.allowed()) outcome.delay = Duration{0};
}

}  // namespace sluice
