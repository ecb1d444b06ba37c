#include "sluice/store/testing/shared_store.h"

#include <string>
#include <utility>

#include "sluice/base/hash.h"

namespace sluice {
namespace {

class SharedLimit final : public RemoteLimit {
 public:
  SharedLimit(const Limit& limit, Store& counters, LimitId id)
      : limit_(limit), counters_(counters), id_(id) {}
  ~SharedLimit() override { counters_.Release(id_, {}); }

  const Limit& limit() const override { return limit_; }
  LimitId id() const { return id_; }

 private:
  const Limit limit_;
  Store& counters_;
  const LimitId id_;
};

// The same key for every node.
Claim ClaimOf(const RemoteClaim& remote) {
  static const HashKey hash_key(HashKind::kSipHash13, {});
  const auto& limit = static_cast<const SharedLimit&>(*remote.limit);
  // No other key's bytes begin so (rule_set.h).
  const Hash128 key = remote.block ? hash_key("b" + std::string(remote.key)) : hash_key(remote.key);
  return {.key = key,
          .limit = &limit.limit(),
          .limit_id = limit.id(),
          .kind = remote.kind,
          .charge_denied = remote.charge_denied,
          .cost = remote.cost,
          .decision = {},
          .receipt = remote.receipt};
}

}  // namespace

absl::StatusOr<std::shared_ptr<const RemoteLimit>> SharedStore::Prepare(const Limit& limit) const {
  absl::StatusOr<LimitId> id = counters_.Register(limit);
  if (!id.ok()) return id.status();
  return std::make_shared<const SharedLimit>(limit, counters_, *id);
}

absl::Status SharedStore::Apply(RemoteGroup& group, Time /*deadline*/, Done done) {
  if (!refusal_.ok()) return refusal_;
  ++asked_;
  waiting_.push_back({.group = &group, .done = std::move(done)});
  return absl::OkStatus();
}

void SharedStore::Decide(RemoteGroup& group) {
  std::vector<Claim> claims;
  for (const RemoteClaim& remote : group.claims) claims.push_back(ClaimOf(remote));
  ClaimGroup local{.claims = claims};
  counters_.Apply(std::span(&local, 1), now_);
  group.allowed = local.allowed;
  for (std::size_t i = 0; i < claims.size(); ++i) {
    group.claims[i].decision = claims[i].decision;
    group.claims[i].receipt = claims[i].receipt;
  }
}

void SharedStore::Answer(Now now) {
  now_ = now;
  for (Waiting& waiting : std::exchange(waiting_, {})) {
    Decide(*waiting.group);
    waiting.done(absl::OkStatus());
  }
}

void SharedStore::Fail(const absl::Status& status, bool charged) {
  for (Waiting& waiting : std::exchange(waiting_, {})) {
    if (charged) Decide(*waiting.group);
    waiting.done(status);
  }
}

void SharedStore::Undo(const RemoteClaim& claim, std::uint64_t units) {
  ++undone_;
  Claim local = ClaimOf(claim);
  counters_.Undo(local, units, now_);
}

void SharedStore::Renew(const RemoteClaim& claim) {
  ++renewed_;
  counters_.Renew(ClaimOf(claim), now_);
}

}  // namespace sluice
