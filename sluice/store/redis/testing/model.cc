#include "sluice/store/redis/testing/model.h"

#include <algorithm>
#include <utility>

#include "sluice/store/redis/internal/whole_numbers.h"

namespace sluice::redis::testing {
namespace {

Decision Uncharged(Decision decision, const Decision& at_rest) {
  decision.remaining = at_rest.remaining;
  decision.reset_after = at_rest.reset_after;
  return decision;
}

Now OwnNow(const ScriptLimit& limit, std::uint32_t phase_bits, std::int64_t wall_us) {
  Now now = NowOf(wall_us);
  now.wall -= limit.PhaseOf(phase_bits);
  return now;
}

bool Binds(ClaimKind kind) { return kind == ClaimKind::kBinding || kind == ClaimKind::kLook; }

}  // namespace

const concurrency::Limit* ModelKey::slots_limit() const {
  return std::get_if<concurrency::Limit>(&limit_.limit());
}

std::uint64_t ModelKey::InFlight(Now now) const {
  std::uint64_t units = 0;
  for (const Slot& slot : slots_) {
    if (slot.held.end > now.steady) units += slot.held.units;
  }
  return units;
}

Time ModelKey::EndOf(Now now) const {
  const Duration ttl = slots_limit()->slot_ttl;
  return now.steady + (ttl > Duration{0} ? ttl : ScriptLimit::kSlotBound);
}

Decision ModelKey::DecideOnSlots(std::uint64_t cost, Now now) const {
  const std::uint64_t in_flight = InFlight(now);
  Decision decision = concurrency::Decide(*slots_limit(), in_flight, cost);
  if (decision.verdict == Verdict::kLimited) {
    std::vector<concurrency::Slot> live;
    for (const Slot& slot : slots_) {
      if (slot.held.end > now.steady) live.push_back(slot.held);
    }
    decision.retry_after =
        concurrency::RetryAfter(*slots_limit(), in_flight, cost, live, now.steady);
  }
  return decision;
}

Receipt ModelKey::Hold(std::uint64_t units, Now now, std::uint64_t slot) {
  if (units == 0) return {};
  DropOver(now);
  slots_.push_back({slot, {.end = EndOf(now), .units = units}});
  SortSlots();
  return {.before = static_cast<std::int64_t>(slot), .units = units};
}

void ModelKey::SortSlots() {
  std::stable_sort(slots_.begin(), slots_.end(),
                   [](const Slot& a, const Slot& b) { return a.held.end < b.held.end; });
}

ModelKey::Answer ModelKey::Look(std::uint64_t cost, Now now) const {
  if (slots_limit() != nullptr) {
    Decision decision = DecideOnSlots(cost, now);
    if (decision.allowed() && cost > 0) decision = Uncharged(decision, DecideOnSlots(0, now));
    return {decision, {}};
  }
  Decision decision = key_.Look(cost, now);
  if (decision.allowed() && cost > 0) decision = Uncharged(decision, key_.Look(0, now));
  return {decision, {}};
}

ModelKey::Answer ModelKey::Charge(std::uint64_t cost, Now now, std::uint64_t slot) {
  if (slots_limit() != nullptr) {
    const Decision decision = DecideOnSlots(cost, now);
    return {decision, decision.allowed() ? Hold(cost, now, slot) : Receipt{}};
  }
  const auto answer = key_.Acquire(cost, now);
  return {answer.decision, answer.receipt.units > 0 ? answer.receipt : Receipt{}};
}

ModelKey::Answer ModelKey::Lease(std::uint64_t cost, Now now, Duration length) {
  const auto answer = key_.Lease(cost, now, length);
  return {answer.decision, answer.receipt.units > 0 ? answer.receipt : Receipt{}};
}

ModelKey::Answer ModelKey::Force(std::uint64_t cost, Now now, std::uint64_t slot) {
  if (slots_limit() != nullptr) {
    const Receipt receipt =
        Hold(std::min(cost, MinusOrZero(limit_.most_debt(), InFlight(now))), now, slot);
    return {DecideOnSlots(cost, now), receipt};
  }
  const auto answer = key_.Force(cost, now, limit_.most_debt());
  return {answer.decision, answer.receipt};
}

void ModelKey::Undo(const Receipt& receipt, std::uint64_t units, Now now) {
  if (slots_limit() == nullptr) {
    (void)key_.Undo(receipt, units, now);
    return;
  }
  const auto released = [&](const Slot& slot) {
    return slot.id == static_cast<std::uint64_t>(receipt.before) && slot.held.end > now.steady;
  };
  if (std::erase_if(slots_, released) > 0) DropOver(now);
}

// What was over when the key was last written stays so, also when the clock then steps back.
void ModelKey::DropOver(Now now) {
  std::erase_if(slots_, [&](const Slot& slot) { return slot.held.end <= now.steady; });
}

bool ModelKey::Renew(const Receipt& receipt, Now now) {
  const auto id = static_cast<std::uint64_t>(receipt.before);
  const auto held = std::find_if(slots_.begin(), slots_.end(), [&](const Slot& slot) {
    return slot.id == id && slot.held.end > now.steady;
  });
  if (held == slots_.end()) {
    Hold(receipt.units, now, id);
    return false;
  }
  held->held.end = EndOf(now);
  SortSlots();
  return true;
}

ModelKey ModelKey::As(const ScriptLimit& limit, Now before, Now after) const {
  ModelKey converted(limit);
  if (slots_limit() != nullptr) {
    converted.slots_ = slots_;
    return converted;
  }
  const bool small = HasSmallState(limit_.limit()) && HasSmallState(limit.limit());
  const auto* strict = std::get_if<sliding_window_strict::Limit>(&limit.limit());
  const auto* old_strict = std::get_if<sliding_window_strict::Limit>(&limit_.limit());
  const bool same_strict = strict != nullptr && old_strict != nullptr &&
                           strict->step == old_strict->step &&
                           strict->sub_windows == old_strict->sub_windows;
  const bool same_log = std::holds_alternative<sliding_window_log::Limit>(limit.limit()) &&
                        limit.prefix() == limit_.prefix();
  if ((small && before.wall == after.wall) || same_strict || same_log) {
    converted.key_ = key_;
    converted.key_.Convert(limit.limit(), after);
    return converted;
  }
  const std::uint64_t owed = std::min(key_.Debt(before), CapacityOf(limit.limit()));
  if (owed == 0) return converted;
  // No lease ends later than this, as far as the text tells of the limit.
  std::size_t size = 0;
  const Time latest = before.steady + LongestLease(*LimitOf(limit_.prefix(), &size));
  converted.key_.Owe(owed, after, std::min(key_.SpentUntil(before), latest));
  return converted;
}

ModelKey Model::Find(const Keys& keys, const ScriptClaim& claim, std::int64_t wall_us) const {
  const auto found = keys.find(claim.key);
  if (found == keys.end()) return ModelKey(*claim.limit);
  const ModelKey& key = found->second;
  if (key.limit().limit() == claim.limit->limit()) return key;
  return key.As(*claim.limit, OwnNow(key.limit(), claim.phase_bits, wall_us),
                OwnNow(*claim.limit, claim.phase_bits, wall_us));
}

Model::Expected Model::ApplyLease(const ScriptClaim& claim, std::int64_t wall_us) {
  ModelKey key = Find(keys_, claim, wall_us);
  const Now now = OwnNow(*claim.limit, claim.phase_bits, wall_us);
  const Duration length = std::min(claim.lease, LongestLease(claim.limit->limit()));
  const auto whole_us = std::chrono::ceil<std::chrono::microseconds>(length);
  const ModelKey::Answer answer = key.Lease(claim.cost, now, whole_us);
  if (answer.receipt.units > 0) keys_.insert_or_assign(std::string(claim.key), key);
  return {.allowed = answer.decision.allowed(), .claims = {answer}};
}

Model::Expected Model::Apply(const ScriptGroup& group, std::int64_t wall_us) {
  if (group.claims[0].lease > Duration{0}) return ApplyLease(group.claims[0], wall_us);
  Expected expected{.allowed = true};
  const auto now_of = [&](const ScriptClaim& claim) {
    return OwnNow(*claim.limit, claim.phase_bits, wall_us);
  };
  for (const ScriptClaim& claim : group.claims) {
    expected.claims.push_back(Find(keys_, claim, wall_us).Look(claim.cost, now_of(claim)));
    if (Binds(claim.kind) && !expected.claims.back().decision.allowed()) expected.allowed = false;
  }
  // `how` on a copy of the key, which is kept where something was charged. (A forced charge of
  // a bucket may be of less than one unit, which no receipt tells of; or of nothing.)
  const auto change = [&](Keys& keys, std::size_t i, const auto& how) {
    const ScriptClaim& claim = group.claims[i];
    const ModelKey before = Find(keys, claim, wall_us);
    ModelKey key = before;
    const ModelKey::Answer answer = how(key, claim);
    if (answer.receipt.units > 0 || !key.SameCharges(before)) {
      keys.insert_or_assign(std::string(claim.key), key);
    }
    return answer;
  };
  const auto charge = [&](ModelKey& key, const ScriptClaim& claim) {
    const ModelKey::Answer answer = key.Charge(claim.cost, now_of(claim), claim.slot);
    return answer.receipt.units > 0 ? answer : key.Look(claim.cost, now_of(claim));
  };
  const auto force = [&](ModelKey& key, const ScriptClaim& claim) {
    return key.Force(claim.cost, now_of(claim), claim.slot);
  };
  if (expected.allowed) {
    Keys keys = keys_;
    Expected charged = expected;
    for (std::size_t i = 0; i < group.claims.size() && expected.allowed; ++i) {
      if (group.claims[i].kind != ClaimKind::kBinding) continue;
      charged.claims[i] = change(keys, i, charge);
      if (!charged.claims[i].decision.allowed()) {
        expected.claims[i] = charged.claims[i];
        expected.allowed = false;
      }
    }
    if (expected.allowed) {
      keys_ = std::move(keys);
      expected = std::move(charged);
    }
  }
  for (std::size_t i = 0; i < group.claims.size(); ++i) {
    const ScriptClaim& claim = group.claims[i];
    const bool looks = claim.kind == ClaimKind::kLook || claim.kind == ClaimKind::kShadowLook;
    const bool always = claim.kind == ClaimKind::kSoft || (claim.charge_denied && !looks);
    if (always && expected.claims[i].receipt.units == 0) {
      expected.claims[i] = change(keys_, i, charge);
      if (!expected.claims[i].decision.allowed()) {
        expected.claims[i] = change(keys_, i, force);
      }
    } else if (claim.kind == ClaimKind::kShadow && expected.allowed) {
      expected.claims[i] = change(keys_, i, charge);
    }
  }
  return expected;
}

void Model::Undo(const ScriptUndo& undo, const Receipt& receipt, std::int64_t wall_us) {
  const auto found = keys_.find(undo.key);
  if (found == keys_.end() || found->second.limit().prefix() != undo.limit->prefix()) return;
  found->second.Undo(receipt, undo.units, OwnNow(*undo.limit, undo.phase_bits, wall_us));
}

bool Model::Renew(const ScriptRenewal& renewal, std::int64_t wall_us) {
  auto& key = keys_.try_emplace(std::string(renewal.key), *renewal.limit).first->second;
  return key.Renew(renewal.receipt, NowOf(wall_us));
}

}  // namespace sluice::redis::testing
