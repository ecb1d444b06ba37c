#include "sluice/limiter/active_rules.h"

#include <utility>

namespace sluice {

absl::StatusOr<std::shared_ptr<const ActiveRules>> ActiveRules::Make(
    std::shared_ptr<const RuleSet> rules, Store& store, const Clock& clock) {
  std::shared_ptr<ActiveRules> active(new ActiveRules(std::move(rules), store, clock));
  for (const Rule& rule : active->rules_->rules()) {
    active->first_id_.push_back(active->ids_.size());
    for (const RuleLimit& limit : rule.limits) {
      absl::StatusOr<LimitId> id = store.Register(limit.limit);
      if (!id.ok()) return id.status();  // the destructor releases what was registered so far
      active->ids_.push_back(*id);
    }
  }
  return active;
}

ActiveRules::~ActiveRules() {
  const Now now = clock_.Read();
  for (const LimitId id : ids_) store_.Release(id, now);
}

}  // namespace sluice
