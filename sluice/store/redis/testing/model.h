// The store as it is meant to be, in plain C++: keys under the pure algorithms, and the rules of
// sluice/store/store.h about all claims of a request. What the script says is held against it.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "sluice/algorithm/testing/pure_key.h"
#include "sluice/store/redis/script_call.h"

namespace sluice::redis::testing {

// One key under one limit.
class ModelKey {
 public:
  explicit ModelKey(const ScriptLimit& limit) : limit_(limit), key_(limit.limit()) {}

  struct Answer {
    Decision decision;
    Receipt receipt;
  };
  [[nodiscard]] Answer Look(std::uint64_t cost, Now now) const;
  Answer Charge(std::uint64_t cost, Now now, std::uint64_t slot);
  Answer Lease(std::uint64_t cost, Now now, Duration length);
  Answer Force(std::uint64_t cost, Now now, std::uint64_t slot);
  void Undo(const Receipt& receipt, std::uint64_t units, Now now);
  // Whether it was held; now it is.
  bool Renew(const Receipt& receipt, Now now);
  // The key under another limit.
  [[nodiscard]] ModelKey As(const ScriptLimit& limit, Now before, Now after) const;

  [[nodiscard]] const ScriptLimit& limit() const { return limit_; }
  // Slots apart: a charge of them is never of nothing.
  [[nodiscard]] bool SameCharges(const ModelKey& other) const { return key_.SameState(other.key_); }

 private:
  struct Slot {
    std::uint64_t id;
    concurrency::Slot held;
  };
  [[nodiscard]] const concurrency::Limit* slots_limit() const;
  [[nodiscard]] std::uint64_t InFlight(Now now) const;
  [[nodiscard]] Decision DecideOnSlots(std::uint64_t cost, Now now) const;
  Receipt Hold(std::uint64_t units, Now now, std::uint64_t slot);
  [[nodiscard]] Time EndOf(Now now) const;
  void DropOver(Now now);
  void SortSlots();

  ScriptLimit limit_;
  sluice::testing::PureKey key_;
  std::vector<Slot> slots_;  // in the order of their ends
};

class Model {
 public:
  // Decisions and receipts as `groups` should have them; `answers` beside each claim.
  struct Expected {
    bool allowed = false;
    std::vector<ModelKey::Answer> claims;
  };
  Expected Apply(const ScriptGroup& group, std::int64_t wall_us);
  void Undo(const ScriptUndo& undo, const Receipt& receipt, std::int64_t wall_us);
  bool Renew(const ScriptRenewal& renewal, std::int64_t wall_us);

 private:
  Expected ApplyLease(const ScriptClaim& claim, std::int64_t wall_us);

  using Keys = std::map<std::string, ModelKey, std::less<>>;
  // The key as the claim finds it, under the claim's limit.
  [[nodiscard]] ModelKey Find(const Keys& keys, const ScriptClaim& claim,
                              std::int64_t wall_us) const;

  Keys keys_;
};

}  // namespace sluice::redis::testing
