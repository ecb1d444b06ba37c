#include "sluice/limiter/blocks.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <string_view>

namespace sluice {
namespace {

// The bytes of a rule's own key begin with a digit (rule_set.h), so that they never equal these.
Hash128 BlockKey(const HashKey& hash_key, const Hash128& key) {
  std::array<char, 1 + sizeof key.lo + sizeof key.hi> bytes;
  bytes[0] = 'b';
  std::memcpy(&bytes[1], &key.lo, sizeof key.lo);
  std::memcpy(&bytes[1 + sizeof key.lo], &key.hi, sizeof key.hi);
  return hash_key(std::string_view(bytes.data(), bytes.size()));
}

}  // namespace

void ExtendToBlock(Decision& decision, Duration wait) {
  if (decision.verdict == Verdict::kNever) return;
  decision.verdict = Verdict::kLimited;
  decision.remaining = 0;
  decision.delay = Duration{0};
  // An unknown wait gives way to the one that is known.
  decision.retry_after = std::max(decision.retry_after, wait);
  if (decision.reset_after != kUnknown) {
    decision.reset_after = std::max(decision.reset_after, wait);
  }
}

void Blocks::Apply(const LimitRequest& request, Outcome& outcome, std::size_t begin,
                   std::size_t end, Now now) {
  const std::span claims = std::span(outcome.claims).subspan(begin, end - begin);
  Find(outcome, begin, end);
  if (!blocks_.empty()) {
    ApplyGroup(blocks_, now);
    Withhold(claims);
  }
  ApplyGroup(claims, now);
  for (std::size_t i = 0; i < blocks_.size(); ++i) Settle(i, request, now);
}

void Blocks::Find(Outcome& outcome, std::size_t begin, std::size_t end) {
  watched_.clear();
  blocks_.clear();
  for (const RuleResult& result : outcome.results) {
    const ActiveRules::Block* const block = outcome.rules->BlockOf(result.rule_index);
    const auto index = static_cast<std::size_t>(result.claim);
    if (block == nullptr || result.claim < 0 || index < begin || index >= end) continue;
    Claim& claim = outcome.claims[index];
    watched_.push_back({.result = &result, .claim = &claim});
    blocks_.push_back({.key = BlockKey(hash_key_, claim.key),
                       .limit = &block->limit,
                       .limit_id = block->id,
                       .kind = ClaimKind::kLook,
                       .charge_denied = false,
                       .cost = CapacityOf(block->limit),
                       .decision = {},
                       .receipt = {}});
  }
}

void Blocks::Withhold(std::span<Claim> claims) {
  bool refused = false;
  for (std::size_t i = 0; i < blocks_.size(); ++i) {
    if (blocks_[i].decision.allowed()) continue;
    const auto [result, claim] = watched_[i];
    if (result->rule->mode == RuleMode::kEnforce) {
      refused = true;
    } else if (claim->kind == ClaimKind::kShadow) {
      claim->kind = claim->charge_denied ? ClaimKind::kSoft : ClaimKind::kShadowLook;
    }
  }
  if (refused) DecideOnly(claims);
}

void Blocks::ApplyGroup(std::span<Claim> claims, Now now) {
  ClaimGroup group{.claims = claims};
  store_.Apply(std::span(&group, 1), now);
}

void Blocks::Settle(std::size_t index, const LimitRequest& request, Now now) {
  Claim& block = blocks_[index];
  Claim& claim = *watched_[index].claim;
  const bool blocked = !block.decision.allowed();
  if (blocked && claim.receipt.units > 0 && claim.decision.allowed()) {
    // There was room, and a charge all the same: what is the wait with it?
    Claim look = claim;
    look.kind = ClaimKind::kLook;
    look.charge_denied = false;
    ApplyGroup(std::span(&look, 1), now);
    claim.decision = look.decision;
  }
  const bool begins = !blocked && claim.decision.verdict == Verdict::kLimited && !request.look;
  if (begins) {
    // When another thread was faster, it stays with the block that runs.
    block.kind = ClaimKind::kBinding;
    ApplyGroup(std::span(&block, 1), now);
  }
  if (blocked || begins) ExtendToBlock(claim.decision, block.decision.reset_after);
}

}  // namespace sluice
