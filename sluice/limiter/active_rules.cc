#include "sluice/limiter/active_rules.h"

#include <algorithm>
#include <utility>

namespace sluice {

absl::StatusOr<Limit> BlockLimit(Duration block_for) {
  // The wait for the end is then exact, and a longer block owes more.
  constexpr Rate kOneEachNanosecond{.count = 1, .period = Duration{1}};
  const std::int64_t ns = std::max<std::int64_t>(block_for.count(), 0);
  absl::StatusOr<token_bucket::Limit> limit =
      token_bucket::MakeLimit(kOneEachNanosecond, static_cast<std::uint64_t>(ns));
  if (!limit.ok()) return limit.status();
  return Limit(*std::move(limit));
}

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
