// Units of hot keys that an event loop takes from a remote store in bulk, and spends on whom it
// admits: one question for many requests.
//
//   Take ── something is held ──> spent here, at once
//     │ nothing is, or too little ──> the caller asks the store itself
//     `── much is wanted of this key ──> meanwhile the next lease is asked for ──> held
//                                        held ──(its end, or idle)──> what is left goes back
//
// Guarantee: a unit of a lease is taken at most once, strictly before the lease's end, counted from
// the moment of asking by this loop's clock; so every stretch keeps the bound of the limit
// (RemoteClaim::lease), whatever other nodes do. For each lease
//
//   units = spent + held + returned        (to the store, which takes what is still owed)
//
// Clocks: nothing has to be known of the server's but its pace: where this node's clock is slower
// by up to a thousandth, the bound holds.
//
// Price: what is held here cannot be spent elsewhere. A loop holds two leases of a key at most,
// none for longer than LeaseSize::longest. One has at most LeaseSize::most units, and at most a
// quarter of what the store last said remains, or of the capacity where it said nothing lately. Of
// a token bucket that was full up to length * rate units go unused, once, since a lease is charged
// as of its end; where this node dies, all that it held.
//
// How much: for each key the demand within the last LeaseSize::length is counted; a lease has what
// that will want until its end, and an eighth more. Where that is less than what kLeastLeased
// requests take, none is asked for. The next one is asked for when what is held will last for less
// than half a length, so that requests seldom find nothing.
//
// How long: LeaseSize::length; while the store is slow, eight times as long as its answers take, up
// to LeaseSize::longest. Otherwise a lease would be over when it comes, all would ask for
// themselves, and the store would stay slow.
//
// A fixed number of keys, in sets of four: among those of which nothing is held, the one that was
// not wanted for longest gives way to a new one.
//
// Cost: Take() reads a few cache lines and allocates nothing.
// Thread-safety: belongs to one event loop, as its store does.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "sluice/algorithm/decision.h"
#include "sluice/algorithm/lease_size.h"
#include "sluice/base/clock.h"
#include "sluice/base/hash.h"
#include "sluice/base/time.h"
#include "sluice/store/lease/lease_counters.h"
#include "sluice/store/remote_store.h"

namespace sluice {

struct LeaseTerms {
  std::shared_ptr<const RemoteLimit> limit;
  LeaseSize size;  // of its limit
};

struct LeaseOptions {
  std::size_t keys = 1024;  // of which demand is known; rounded up to a power of two, at least 4
  // Called when OnTime() is to be called at `at` (by `clock`) or soon after it, whatever was said
  // before. May be null: then what is left of a lease goes back when its key is next wanted.
  std::function<void(Time at)> wake;
};

class Leases {
 public:
  // `store` and `clock` outlive this. Destroy it when the store calls nobody any more.
  Leases(RemoteStore& store, const Clock& clock, LeaseOptions options);
  Leases(const Leases&) = delete;
  Leases& operator=(const Leases&) = delete;

  // `limit` tells apart the limits, and the generations of the rules, that count under one key.
  struct Name {
    Hash128 key;
    std::uint64_t limit = 0;
    friend bool operator==(const Name&, const Name&) = default;
  };

  struct Taken {
    std::uint64_t lease;  // which
    // Allowed. `remaining`: what the store had left when it granted the lease, and what is left of
    // that.
    Decision decision;
    Receipt receipt;  // of the lease, for the units that were taken
  };

  // Takes `cost` units (> 0) of what is held of the key whose bytes are `key`, and counts them as
  // wanted. Nothing: too little is held.
  [[nodiscard]] std::optional<Taken> Take(const Name& name, std::string_view key,
                                          const LeaseTerms& terms, std::uint64_t cost, Time now);

  // Whoever took `receipt.units` of `lease` did not spend them. What is not held any more goes back
  // to the store.
  void PutBack(const Name& name, std::string_view key, const LeaseTerms& terms, std::uint64_t lease,
               const Receipt& receipt);

  // Gives back what is over, and what nobody has wanted for a while.
  void OnTime(Time now);

  // Gives back all that is held; what is granted later by what was asked before goes back, too.
  void ReturnAll();
  // The same, and from now on nothing is leased.
  void Close();

  // From any thread.
  [[nodiscard]] const LeaseCounters& counters() const { return counters_; }

 private:
  struct Held {
    std::uint64_t id = 0;  // 0: none
    std::uint64_t left = 0;
    Time since;  // it was asked for
    Time until;  // not included
    Receipt receipt;
    Decision told;
  };

  // A key that was wanted lately.
  struct Entry {
    Name name;
    Time begun;  // of the period of demand
    std::uint64_t units = 0;
    std::uint64_t requests = 0;
    std::uint64_t units_before = 0;  // in the period before
    Time wanted;                     // last
    Time rests_until = Time::min();  // no lease is asked for before
    std::uint64_t remained = 0;      // said the store, at
    Time remained_at = Time::min();
    bool used = false;
    bool asking = false;
    bool stale = false;        // what it is granted goes back
    std::array<Held, 2> held;  // the one that ends first in front

    // Of the lease that was asked for last. The key, and the limit, are those of what is held, too:
    // a name has one of each.
    std::string key;
    LeaseTerms terms;
    Time asked_at;
    RemoteClaim claim;
    RemoteGroup group;

    [[nodiscard]] bool holds() const { return held[0].id != 0; }
  };
  static constexpr std::size_t kSetSize = 4;

  [[nodiscard]] Entry* SetOf(const Name& name);
  [[nodiscard]] Entry* Find(const Name& name);
  [[nodiscard]] Entry* FindOrPlace(const Name& name, Time now);
  [[nodiscard]] Duration LengthOf(const LeaseTerms& terms) const;
  static void CountDemand(Entry& entry, Duration length, std::uint64_t cost, Time now);
  [[nodiscard]] Held* Usable(Entry& entry, std::uint64_t cost, Time now);
  [[nodiscard]] static std::uint64_t Wanted(const Entry& entry, Duration length, Time now);
  [[nodiscard]] static std::uint64_t MeanCost(const Entry& entry);
  [[nodiscard]] static std::uint64_t Ceiling(const Entry& entry, const LeaseTerms& terms,
                                             Duration length, Time now);
  void AskWhereWorthIt(Entry& entry, std::string_view key, const LeaseTerms& terms, Duration length,
                       Time now);
  void Ask(Entry& entry, std::string_view key, const LeaseTerms& terms, Duration length,
           std::uint64_t units, Time now);
  void OnAnswer(Entry& entry, const absl::Status& status);
  void DropFirst(Entry& entry);
  void Return(Entry& entry, const Held& held);
  void ReturnToStore(std::string_view key, const LeaseTerms& terms, const Receipt& receipt,
                     std::uint64_t units);
  [[nodiscard]] static Time EndOf(const Entry& entry);
  void WakeAt(Time at);

  RemoteStore& store_;
  const Clock& clock_;
  const std::function<void(Time)> wake_;
  LeaseCounters counters_;
  std::size_t mask_;  // of sets
  std::vector<Entry> entries_;
  std::vector<Entry*> holding_;
  Time wakes_at_ = Time::max();
  Duration answers_take_{0};  // lately, the longest
  std::uint64_t last_id_ = 0;
  bool closed_ = false;
};

}  // namespace sluice
