// A RuleSet together with the ids under which a store knows its limits.
//
// Made once for each generation, off the hot path, and shared by all threads. While one is alive
// the store keeps the limits' ids; the last owner gives them back.
#pragma once

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "sluice/base/clock.h"
#include "sluice/rule/rule_set.h"
#include "sluice/store/store.h"

namespace sluice {

// What a block (blocks.h) of this length is to the store: a bucket of as many units as it has
// nanoseconds. InvalidArgument: not positive, or above 100 years.
[[nodiscard]] absl::StatusOr<Limit> BlockLimit(Duration block_for);

class ActiveRules {
 public:
  // Registers every limit of `rules` with `store`. Both outlive the result, as does `clock`.
  // ResourceExhausted as Store::Register, InvalidArgument as BlockLimit; nothing stays registered
  // then.
  static absl::StatusOr<std::shared_ptr<const ActiveRules>> Make(
      std::shared_ptr<const RuleSet> rules, Store& store, const Clock& clock);

  ~ActiveRules();
  ActiveRules(const ActiveRules&) = delete;
  ActiveRules& operator=(const ActiveRules&) = delete;

  [[nodiscard]] const RuleSet& rules() const { return *rules_; }
  [[nodiscard]] LimitId IdOf(std::size_t rule_index, std::size_t limit_index) const {
    return ids_[first_id_[rule_index] + limit_index];
  }
  // What a rule's `block_for` is to the store (blocks.h): null for a rule without one.
  struct Block {
    Limit limit;
    LimitId id = 0;
  };
  [[nodiscard]] const Block* BlockOf(std::size_t rule_index) const {
    return blocks_.empty() ? nullptr : blocks_[rule_index].get();
  }
  // Whether any rule has one.
  [[nodiscard]] bool has_blocks() const { return !blocks_.empty(); }

 private:
  ActiveRules(std::shared_ptr<const RuleSet> rules, Store& store, const Clock& clock)
      : rules_(std::move(rules)), store_(store), clock_(clock) {}

  absl::Status RegisterLimits();
  absl::Status RegisterBlocks();

  std::shared_ptr<const RuleSet> rules_;
  Store& store_;
  const Clock& clock_;
  std::vector<std::size_t> first_id_;                 // of each rule, into ids_
  std::vector<std::unique_ptr<const Block>> blocks_;  // of each rule; empty where none has one
  std::vector<LimitId> ids_;                          // all that are registered
};

}  // namespace sluice
