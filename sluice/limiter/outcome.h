// What the engine answers about one request: the verdict, the rule that decided, and what every
// rule had to say; and the way back (undo, release).
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "sluice/limiter/active_rules.h"
#include "sluice/rule/rule_set.h"
#include "sluice/store/store.h"

namespace sluice {

struct RemotePart;  // remote_checks.h

enum class Answer : std::uint8_t {
  kAllowed,
  kDelayed,          // allowed, but only `delay` from now (leaky bucket); the door holds it
  kUnavailable,      // a rule fails closed while the shared store does not answer
  kLimited,          // come back after retry_after
  kNeverPasses,      // the cost can never be met
  kMissingIdentity,  // a part of a rule's key is missing, and the rule denies then
  kDenied,           // a rule with `deny: true`
};

// What a client is told to wait when nobody knows for how long the store will be silent.
inline constexpr Duration kRetryUnavailable = std::chrono::seconds{1};

// Reused from request to request by its owner, so that nothing is allocated. Owns the generation of
// the rules that it speaks of, until it is used again.
struct Outcome {
  Answer answer = Answer::kAllowed;
  // The result that is shown to the client: of the rules that deny, the one with the longest wait
  // (never before any wait); when allowed, the one with the smallest share left. -1: no rule met.
  std::int32_t decisive = -1;
  Duration delay{0};        // kDelayed: the longest of all rules
  Duration retry_after{0};  // kLimited: the longest of all denying rules; kNever; kUnknown.
                            // kUnavailable: kRetryUnavailable
  Now now{};                // when it was decided

  std::vector<RuleResult> results;  // the rules that met the request, in order
  // Those that count in memory first, then those that count in a remote store.
  std::vector<Claim> claims;
  std::size_t local_claims = 0;
  // What belongs to the remote ones; a copy of the outcome shares it.
  std::shared_ptr<RemotePart> remote;
  std::shared_ptr<const ActiveRules> rules;

  [[nodiscard]] bool allowed() const { return answer <= Answer::kDelayed; }

  [[nodiscard]] const RuleResult* decisive_result() const {
    return decisive < 0 ? nullptr : &results[static_cast<std::size_t>(decisive)];
  }
  // Null where no counter answered.
  [[nodiscard]] const Claim* ClaimOf(const RuleResult& result) const {
    return result.claim < 0 ? nullptr : &claims[static_cast<std::size_t>(result.claim)];
  }
  // Whether `result` alone would have denied the request. A shadow rule's denial counts here, and
  // is told apart by result.rule->mode.
  [[nodiscard]] bool Violated(const RuleResult& result) const {
    if (result.match != MatchOutcome::kCounts) return true;
    const Claim* claim = ClaimOf(result);
    if (claim == nullptr) return result.answered_by == AnsweredBy::kClosed;
    return !claim->decision.allowed();
  }

  // Ready for the next request; keeps its room, and the rules, which the next request most often
  // meets again.
  void Clear() {
    answer = Answer::kAllowed;
    decisive = -1;
    delay = retry_after = Duration{0};
    results.clear();
    claims.clear();
    local_claims = 0;
  }
};

// The request is denied whatever its counters say: its claims are only decided on, and charged
// where the rule charges denials.
void DecideOnly(std::span<Claim> claims);

// Whether a smaller share of a's capacity is left than of b's. A capacity of 0 has nothing left.
[[nodiscard]] bool Tighter(const Claim& a, const Claim& b);

// The answer's name for logs, metrics and JSON: "allowed", "delayed", "unavailable", "limited",
// "never", "missing_identity", "denied".
[[nodiscard]] std::string_view AnswerName(Answer answer);

}  // namespace sluice
