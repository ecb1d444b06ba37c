// A RuleSet together with what stores know of its limits: the ids of those in memory, and the forms
// of those in a remote store.
//
// Made once for each generation, off the hot path, and shared by all threads. While one is alive
// the store keeps the limits' ids; the last owner gives them back.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "sluice/base/clock.h"
#include "sluice/rule/rule_set.h"
#include "sluice/store/lease/leases.h"
#include "sluice/store/remote_store.h"
#include "sluice/store/store.h"

namespace sluice {

// What a block (blocks.h) of this length is to the store: a bucket of as many units as it has
// nanoseconds. InvalidArgument: not positive, or above 100 years.
[[nodiscard]] absl::StatusOr<Limit> BlockLimit(Duration block_for);
// The same for a remote store, where a unit is a microsecond: of nanoseconds it could not count as
// many.
[[nodiscard]] absl::StatusOr<Limit> RemoteBlockLimit(Duration block_for);

class ActiveRules {
 public:
  // Registers every limit of `rules` that counts in memory with `store`. Both outlive the result,
  // as does `clock`. With `remote` (any loop's; needed for the call alone) the rules whose scope is
  // shared count there; without it none does.
  // ResourceExhausted as Store::Register, InvalidArgument as BlockLimit and RemoteStore::Prepare,
  // and for a lease of a rule that can have none (a shadow, one with charge_denied or block_for),
  // with the rule's name; nothing stays registered then.
  static absl::StatusOr<std::shared_ptr<const ActiveRules>> Make(
      std::shared_ptr<const RuleSet> rules, Store& store, const Clock& clock,
      const RemoteStore* remote = nullptr);

  ~ActiveRules();
  ActiveRules(const ActiveRules&) = delete;
  ActiveRules& operator=(const ActiveRules&) = delete;

  [[nodiscard]] const RuleSet& rules() const { return *rules_; }
  [[nodiscard]] LimitId IdOf(std::size_t rule_index, std::size_t limit_index) const {
    return ids_[first_id_[rule_index] + limit_index];
  }
  // What counts in memory: under IdOf(). Of a rule that counts in a remote store what this node
  // allows by itself meanwhile, if its failure mode is kLocal.
  [[nodiscard]] const Limit& LocalLimit(std::size_t rule_index, std::size_t limit_index) const {
    const RuleLimit& limit = rules_->rules()[rule_index].limits[limit_index];
    return RemoteOf(rule_index, limit_index) != nullptr && limit.local ? *limit.local : limit.limit;
  }
  // What counts in a remote store; null: nothing of this limit does.
  [[nodiscard]] const RemoteLimit* RemoteOf(std::size_t rule_index, std::size_t limit_index) const {
    return remote_.empty() ? nullptr : remote_[first_id_[rule_index] + limit_index].get();
  }
  // Whether any rule counts in a remote store.
  [[nodiscard]] bool has_remote() const { return !remote_.empty(); }
  // How units of a limit that counts in a remote store are leased; null: they are not.
  [[nodiscard]] const LeaseTerms* LeaseOf(std::size_t rule_index, std::size_t limit_index) const {
    if (leases_.empty()) return nullptr;
    const std::optional<LeaseTerms>& terms = leases_[first_id_[rule_index] + limit_index];
    return terms ? &*terms : nullptr;
  }
  // Whether any rule leases.
  [[nodiscard]] bool has_leases() const { return !leases_.empty(); }
  // What a rule's `block_for` is to the stores (blocks.h): null for a rule without one.
  struct Block {
    Limit limit;
    LimitId id = 0;
    std::shared_ptr<const RemoteLimit> remote;  // null: blocks lie in memory alone
  };
  [[nodiscard]] const Block* BlockOf(std::size_t rule_index) const {
    return blocks_.empty() ? nullptr : blocks_[rule_index].get();
  }
  // Whether any rule has one.
  [[nodiscard]] bool has_blocks() const { return !blocks_.empty(); }

 private:
  ActiveRules(std::shared_ptr<const RuleSet> rules, Store& store, const Clock& clock)
      : rules_(std::move(rules)), store_(store), clock_(clock) {}

  absl::Status PrepareRemote(const RemoteStore& remote);
  absl::Status MakeLeases();
  absl::Status RegisterLimits();
  absl::Status RegisterBlocks(const RemoteStore* remote);
  absl::StatusOr<std::unique_ptr<const Block>> MakeBlock(std::size_t rule_index,
                                                         const RemoteStore* remote);

  std::shared_ptr<const RuleSet> rules_;
  Store& store_;
  const Clock& clock_;
  std::vector<std::size_t> first_id_;                 // of each rule, into ids_
  std::vector<std::unique_ptr<const Block>> blocks_;  // of each rule; empty where none has one
  // Of each limit; then all others that are registered. kRemoteLimitId: not registered.
  std::vector<LimitId> ids_;
  std::vector<std::shared_ptr<const RemoteLimit>> remote_;  // as ids_; empty where none is
  std::vector<std::optional<LeaseTerms>> leases_;           // as remote_; empty where none is
};

}  // namespace sluice
