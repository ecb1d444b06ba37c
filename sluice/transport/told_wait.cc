#include "sluice/transport/told_wait.h"

#include <algorithm>
#include <cassert>

#include "sluice/base/int128.h"

namespace sluice::transport {
namespace {

// Both halves of the product in one: every bit of the result depends on every bit of both.
std::uint64_t Mix(std::uint64_t a, std::uint64_t b) {
  const Uint128 product = static_cast<Uint128>(a) * b;
  return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64U);
}

// Even over all 64-bit numbers.
std::uint64_t Draw(const Outcome& outcome) {
  constexpr std::uint64_t kOdd = 0x9e3779b97f4a7c15;
  constexpr std::uint64_t kOther = 0xd1b54a32d192ed03;
  auto draw = static_cast<std::uint64_t>(outcome.now.steady.time_since_epoch().count());
  for (const Claim& claim : outcome.claims) {
    draw = Mix(draw ^ claim.key.lo ^ kOdd, claim.key.hi ^ kOther);
  }
  return Mix(draw ^ kOther, kOdd);
}

bool IsLimited(const RuleResult& result, const Claim* claim) {
  return claim != nullptr && result.rule->mode == RuleMode::kEnforce &&
         claim->decision.verdict == Verdict::kLimited && claim->decision.retry_after != kUnknown;
}

// 0 to the rule's jitter, both included.
Duration JitterOf(const Rule& rule, std::uint64_t draw) {
  const auto choices = static_cast<Uint128>(rule.retry_jitter.count()) + 1;
  return Duration(static_cast<std::int64_t>(choices * draw >> 64U));
}

}  // namespace

Duration ToldWait(const Outcome& outcome) {
  if (outcome.answer != Answer::kLimited) return outcome.retry_after;
  if (outcome.retry_after == kNever || outcome.retry_after == kUnknown) return outcome.retry_after;
  Duration told = outcome.retry_after;
  for (const RuleResult& result : outcome.results) {
    if (result.rule->retry_jitter == Duration{0}) continue;
    if (!IsLimited(result, outcome.ClaimOf(result))) continue;
    told = std::max(told, ToldDecision(outcome, result).retry_after);
  }
  return told;
}

Decision ToldDecision(const Outcome& outcome, const RuleResult& result) {
  const Claim* claim = outcome.ClaimOf(result);
  assert(claim != nullptr);
  Decision told = claim->decision;
  if (result.rule->retry_jitter > Duration{0} && IsLimited(result, claim)) {
    told.retry_after += JitterOf(*result.rule, Draw(outcome));
  }
  return told;
}

}  // namespace sluice::transport
