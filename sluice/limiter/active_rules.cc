#include "sluice/limiter/active_rules.h"

#include <algorithm>
#include <utility>

#include "sluice/limiter/blocks.h"

namespace sluice {

absl::StatusOr<std::shared_ptr<const ActiveRules>> ActiveRules::Make(
    std::shared_ptr<const RuleSet> rules, Store& store, const Clock& clock) {
  std::shared_ptr<ActiveRules> active(new ActiveRules(std::move(rules), store, clock));
  // On a failure the destructor releases what was registered so far.
  if (absl::Status status = active->RegisterLimits(); !status.ok()) return status;
  if (absl::Status status = active->RegisterBlocks(); !status.ok()) return status;
  return active;
}

absl::Status ActiveRules::RegisterLimits() {
  for (const Rule& rule : rules_->rules()) {
    first_id_.push_back(ids_.size());
    for (const RuleLimit& limit : rule.limits) {
      absl::StatusOr<LimitId> id = store_.Register(limit.limit);
      if (!id.ok()) return id.status();
      ids_.push_back(*id);
    }
  }
  return absl::OkStatus();
}

absl::Status ActiveRules::RegisterBlocks() {
  const std::vector<Rule>& rules = rules_->rules();
  const auto blocks = [](const Rule& rule) { return rule.block_for > Duration{0}; };
  if (std::none_of(rules.begin(), rules.end(), blocks)) return absl::OkStatus();
  blocks_.resize(rules.size());
  for (std::size_t i = 0; i < rules.size(); ++i) {
    if (!blocks(rules[i])) continue;
    absl::StatusOr<Limit> limit = BlockLimit(rules[i].block_for);
    if (!limit.ok()) return limit.status();
    absl::StatusOr<LimitId> id = store_.Register(*limit);
    if (!id.ok()) return id.status();
    ids_.push_back(*id);
    blocks_[i] = std::make_unique<const Block>(Block{.limit = *std::move(limit), .id = *id});
  }
  return absl::OkStatus();
}

ActiveRules::~ActiveRules() {
  const Now now = clock_.Read();
  for (const LimitId id : ids_) store_.Release(id, now);
}

}  // namespace sluice
