#include "sluice/rule/plan_table.h"

namespace sluice {

std::string_view PlanTable::PlanOf(std::string_view identity) const {
  const auto found = plans_.find(identity);
  return found == plans_.end() ? std::string_view(fallback_) : std::string_view(found->second);
}

}  // namespace sluice
