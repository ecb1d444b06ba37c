#include "sluice/limiter/remote_checks.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "sluice/base/steady_now.h"
#include "sluice/limiter/failure_modes.h"
#include "sluice/limiter/fold.h"

namespace sluice {
namespace {

// A part that no other outcome reads, and that is empty.
RemotePart& FreshPart(Outcome& outcome) {
  if (outcome.remote == nullptr || outcome.remote.use_count() > 1) {
    outcome.remote = std::make_shared<RemotePart>();
  }
  RemotePart& part = *outcome.remote;
  part.leased.clear();
  part.leased_keys.clear();
  part.keys.clear();
  part.claims.clear();
  part.counted.clear();
  part.second.clear();
  return part;
}

// Whether the remote store is to be asked.
bool IsRemote(const Outcome& outcome, const RuleResult& result) {
  return result.claim >= 0 && static_cast<std::size_t>(result.claim) >= outcome.local_claims;
}

// Names a limit among all that count under one key, also in other generations of the rules.
std::uint64_t LimitName(const Outcome& outcome, std::uint32_t limit_index) {
  constexpr std::uint64_t kMostLimits = 1 << 16;  // of a rule
  return outcome.rules->rules().generation() * kMostLimits + limit_index + 1;
}

DenialMemory::Name NameOf(const Outcome& outcome, std::uint32_t limit_index, const Claim& claim) {
  return {.key = claim.key, .limit = LimitName(outcome, limit_index)};
}

bool IsRemembered(const Claim& claim) {
  return claim.kind == ClaimKind::kBinding && !claim.charge_denied &&
         !std::holds_alternative<concurrency::Limit>(*claim.limit);
}

// Puts the claim of a result among those that are answered, behind the last of them.
void MoveToAnswered(Outcome& outcome, RuleResult& moved) {
  const auto to = static_cast<std::ptrdiff_t>(outcome.local_claims++);
  const auto from = static_cast<std::ptrdiff_t>(moved.claim);
  const auto begin = outcome.claims.begin();
  std::rotate(begin + to, begin + from, begin + from + 1);
  for (RuleResult& result : outcome.results) {
    if (result.claim >= to && result.claim < from) ++result.claim;
  }
  moved.claim = static_cast<std::int32_t>(to);
}

// Whether a rule denies by what a counter of [begin, end) said.
bool AnyDenies(const Outcome& outcome, std::size_t begin, std::size_t end) {
  return std::any_of(outcome.results.begin(), outcome.results.end(), [&](const RuleResult& result) {
    const auto index = static_cast<std::size_t>(result.claim);
    return result.claim >= 0 && index >= begin && index < end &&
           result.rule->mode == RuleMode::kEnforce && outcome.Violated(result);
  });
}

// Of the claims that count remotely only those stay that charge denials.
void KeepWhatChargesDenials(Outcome& outcome) {
  std::size_t kept = outcome.local_claims;
  for (RuleResult& result : outcome.results) {
    if (!IsRemote(outcome, result)) continue;
    Claim& claim = outcome.claims[static_cast<std::size_t>(result.claim)];
    if (!claim.charge_denied) {
      result.claim = -1;
      result.answered_by = AnsweredBy::kNobody;
      continue;
    }
    claim.kind = ClaimKind::kSoft;
    outcome.claims[kept] = claim;
    result.claim = static_cast<std::int32_t>(kept++);
  }
  outcome.claims.resize(kept);
}

RemoteClaim BlockLook(std::string_view key, const Rule& rule, const ActiveRules::Block& block) {
  const bool shadow = rule.mode == RuleMode::kShadow;
  return {.key = key,
          .block = true,
          .limit = block.remote.get(),
          .kind = shadow ? ClaimKind::kShadowLook : ClaimKind::kLook,
          .charge_denied = false,
          .cost = CapacityOf(block.remote->limit()),
          .decision = {},
          .receipt = {}};
}

}  // namespace

bool RemoteChecks::Begin(const LimitRequest& request, Outcome& outcome,
                         const RuleSet::Scratch& keys, bool refused, Now now,
                         absl::AnyInvocable<void()> done) {
  if (BeginLocal(request, outcome, keys, refused, now)) {
    DrawUp(outcome, keys);
    outcome.remote->done = std::move(done);
    if (Send(outcome).ok()) return false;
    outcome.remote->done = nullptr;
    Degrade(outcome, now);
  }
  Report(outcome);
  return true;
}

void RemoteChecks::AnswerWithout(const LimitRequest& request, Outcome& outcome,
                                 const RuleSet::Scratch& keys, bool refused, Now now) {
  if (BeginLocal(request, outcome, keys, refused, now)) Degrade(outcome, now);
  Report(outcome);
}

bool RemoteChecks::BeginLocal(const LimitRequest& request, Outcome& outcome,
                              const RuleSet::Scratch& keys, bool refused, Now now) {
  outcome.now = now;
  RemotePart& part = FreshPart(outcome);
  part.request = request;
  part.sent = now.steady;
  const std::size_t local = outcome.local_claims;
  if (!refused && !request.look) TakeLeased(outcome, keys, now);
  if (!refused && Recall(outcome, now)) {
    refused = true;
    DecideOnly(std::span(outcome.claims).first(local));
  }
  const bool passes = DecideLocal(request, outcome, 0, local, now) && !refused;
  if (!passes) PutBackLeased(outcome);
  if (!passes && !request.look) KeepWhatChargesDenials(outcome);
  return outcome.claims.size() > outcome.local_claims;
}

void RemoteChecks::TakeLeased(Outcome& outcome, const RuleSet::Scratch& keys, Now now) const {
  if (parts_.leases == nullptr || !outcome.rules->has_leases()) return;
  RemotePart& part = *outcome.remote;
  for (RuleResult& result : outcome.results) {
    if (!IsRemote(outcome, result)) continue;
    const LeaseTerms* const terms = outcome.rules->LeaseOf(result.rule_index, result.limit_index);
    Claim& claim = outcome.claims[static_cast<std::size_t>(result.claim)];
    if (terms == nullptr || claim.cost == 0) continue;
    const std::string_view key = keys.BytesOf(result.key);
    const std::optional<Leases::Taken> taken =
        parts_.leases->Take({.key = claim.key, .limit = LimitName(outcome, result.limit_index)},
                            key, *terms, claim.cost, now.steady);
    if (!taken) continue;
    claim.decision = taken->decision;
    claim.receipt = taken->receipt;
    result.answered_by = AnsweredBy::kLease;
    MoveToAnswered(outcome, result);
    part.leased.push_back({.claim = static_cast<std::size_t>(result.claim),
                           .limit_index = result.limit_index,
                           .terms = terms,
                           .lease = taken->lease,
                           .key = {.begin = part.leased_keys.size(), .size = key.size()}});
    part.leased_keys.append(key);
  }
}

void RemoteChecks::PutBack(const Outcome& outcome, RemotePart::Leased& leased, Claim& claim) const {
  if (leased.lease != 0) {  // a copy of the outcome shares in it
    const std::string_view keys = outcome.remote->leased_keys;
    parts_.leases->PutBack({.key = claim.key, .limit = LimitName(outcome, leased.limit_index)},
                           keys.substr(leased.key.begin, leased.key.size), *leased.terms,
                           leased.lease, claim.receipt);
  }
  leased.lease = 0;
  claim.receipt.units = 0;
}

// The request is denied: what it took of leases is there for others, and what it is told is how it
// is without it.
void RemoteChecks::PutBackLeased(Outcome& outcome) const {
  for (RemotePart::Leased& leased : outcome.remote->leased) {
    Claim& claim = outcome.claims[leased.claim];
    if (claim.receipt.units == 0) continue;
    claim.decision.remaining += claim.receipt.units;
    claim.kind = ClaimKind::kLook;
    PutBack(outcome, leased, claim);
  }
}

// True: a rule denies by what is remembered.
bool RemoteChecks::Recall(Outcome& outcome, Now now) const {
  if (parts_.denials == nullptr) return false;
  bool any = false;
  for (RuleResult& result : outcome.results) {
    if (!IsRemote(outcome, result)) continue;
    Claim& claim = outcome.claims[static_cast<std::size_t>(result.claim)];
    if (!IsRemembered(claim)) continue;
    const std::optional<Decision> denial =
        parts_.denials->Recall(NameOf(outcome, result.limit_index, claim), claim.cost, now.steady);
    if (!denial) continue;
    claim.decision = *denial;
    if (claim.cost > CapacityOf(*claim.limit)) {  // higher than what was denied
      claim.decision.verdict = Verdict::kNever;
      claim.decision.retry_after = kNever;
    }
    result.answered_by = AnsweredBy::kMemory;
    MoveToAnswered(outcome, result);
    any = true;
  }
  return any;
}

void RemoteChecks::RememberDenials(const Outcome& outcome) const {
  if (parts_.denials == nullptr || outcome.allowed()) return;
  for (const RuleResult& result : outcome.results) {
    if (!IsRemote(outcome, result)) continue;
    const Claim& claim = outcome.claims[static_cast<std::size_t>(result.claim)];
    if (!IsRemembered(claim) || claim.decision.allowed()) continue;
    parts_.denials->Remember(NameOf(outcome, result.limit_index, claim), claim.cost, claim.decision,
                             outcome.remote->sent);
  }
}

// True: no rule denies by what it counts in memory.
bool RemoteChecks::DecideLocal(const LimitRequest& request, Outcome& outcome, std::size_t begin,
                               std::size_t end, Now now) {
  if (begin == end) return true;
  if (outcome.rules->has_blocks()) {
    parts_.blocks.Apply(request, outcome, begin, end, now);
  } else {
    ClaimGroup group{.claims = std::span(outcome.claims).subspan(begin, end - begin)};
    parts_.local.Apply(std::span(&group, 1), now);
  }
  return !AnyDenies(outcome, begin, end);
}

// The claims as the remote store wants them.
void RemoteChecks::DrawUp(Outcome& outcome, const RuleSet::Scratch& keys) {
  RemotePart& part = *outcome.remote;
  std::size_t size = 0;
  for (const RuleResult& result : outcome.results) {
    if (IsRemote(outcome, result)) size += result.key.size;
  }
  part.keys.reserve(size);  // so that views of it stay good
  for (const RuleResult& result : outcome.results) {
    if (!IsRemote(outcome, result)) continue;
    const Claim& claim = outcome.claims[static_cast<std::size_t>(result.claim)];
    const std::size_t begin = part.keys.size();
    part.keys.append(keys.BytesOf(result.key));
    part.counted.push_back({.claim = static_cast<std::size_t>(result.claim),
                            .limit_index = result.limit_index,
                            .block = -1});
    part.claims.push_back({.key = std::string_view(part.keys).substr(begin),
                           .block = false,
                           .limit = outcome.rules->RemoteOf(result.rule_index, result.limit_index),
                           .kind = claim.kind,
                           .charge_denied = claim.charge_denied,
                           .cost = claim.cost,
                           .decision = {},
                           .receipt = {}});
  }
  if (outcome.rules->has_blocks()) AddBlocks(outcome);
  part.group = {.claims = part.claims};
}

void RemoteChecks::AddBlocks(Outcome& outcome) {
  RemotePart& part = *outcome.remote;
  std::size_t at = 0;
  for (const RuleResult& result : outcome.results) {
    if (!IsRemote(outcome, result)) continue;
    const std::string_view key = part.claims[at].key;
    RemotePart::Counted& counted = part.counted[at++];
    const ActiveRules::Block* block = outcome.rules->BlockOf(result.rule_index);
    if (block == nullptr || block->remote == nullptr) continue;
    counted.block = static_cast<std::ptrdiff_t>(part.claims.size());
    part.claims.push_back(BlockLook(key, *result.rule, *block));
  }
}

absl::Status RemoteChecks::Send(Outcome& outcome) {
  if (parts_.remote == nullptr) return absl::UnavailableError("there is no remote store");
  // Two pointers: as much as a callback holds without allocating.
  return parts_.remote->Apply(
      outcome.remote->group, SteadyNow() + parts_.deadline,
      [this, &outcome](const absl::Status& status) { OnAnswer(outcome, status); });
}

void RemoteChecks::OnAnswer(Outcome& outcome, const absl::Status& status) {
  if (!outcome.remote->second.empty()) return OnSecondAnswer(outcome, status);
  const Now now = parts_.clock.Read();
  if (!status.ok()) {
    Degrade(outcome, now);
    return Finish(outcome);
  }
  Take(outcome);
  if (!outcome.remote->group.allowed) TakeBackLocal(outcome, outcome.local_claims, now);
  outcome.now = now;
  if (!DrawUpSecond(outcome)) {
    ApplyBlocks(outcome, /*second=*/false);
    return Finish(outcome);
  }
  if (!Send(outcome).ok()) {
    ApplyBlocks(outcome, /*second=*/false);
    Finish(outcome);
  }
}

// What the store said, to the outcome.
void RemoteChecks::Take(Outcome& outcome) {
  RemotePart& part = *outcome.remote;
  for (std::size_t i = 0; i < part.counted.size(); ++i) {
    const RemotePart::Counted& counted = part.counted[i];
    RemoteClaim& told = part.claims[i];
    Claim& claim = outcome.claims[counted.claim];
    const bool blocked = counted.block >= 0 &&
                         !part.claims[static_cast<std::size_t>(counted.block)].decision.allowed();
    if (blocked && claim.kind == ClaimKind::kShadow && !claim.charge_denied &&
        told.receipt.units > 0) {
      // Its block denies nobody, but inside of it the rule counts nothing.
      parts_.remote->Undo(told, told.receipt.units);
      told.receipt = {};
    }
    claim.decision = told.decision;
    claim.receipt = told.receipt;
  }
}

// The blocks that begin, and a second look at what was charged behind a block. False: none.
bool RemoteChecks::DrawUpSecond(Outcome& outcome) {
  RemotePart& part = *outcome.remote;
  part.second.clear();
  part.second_of.clear();
  for (std::size_t i = 0; i < part.counted.size(); ++i) {
    const RemotePart::Counted& counted = part.counted[i];
    if (counted.block < 0) continue;
    const Claim& claim = outcome.claims[counted.claim];
    RemoteClaim next = part.claims[static_cast<std::size_t>(counted.block)];
    const bool blocked = !next.decision.allowed();
    if (!blocked && claim.decision.verdict == Verdict::kLimited && !part.request.look) {
      next.kind = ClaimKind::kShadow;  // by itself, whatever becomes of the others
    } else if (blocked && claim.receipt.units > 0 && claim.decision.allowed()) {
      // There was room, and a charge all the same: what is the wait with it?
      next = part.claims[i];
      next.kind = ClaimKind::kShadowLook;
      next.charge_denied = false;
    } else {
      continue;
    }
    part.second.push_back(next);
    part.second_of.push_back(&counted);
  }
  part.group = {.claims = part.second};
  return !part.second.empty();
}

void RemoteChecks::OnSecondAnswer(Outcome& outcome, const absl::Status& status) {
  ApplyBlocks(outcome, status.ok());
  Finish(outcome);
}

// What blocked rules say. `second`: with what the second call brought.
void RemoteChecks::ApplyBlocks(Outcome& outcome, bool second) {
  RemotePart& part = *outcome.remote;
  for (std::size_t i = 0; second && i < part.second.size(); ++i) {
    const RemoteClaim& told = part.second[i];
    const RemotePart::Counted& counted = *part.second_of[i];
    if (told.block) {
      // When another node was faster, it stays with the block that runs.
      part.claims[static_cast<std::size_t>(counted.block)].decision = told.decision;
      ExtendToBlock(outcome.claims[counted.claim].decision, told.decision.reset_after);
    } else {
      outcome.claims[counted.claim].decision = told.decision;
    }
  }
  for (const RemotePart::Counted& counted : part.counted) {
    if (counted.block < 0) continue;
    const RemoteClaim& block = part.claims[static_cast<std::size_t>(counted.block)];
    if (block.decision.allowed()) continue;
    ExtendToBlock(outcome.claims[counted.claim].decision, block.decision.reset_after);
  }
}

void RemoteChecks::Degrade(Outcome& outcome, Now now) {
  outcome.now = now;
  const std::size_t before = outcome.local_claims;
  const bool closed = TakeFailureModes(outcome);
  const std::size_t end = outcome.local_claims;
  if (closed) DecideOnly(std::span(outcome.claims).subspan(before));
  const bool passes = DecideLocal(outcome.remote->request, outcome, before, end, now);
  if (closed || !passes) TakeBackLocal(outcome, before, now);
}

// The request was denied after the first `end` claims had been charged. What those say is what they
// say now.
void RemoteChecks::TakeBackLocal(Outcome& outcome, std::size_t end, Now now) {
  PutBackLeased(outcome);
  for (std::size_t i = 0; i < end; ++i) {
    Claim& claim = outcome.claims[i];
    if (claim.receipt.units == 0 || claim.charge_denied) continue;
    parts_.local.Undo(claim, claim.receipt.units, now);
    claim.kind = claim.kind == ClaimKind::kShadow ? ClaimKind::kShadowLook : ClaimKind::kLook;
    ClaimGroup group{.claims = std::span(&claim, 1)};
    parts_.local.Apply(std::span(&group, 1), now);
  }
}

void RemoteChecks::Report(Outcome& outcome) {
  Fold(outcome);
  if (parts_.observer != nullptr) {
    parts_.observer->OnDecision(outcome.remote->request, outcome);
  }
}

void RemoteChecks::Finish(Outcome& outcome) {
  Report(outcome);
  RememberDenials(outcome);
  RemotePart& part = *outcome.remote;
  // Whoever is called may use the outcome anew.
  absl::AnyInvocable<void()> done = std::move(part.done);
  part.done = nullptr;
  done();
}

void RemoteChecks::Undo(const Outcome& outcome, Claim& claim) {
  const auto index = static_cast<std::size_t>(&claim - outcome.claims.data());
  RemotePart& part = *outcome.remote;
  for (RemotePart::Leased& leased : part.leased) {
    if (leased.claim == index) PutBack(outcome, leased, claim);
  }
  for (std::size_t i = 0; i < part.counted.size(); ++i) {
    if (part.counted[i].claim != index) continue;
    RemoteClaim taken = part.claims[i];
    taken.receipt = claim.receipt;
    if (parts_.denials != nullptr) {
      parts_.denials->Forget(NameOf(outcome, part.counted[i].limit_index, claim));
    }
    parts_.remote->Undo(taken, taken.receipt.units);
    claim.receipt.units = 0;
  }
}

void RemoteChecks::Renew(const Outcome& outcome, const Claim& claim) {
  const auto index = static_cast<std::size_t>(&claim - outcome.claims.data());
  const RemotePart& part = *outcome.remote;
  for (std::size_t i = 0; i < part.counted.size(); ++i) {
    if (part.counted[i].claim == index) parts_.remote->Renew(part.claims[i]);
  }
}

}  // namespace sluice
