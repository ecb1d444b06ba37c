#include "sluice/store/memory/internal/engine.h"

#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace sluice {

using memory::Keeper;

MemoryStore::Engine::Engine(const MemoryStoreOptions& options, const HashKey& key,
                            memory::LineTable lines)
    : max_keys(options.max_keys),
      hash_key(key),
      table(std::move(lines)),
      arena(options.outside_bytes),
      limits([this](const memory::LimitRegistry::Ids& ids) { eviction.Sweep(ids); }),
      eviction(table, limits, arena, counters),
      keys(table, limits, eviction, counters),
      concurrency(options.max_slots, counters) {}

absl::Status MemoryStore::Engine::PrepareFor(const Limit& limit) {
  const std::lock_guard lock(taking_mutex_);
  switch (memory::KeeperOf(limit)) {
    case Keeper::kWord:
      return absl::OkStatus();
    case Keeper::kConcurrency:
      if (concurrency.capacity() == 0) {
        return absl::ResourceExhaustedError(
            "max_slots is 0: there is no room for concurrency slots");
      }
      return concurrency.Open();
    case Keeper::kSmall:
    case Keeper::kStrict:
    case Keeper::kLog:
      break;
  }
  const std::uint64_t blocks = memory::OutsideStates::MaxBlocks(limit);
  if (blocks > arena.capacity()) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "one key of a limit of ", CapacityOf(limit), " may need ", blocks * sizeof(memory::Block),
        " bytes outside of the table; outside_bytes has room for ",
        std::uint64_t{arena.capacity()} * sizeof(memory::Block)));
  }
  return arena.Open();
}

std::size_t MemoryStore::Engine::BytesTaken() const {
  const std::lock_guard lock(taking_mutex_);
  return table.bytes() + arena.bytes() + concurrency.bytes();
}

void MemoryStore::Engine::PrefetchLines(const ClaimGroup& group) const {
  for (const Claim& claim : group.claims) table.Prefetch(memory::Place(claim.key));
}

void MemoryStore::Engine::PrefetchBlocks(const ClaimGroup& group) const {
  for (const Claim& claim : group.claims) {
    const Keeper keeper = limits.traits(claim.limit_id).keeper;
    if (keeper == Keeper::kWord || keeper == Keeper::kConcurrency) [[likely]] {
      continue;
    }
    arena.PrefetchHead(table.WordInFirst(memory::Place(claim.key)));
  }
}

namespace {

void Set(Claim& claim, const memory::ConcurrencyTable::Answer& answer) {
  claim.decision = answer.decision;
  claim.receipt = answer.receipt;
}

}  // namespace

const concurrency::Limit* MemoryStore::Engine::SlotsOf(const Claim& claim) const {
  if (limits.traits(claim.limit_id).keeper != Keeper::kConcurrency) [[likely]] {
    return nullptr;
  }
  return std::get_if<concurrency::Limit>(claim.limit);
}

bool MemoryStore::Engine::Look(Claim& claim, Now now) {
  if (const concurrency::Limit* limit = SlotsOf(claim)) {
    Set(claim, concurrency.Look(claim.key, *limit, claim.cost, now));
  } else {
    keys.Look(claim, now);
  }
  return claim.decision.allowed();
}

bool MemoryStore::Engine::Charge(Claim& claim, Now now) {
  if (const concurrency::Limit* limit = SlotsOf(claim)) {
    Set(claim, concurrency.Hold(claim.key, *limit, claim.cost, now));
  } else {
    keys.Charge(claim, now);
  }
  return claim.decision.allowed();
}

void MemoryStore::Engine::Force(Claim& claim, Now now) {
  if (const concurrency::Limit* limit = SlotsOf(claim)) {
    Set(claim, concurrency.ForceHold(claim.key, *limit, claim.cost, now,
                                     memory::ForcedDebt(*claim.limit)));
  } else {
    keys.Force(claim, now);
  }
}

void MemoryStore::Engine::Apply(ClaimGroup& group, Now now) {
  if (group.claims.size() == 1 && group.claims[0].kind == ClaimKind::kBinding &&
      !group.claims[0].charge_denied) [[likely]] {
    group.allowed = Charge(group.claims[0], now);
    return;
  }
  bool room_for_all = true;
  for (Claim& claim : group.claims) {
    const bool has_room = Look(claim, now);
    const bool binds = claim.kind == ClaimKind::kBinding || claim.kind == ClaimKind::kLook;
    if (binds && !has_room) room_for_all = false;
  }
  group.allowed = room_for_all && ChargeAll(group.claims, now);
  ChargeOthers(group.claims, group.allowed, now);
}

void MemoryStore::Engine::ApplyAll(std::span<ClaimGroup> groups, Now now) {
  // How many groups are on their way: fewer wait for memory, more for room in the processor's queue
  // of fetches. Blocks are asked for half way, when the lines that name them are there.
  constexpr std::size_t kAhead = 8;
  const std::size_t size = groups.size();
  for (std::size_t i = 0; i < std::min(kAhead, size); ++i) PrefetchLines(groups[i]);
  for (std::size_t i = 0; i < size; ++i) {
    if (i + kAhead < size) PrefetchLines(groups[i + kAhead]);
    if (i + kAhead / 2 < size) PrefetchBlocks(groups[i + kAhead / 2]);
    Apply(groups[i], now);
  }
}

bool MemoryStore::Engine::ChargeAll(std::span<Claim> claims, Now now) {
  for (std::size_t i = 0; i < claims.size(); ++i) {
    if (claims[i].kind != ClaimKind::kBinding) continue;
    if (Charge(claims[i], now)) continue;
    // Somebody was faster since the look.
    for (Claim& charged : claims.first(i)) {
      if (charged.receipt.units == 0) continue;
      Undo(charged, charged.receipt.units, now);
      Look(charged, now);
    }
    return false;
  }
  return true;
}

void MemoryStore::Engine::ChargeOthers(std::span<Claim> claims, bool allowed, Now now) {
  for (Claim& claim : claims) {
    const bool looks = claim.kind == ClaimKind::kLook || claim.kind == ClaimKind::kShadowLook;
    const bool always = claim.kind == ClaimKind::kSoft || (claim.charge_denied && !looks);
    if (always && claim.receipt.units == 0) {
      if (!Charge(claim, now)) Force(claim, now);
    } else if (claim.kind == ClaimKind::kShadow && allowed) {
      (void)Charge(claim, now);
    }
  }
}

void MemoryStore::Engine::Undo(Claim& claim, std::uint64_t units, Now now) {
  if (units > 0 && claim.receipt.units > 0) {
    if (SlotsOf(claim) != nullptr) {
      concurrency.Release(claim.key, claim.receipt, now);
    } else {
      keys.Undo(claim, units, now);
    }
  }
  claim.receipt = {};
}

bool MemoryStore::Engine::Renew(const Claim& claim, Now now) {
  const concurrency::Limit* const limit = SlotsOf(claim);
  return limit != nullptr && concurrency.Renew(claim.key, *limit, claim.receipt, now);
}

}  // namespace sluice
