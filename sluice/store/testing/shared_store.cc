#include "sluice/store/testing/shared_store.h"

#include <algorithm>
#include <cassert>
#include <string>
#include <utility>
#include <variant>

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

// One claim alone, and what is left of it.
bool ApplyAlone(Store& counters, Claim& claim, Now now) {
  ClaimGroup group{.claims = {&claim, 1}};
  counters.Apply({&group, 1}, now);
  return group.allowed;
}

Now Later(Now now, Duration by) { return {now.steady + by, now.wall + by}; }

bool IsDated(const Limit& limit) {
  return std::holds_alternative<sliding_window_log::Limit>(limit) ||
         std::holds_alternative<sliding_window_strict::Limit>(limit);
}

}  // namespace

void SharedLeases::Decide(Store& counters, RemoteClaim& remote, Claim claim, Now now) {
  const Limit& limit = *claim.limit;
  assert(claim.kind == ClaimKind::kBinding && !claim.charge_denied && !remote.block);
  assert(CanLease(limit));
  const Duration lease = std::min(remote.lease, LongestLease(limit));
  if (std::holds_alternative<token_bucket::Limit>(limit)) {
    DecideBucket(counters, remote, claim, now);
    return;
  }
  const bool granted = ApplyAlone(counters, claim, now);
  remote.decision = claim.decision;
  remote.receipt = claim.receipt;
  if (!granted) return;
  remote.good_for = lease;
  if (!IsDated(limit)) {
    remote.good_for = std::min(lease, claim.decision.reset_after);
    return;
  }
  remote.decision.reset_after += lease;
  dated_.push_back({remote.limit->shared_from_this(), claim, claim.receipt.units, Later(now, lease),
                    /*anew=*/false});
  remote.receipt.undone_before = dated_.size();
}

// max(tat, end) + k * T <= now + capacity, in two parts: with the tat it is a look at now, with the
// end it is MostLeased(). Then a charge at the end passes, and leaves the tat as it should be.
void SharedLeases::DecideBucket(Store& counters, RemoteClaim& remote, Claim& claim, Now now) {
  const Duration lease = std::min(remote.lease, LongestLease(*claim.limit));
  const bool never = claim.cost > MostLeased(*claim.limit, lease);
  Claim look = claim;
  look.kind = ClaimKind::kLook;
  if (never) look.cost = 0;
  const bool granted = ApplyAlone(counters, look, now) && !never;
  if (granted) {
    (void)ApplyAlone(counters, claim, Later(now, lease));
    look.cost = 0;
    (void)ApplyAlone(counters, look, now);
    Time& latest = latest_end_[{claim.key.lo, claim.key.hi}];
    latest = std::max(latest, now.steady + lease);
    remote.good_for = lease;
  }
  remote.decision = look.decision;
  if (never) {
    remote.decision.verdict = Verdict::kNever;
    remote.decision.retry_after = kNever;
  }
  remote.receipt = claim.receipt;
}

void SharedLeases::Undo(Store& counters, const RemoteClaim& remote, Claim claim,
                        std::uint64_t units, Now now) {
  if (remote.lease > Duration{0} && IsDated(*claim.limit)) {
    Dated& dated = dated_.at(claim.receipt.undone_before - 1);
    units = std::min(units, dated.left);
    dated.left -= units;
    claim = dated.claim;
  }
  const auto latest = latest_end_.find({claim.key.lo, claim.key.hi});
  if (latest != latest_end_.end() && latest->second > now.steady) {
    now = Later(now, latest->second - now.steady);
  }
  counters.Undo(claim, units, now);
}

void SharedLeases::DateAnew(Store& counters, Now now) {
  for (Dated& dated : dated_) {
    if (dated.anew || dated.end.steady > now.steady) continue;
    dated.anew = true;
    Claim charged = dated.claim;
    counters.Undo(charged, dated.left, dated.end);
    charged.cost = dated.left;
    charged.kind = ClaimKind::kSoft;
    if (dated.left > 0) (void)ApplyAlone(counters, charged, dated.end);
    dated.claim.receipt = charged.receipt;
  }
}

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
  leases_.DateAnew(counters_, now_);
  if (group.claims[0].lease > Duration{0} && group.claims[0].cost > 0) {
    assert(group.claims.size() == 1);
    RemoteClaim& remote = group.claims[0];
    remote.receipt = {};
    leases_.Decide(counters_, remote, ClaimOf(remote), now_);
    group.allowed = remote.decision.allowed();
    return;
  }
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
  leases_.DateAnew(counters_, now_);
  leases_.Undo(counters_, claim, ClaimOf(claim), units, now_);
}

void SharedStore::Renew(const RemoteClaim& claim) {
  ++renewed_;
  counters_.Renew(ClaimOf(claim), now_);
}

}  // namespace sluice
