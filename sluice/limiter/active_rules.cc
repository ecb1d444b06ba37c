#include "sluice/limiter/active_rules.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"

namespace sluice {

namespace {

// The wait for the end is then exact, and a longer block owes more.
absl::StatusOr<Limit> OneEach(Duration unit, Duration block_for) {
  const std::int64_t units = std::max<std::int64_t>(block_for / unit, 0);
  absl::StatusOr<token_bucket::Limit> limit =
      token_bucket::MakeLimit({.count = 1, .period = unit}, static_cast<std::uint64_t>(units));
  if (!limit.ok()) return limit.status();
  return Limit(*std::move(limit));
}

absl::Status ForRule(const Rule& rule, const absl::Status& status) {
  return {status.code(), absl::StrCat("rule \"", rule.name, "\": ", status.message())};
}

bool CountsRemotely(const Rule& rule) { return rule.scope == RuleScope::kShared; }

bool CountsInMemory(const Rule& rule, bool remote) {
  return !remote || !CountsRemotely(rule) || rule.on_store_failure == OnStoreFailure::kLocal;
}

}  // namespace

absl::StatusOr<Limit> BlockLimit(Duration block_for) { return OneEach(Duration{1}, block_for); }

absl::StatusOr<Limit> RemoteBlockLimit(Duration block_for) {
  return OneEach(std::chrono::microseconds{1},
                 std::chrono::ceil<std::chrono::microseconds>(block_for));
}

absl::StatusOr<std::shared_ptr<const ActiveRules>> ActiveRules::Make(
    std::shared_ptr<const RuleSet> rules, Store& store, const Clock& clock,
    const RemoteStore* remote) {
  std::shared_ptr<ActiveRules> active(new ActiveRules(std::move(rules), store, clock));
  // On a failure the destructor releases what was registered so far.
  if (remote != nullptr) {
    if (absl::Status status = active->PrepareRemote(*remote); !status.ok()) return status;
  }
  if (absl::Status status = active->MakeLeases(); !status.ok()) return status;
  if (absl::Status status = active->RegisterLimits(); !status.ok()) return status;
  if (absl::Status status = active->RegisterBlocks(remote); !status.ok()) return status;
  return active;
}

absl::Status ActiveRules::PrepareRemote(const RemoteStore& remote) {
  const std::vector<Rule>& rules = rules_->rules();
  if (std::none_of(rules.begin(), rules.end(), CountsRemotely)) return absl::OkStatus();
  for (const Rule& rule : rules) {
    for (const RuleLimit& limit : rule.limits) {
      if (!CountsRemotely(rule)) {
        remote_.emplace_back();
        continue;
      }
      absl::StatusOr<std::shared_ptr<const RemoteLimit>> made = remote.Prepare(limit.limit);
      if (!made.ok()) return ForRule(rule, made.status());
      remote_.push_back(*std::move(made));
    }
  }
  return absl::OkStatus();
}

absl::Status ActiveRules::MakeLeases() {
  const std::vector<Rule>& rules = rules_->rules();
  const auto leases = [](const Rule& rule) { return rule.lease && CountsRemotely(rule); };
  if (remote_.empty() || std::none_of(rules.begin(), rules.end(), leases)) return absl::OkStatus();
  for (const Rule& rule : rules) {
    if (leases(rule) &&
        (rule.mode == RuleMode::kShadow || rule.charge_denied || rule.block_for > Duration{0})) {
      return ForRule(rule, absl::InvalidArgumentError(
                               "leases are for rules that enforce, and neither charge denials nor "
                               "block"));
    }
    for (std::size_t i = 0; i < rule.limits.size(); ++i) {
      const std::shared_ptr<const RemoteLimit>& limit = remote_[leases_.size()];
      const auto size = leases(rule)
                            ? LeaseSizeOf(limit->limit(), rule.lease->most, rule.lease->length)
                            : std::nullopt;
      leases_.push_back(size ? std::optional(LeaseTerms{limit, *size}) : std::nullopt);
    }
  }
  return absl::OkStatus();
}

absl::Status ActiveRules::RegisterLimits() {
  const std::vector<Rule>& rules = rules_->rules();
  for (std::size_t i = 0; i < rules.size(); ++i) {
    first_id_.push_back(ids_.size());
    for (std::size_t k = 0; k < rules[i].limits.size(); ++k) {
      if (!CountsInMemory(rules[i], has_remote())) {
        ids_.push_back(kRemoteLimitId);
        continue;
      }
      absl::StatusOr<LimitId> id = store_.Register(LocalLimit(i, k));
      if (!id.ok()) return id.status();
      ids_.push_back(*id);
    }
  }
  return absl::OkStatus();
}

absl::Status ActiveRules::RegisterBlocks(const RemoteStore* remote) {
  const std::vector<Rule>& rules = rules_->rules();
  const auto blocks = [](const Rule& rule) { return rule.block_for > Duration{0}; };
  if (std::none_of(rules.begin(), rules.end(), blocks)) return absl::OkStatus();
  blocks_.resize(rules.size());
  for (std::size_t i = 0; i < rules.size(); ++i) {
    if (!blocks(rules[i])) continue;
    absl::StatusOr<std::unique_ptr<const Block>> block = MakeBlock(i, remote);
    if (!block.ok()) return ForRule(rules[i], block.status());
    blocks_[i] = *std::move(block);
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<const ActiveRules::Block>> ActiveRules::MakeBlock(
    std::size_t rule_index, const RemoteStore* remote) {
  const Rule& rule = rules_->rules()[rule_index];
  absl::StatusOr<Limit> limit = BlockLimit(rule.block_for);
  if (!limit.ok()) return limit.status();
  Block block{.limit = *std::move(limit), .id = kRemoteLimitId, .remote = nullptr};
  if (remote != nullptr && CountsRemotely(rule)) {
    absl::StatusOr<Limit> shared = RemoteBlockLimit(rule.block_for);
    if (!shared.ok()) return shared.status();
    absl::StatusOr<std::shared_ptr<const RemoteLimit>> made = remote->Prepare(*shared);
    if (!made.ok()) return made.status();
    block.remote = *std::move(made);
  }
  if (CountsInMemory(rule, remote != nullptr)) {
    absl::StatusOr<LimitId> id = store_.Register(block.limit);
    if (!id.ok()) return id.status();
    block.id = *id;
    ids_.push_back(*id);
  }
  return std::make_unique<const Block>(std::move(block));
}

ActiveRules::~ActiveRules() {
  const Now now = clock_.Read();
  for (const LimitId id : ids_) {
    if (id != kRemoteLimitId) store_.Release(id, now);
  }
}

}  // namespace sluice
