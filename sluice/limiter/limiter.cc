#include "sluice/limiter/limiter.h"

#include <algorithm>
#include <cassert>
#include <optional>
#include <utility>

#include "sluice/limiter/fold.h"

namespace sluice {

Limiter::Limiter(Parts parts, const std::shared_ptr<const ActiveRules>& rules)
    : parts_(parts),
      blocks_(parts.store, parts.hash_key),
      remote_checks_({.local = parts.store,
                      .blocks = blocks_,
                      .clock = parts.clock,
                      .observer = parts.observer,
                      .remote = parts.remote,
                      .deadline = parts.remote_deadline,
                      .denials = parts.denials,
                      .leases = parts.leases}) {
  Replace(rules);
}

void Limiter::Replace(const std::shared_ptr<const ActiveRules>& rules) {
  assert(rules != nullptr);
  auto owner = std::make_shared<std::shared_ptr<const ActiveRules>>(rules);
  rules_ = std::shared_ptr<const ActiveRules>(std::move(owner), rules.get());
  if (parts_.leases != nullptr) parts_.leases->ReturnAll();  // they are of the rules before
}

void Limiter::Check(std::span<const LimitRequest> requests, std::span<Outcome> outcomes) {
  assert(requests.size() == outcomes.size());
  if (rules_->has_remote()) [[unlikely]]
    return AnswerWithoutRemote(requests, outcomes);
  std::optional<Now> now;
  while (!requests.empty()) {
    const std::size_t size = std::min(requests.size(), Store::kMaxBatch);
    scratch_.Clear();
    for (std::size_t i = 0; i < size; ++i) {
      Prepare(requests[i], outcomes[i]);
      groups_[i] = ClaimGroup{.claims = outcomes[i].claims};
    }
    HashKeys(outcomes.first(size));
    if (size == 1) {
      for (const Claim& claim : outcomes[0].claims) parts_.store.Prefetch(claim.key);
    }
    // Read this late, so that the keys' memory is on its way meanwhile.
    if (!now) now = parts_.clock.Read();
    Decide(requests.first(size), outcomes.first(size), *now);
    requests = requests.subspan(size);
    outcomes = outcomes.subspan(size);
  }
}

bool Limiter::Check(const LimitRequest& request, Outcome& outcome,
                    absl::AnyInvocable<void()> done) {
  if (!rules_->has_remote()) {
    Check(request, outcome);
    return true;
  }
  scratch_.Clear();
  const bool refused = Prepare(request, outcome);
  HashKeys(std::span(&outcome, 1));
  return remote_checks_.Begin(request, outcome, scratch_, refused, parts_.clock.Read(),
                              std::move(done));
}

void Limiter::AnswerWithoutRemote(std::span<const LimitRequest> requests,
                                  std::span<Outcome> outcomes) {
  const Now now = parts_.clock.Read();
  for (std::size_t i = 0; i < requests.size(); ++i) {
    scratch_.Clear();
    const bool refused = Prepare(requests[i], outcomes[i]);
    HashKeys(outcomes.subspan(i, 1));
    remote_checks_.AnswerWithout(requests[i], outcomes[i], scratch_, refused, now);
  }
}

void Limiter::Decide(std::span<const LimitRequest> requests, std::span<Outcome> outcomes, Now now) {
  if (rules_->has_blocks()) [[unlikely]] {
    for (std::size_t i = 0; i < requests.size(); ++i) {
      blocks_.Apply(requests[i], outcomes[i], 0, outcomes[i].claims.size(), now);
    }
  } else {
    parts_.store.Apply(std::span(groups_).first(requests.size()), now);
  }
  for (std::size_t i = 0; i < requests.size(); ++i) {
    outcomes[i].now = now;
    Fold(outcomes[i]);
    if (parts_.observer != nullptr) parts_.observer->OnDecision(requests[i], outcomes[i]);
  }
}

namespace {

ClaimKind KindOf(const Rule& rule, const LimitRequest& request) {
  if (request.look) return ClaimKind::kLook;
  return rule.mode == RuleMode::kShadow ? ClaimKind::kShadow : ClaimKind::kBinding;
}

void AddClaim(const LimitRequest& request, const Limit& limit, LimitId id, RuleResult& result,
              Outcome& outcome) {
  result.claim = static_cast<std::int32_t>(outcome.claims.size());
  outcome.claims.emplace_back(Hash128{}, &limit, id, KindOf(*result.rule, request),
                              result.rule->charge_denied && !request.look, result.cost, Decision{},
                              Receipt{});
}

}  // namespace

// From the request to the rules that it meets and the claims that they make.
bool Limiter::Prepare(const LimitRequest& request, Outcome& outcome) {
  outcome.Clear();
  if (outcome.rules != rules_) outcome.rules = rules_;
  rules_->rules().Evaluate(request, scratch_, outcome.results);
  const bool any_remote = rules_->has_remote();
  bool refused = false;  // before any counter is asked: nothing is charged then
  for (RuleResult& result : outcome.results) {
    const Rule& rule = *result.rule;
    if (result.match != MatchOutcome::kCounts) {
      refused = refused || rule.mode == RuleMode::kEnforce;
      continue;
    }
    if (any_remote && rules_->RemoteOf(result.rule_index, result.limit_index) != nullptr) continue;
    AddClaim(request, rule.limits[result.limit_index].limit,
             rules_->IdOf(result.rule_index, result.limit_index), result, outcome);
  }
  outcome.local_claims = outcome.claims.size();
  if (any_remote) AddRemoteClaims(request, outcome);
  if (refused) DecideOnly(outcome.claims);
  return refused;
}

void Limiter::AddRemoteClaims(const LimitRequest& request, Outcome& outcome) const {
  for (RuleResult& result : outcome.results) {
    if (result.match != MatchOutcome::kCounts) continue;
    const RemoteLimit* const limit = rules_->RemoteOf(result.rule_index, result.limit_index);
    if (limit != nullptr) AddClaim(request, limit->limit(), kRemoteLimitId, result, outcome);
  }
}

// All of a batch in one loop: a hash is a chain of dependent rounds, and those of independent keys
// overlap; besides, bytes that were written a while ago are read faster than those written just
// now.
void Limiter::HashKeys(std::span<Outcome> outcomes) {
  for (Outcome& outcome : outcomes) {
    for (const RuleResult& result : outcome.results) {
      if (result.claim < 0) continue;
      const Hash128 hash = parts_.hash_key(scratch_.BytesOf(result.key));
      Claim& claim = outcome.claims[static_cast<std::size_t>(result.claim)];
      claim.key.lo = hash.lo;  // one by one: as a whole it would take a detour over the stack
      claim.key.hi = hash.hi;
    }
  }
}

void Limiter::Finish(Outcome& outcome) {
  const Now now = parts_.clock.Read();
  for (Claim& claim : outcome.claims) {
    if (claim.receipt.units == 0 || !std::holds_alternative<concurrency::Limit>(*claim.limit)) {
      continue;
    }
    GiveBack(outcome, claim, now);
  }
}

void Limiter::Undo(Outcome& outcome) {
  const Now now = parts_.clock.Read();
  for (Claim& claim : outcome.claims) {
    if (claim.receipt.units > 0) GiveBack(outcome, claim, now);
  }
}

void Limiter::GiveBack(const Outcome& outcome, Claim& claim, Now now) {
  if (claim.limit_id == kRemoteLimitId) return remote_checks_.Undo(outcome, claim);
  parts_.store.Undo(claim, claim.receipt.units, now);
}

bool Limiter::Renew(const Outcome& outcome) {
  const Now now = parts_.clock.Read();
  bool alive = true;
  for (const Claim& claim : outcome.claims) {
    if (claim.receipt.units == 0 || !std::holds_alternative<concurrency::Limit>(*claim.limit)) {
      continue;
    }
    if (claim.limit_id == kRemoteLimitId) {
      remote_checks_.Renew(outcome, claim);
    } else {
      alive = parts_.store.Renew(claim, now) && alive;
    }
  }
  return alive;
}

}  // namespace sluice
