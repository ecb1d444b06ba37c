// One key under one limit, whatever the algorithm: the pure functions with a plain place for the
// state, so that one test can hold all eight to the same rules. Copyable, so that a test can
// ask what would have been a nanosecond earlier.
#pragma once

#include <cstdint>
#include <vector>

#include "sluice/algorithm/limit.h"
#include "sluice/algorithm/state.h"
#include "sluice/algorithm/testing/vector_log.h"

namespace sluice::testing {

class PureKey {
 public:
  explicit PureKey(Limit limit);

  struct Answer {
    Decision decision;
    Receipt receipt;
    bool damaged = false;
  };

  // Decides, and keeps the state when that says so.
  Answer Acquire(std::uint64_t cost, Now now);
  // Takes a lease; its receipt may be undone in parts.
  Answer Lease(std::uint64_t cost, Now now, Duration length);
  [[nodiscard]] Decision LookLease(std::uint64_t cost, Now now, Duration length) const;
  [[nodiscard]] Decision Look(std::uint64_t cost, Now now) const;
  // Charges whatever the room, as far as `max_debt` units.
  Answer Force(std::uint64_t cost, Now now, std::uint64_t max_debt);
  // Concurrency: releases the slots; false when they were back already.
  bool Undo(const Receipt& receipt, std::uint64_t units, Now now);
  // As if `units`, which may be spent until then, were charged, where the algorithm can tell.
  void Owe(std::uint64_t units, Now now, Time until);
  // A reload. To another algorithm too, where both have a small state.
  void Convert(const Limit& to, Now now);

  [[nodiscard]] std::uint64_t Debt(Now now) const;
  // Until when something that is charged may be spent, at the latest, as far as the state tells:
  // also a clock that steps back leaves what is ahead.
  [[nodiscard]] Time SpentUntil(Now now) const;
  [[nodiscard]] const Limit& limit() const { return limit_; }
  [[nodiscard]] bool SameState(const PureKey& other) const;

 private:
  struct Slots {
    struct Taken {
      std::int64_t id;
      concurrency::Slot slot;
      friend bool operator==(const Taken& a, const Taken& b) { return a.id == b.id; }
    };
    std::vector<Taken> taken;  // in the order of their ends
  };

  struct Counters {
    std::int64_t newest = 0;
    std::vector<std::uint64_t> counts;
    friend bool operator==(const Counters&, const Counters&) = default;
  };

  [[nodiscard]] Answer DecideOn(std::uint64_t cost, Now now) const;
  [[nodiscard]] Answer DecideLeaseOn(std::uint64_t cost, Now now, Duration length) const;
  [[nodiscard]] Decision DecideOnSlots(const concurrency::Limit& limit, std::uint64_t cost,
                                       Now now) const;
  Answer AcquireSlots(const concurrency::Limit& limit, std::uint64_t cost, Now now);
  [[nodiscard]] std::uint64_t InFlight(Now now) const;

  void KeepSmall(const SmallState& next, Now now);

  Limit limit_;
  SmallState small_;
  std::uint64_t undone_ = 0;
  std::int64_t lease_end_ = 0;  // token bucket
  mutable Counters counters_;   // a View cannot be const; Decide and Debt do not write
  VectorLog log_;
  Slots slots_;
  std::int64_t next_slot_ = 1;
};

}  // namespace sluice::testing
