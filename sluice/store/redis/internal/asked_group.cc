#include "sluice/store/redis/internal/asked_group.h"

#include <array>
#include <cstring>
#include <string_view>
#include <variant>

#include "sluice/base/random.h"
#include "sluice/store/redis/internal/redis_limit.h"

namespace sluice::redis {

std::uint64_t SlotIds::Draw() {
  constexpr std::size_t kAtOnce = 64;
  while (drawn_.empty() || drawn_.back() == 0) {
    if (!drawn_.empty()) {
      drawn_.pop_back();
      continue;
    }
    std::array<std::uint8_t, kAtOnce * sizeof(std::uint64_t)> bytes;
    FillWithRandom(bytes);
    drawn_.resize(kAtOnce);
    std::memcpy(drawn_.data(), bytes.data(), bytes.size());
  }
  const std::uint64_t id = drawn_.back();
  drawn_.pop_back();
  return id;
}

KeyKind KindOf(const Limit& limit, bool block) {
  if (block) return KeyKind::kBlock;
  return std::holds_alternative<concurrency::Limit>(limit) ? KeyKind::kSlots : KeyKind::kCounter;
}

void AskedGroup::Take(const KeyOptions& keys, SlotIds& slots, RemoteGroup& asked) {
  group = &asked;
  turns = 0;
  slot = 0;
  redirects = hops = 0;
  alone = asking = false;
  names.clear();
  ends_.clear();
  claims.clear();
  for (const RemoteClaim& claim : asked.claims) {
    const ScriptLimit& limit = RedisLimit::Of(*claim.limit).script();
    const KeyKind kind = KindOf(limit.limit(), claim.block);
    claims.push_back({.limit = &limit,
                      .kind = claim.kind,
                      .charge_denied = claim.charge_denied,
                      .cost = claim.cost,
                      .phase_bits = AppendKeyName(keys, kind, claim.key, &names),
                      .slot = kind == KeyKind::kSlots ? slots.Draw() : 0,
                      .lease = claim.lease});
    ends_.push_back(names.size());
  }
  // Now that the names stay where they are.
  std::size_t begin = 0;
  for (std::size_t i = 0; i < claims.size(); ++i) {
    claims[i].key = std::string_view(names).substr(begin, ends_[i] - begin);
    begin = ends_[i];
  }
}

void AskedGroup::Tell(const ScriptGroup& answered) const {
  group->allowed = answered.allowed;
  for (std::size_t i = 0; i < claims.size(); ++i) {
    group->claims[i].decision = claims[i].decision;
    group->claims[i].receipt = claims[i].receipt;
    group->claims[i].good_for = claims[i].good_for;
  }
}

void AskedGroup::KeepLimits() {
  for (const RemoteClaim& claim : group->claims) kept.push_back(claim.limit->shared_from_this());
}

}  // namespace sluice::redis
