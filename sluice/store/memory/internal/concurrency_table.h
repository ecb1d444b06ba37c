// Concurrency: who holds how many units of which key, and until when.
//
//   key (128 bits) --> in flight: 3    first held --> ... --> last held       in the order of ends
//                                      until 10:04            until 10:30
//
// A fixed number of held slots, taken from the system once. When it is used up, a new one is
// refused rather than an old one forgotten: forgetting would let more in than the limit says. Slots
// whose time to live is over come back when their key is met, or when room is needed.
//
// A receipt names a slot and its generation, which is counted up each time the slot is held: a
// second release, or one after the slot ran out, finds another generation and does nothing.
//
// Cost: about 100 bytes a held slot. A lock of one in 256 stripes a call; no allocation.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <span>

#include "absl/status/status.h"
#include "sluice/algorithm/concurrency.h"
#include "sluice/algorithm/decision.h"
#include "sluice/base/hash.h"
#include "sluice/base/time.h"
#include "sluice/store/memory/internal/counters.h"
#include "sluice/store/memory/internal/pages.h"
#include "sluice/store/memory/internal/spin_lock.h"

namespace sluice::memory {

class ConcurrencyTable {
 public:
  struct Answer {
    Decision decision;
    Receipt receipt;  // units 0: nothing is held
  };

  // Knows its bound; the memory comes with Open().
  ConcurrencyTable(std::uint32_t max_slots, Counters& counters)
      : max_slots_(max_slots), counters_(counters) {}

  // Takes the memory, at the first call. kResourceExhausted: the system does not have it.
  absl::Status Open();

  [[nodiscard]] Answer Look(const Hash128& key, const concurrency::Limit& limit, std::uint64_t cost,
                            Now now);
  // Holds `cost` units if there is room for them.
  [[nodiscard]] Answer Hold(const Hash128& key, const concurrency::Limit& limit, std::uint64_t cost,
                            Now now);
  // Holds `cost` units whatever the room, up to `max_in_flight` in all.
  [[nodiscard]] Answer ForceHold(const Hash128& key, const concurrency::Limit& limit,
                                 std::uint64_t cost, Now now, std::uint64_t max_in_flight);
  // Nothing happens when the slot is over, or was released.
  void Release(const Hash128& key, const Receipt& receipt, Now now);
  // The time to live starts again. False: the slot is over, or was released.
  bool Renew(const Hash128& key, const concurrency::Limit& limit, const Receipt& receipt, Now now);

  [[nodiscard]] std::uint32_t capacity() const { return max_slots_; }
  // Including slots that are over and were not met since.
  [[nodiscard]] std::uint32_t used() const { return used_.load(std::memory_order_relaxed); }
  [[nodiscard]] std::size_t bytes() const { return pages_.size(); }

 private:
  // Numbers into held_ and keys_, counted from 1; 0 is none.
  using Number = std::uint32_t;

  struct Held {
    Number next;  // of the key, in the order of ends; or in the list of free ones
    Number previous;
    // Odd while held. Old receipts look at it whoever has the slot now.
    std::atomic<std::uint64_t> generation;
    Time end;
    std::uint64_t units;
  };
  struct Key {
    Hash128 key;
    Number next;  // in the bucket; or in the list of free ones
    Number first;
    Number last;
    std::uint64_t in_flight;
  };
  static constexpr std::size_t kStripes = 256;
  struct alignas(64) Stripe {
    SpinLock lock;
    // No slot of the stripe ends before. Read by others without the lock.
    std::atomic<std::int64_t> earliest_end{Time::max().time_since_epoch().count()};
    std::span<Number> buckets;
  };
  class Ends;  // a key's slots as a range

  [[nodiscard]] Held& HeldOf(Number number) { return held_[number - 1]; }
  [[nodiscard]] Key& KeyOf(Number number) { return keys_[number - 1]; }
  [[nodiscard]] Stripe& StripeOf(const Hash128& key) { return stripes_[key.lo % kStripes]; }
  [[nodiscard]] static Number& BucketOf(Stripe& stripe, const Hash128& key);

  // The key, with what is over taken out of it; 0: nothing is in flight.
  [[nodiscard]] Number Meet(Stripe& stripe, const Hash128& key, Now now);
  [[nodiscard]] Decision Decide(Number key, const concurrency::Limit& limit, std::uint64_t cost,
                                Now now);
  // 0 when the table is full.
  [[nodiscard]] Number Add(Stripe& stripe, const Hash128& key, Number number, Time end,
                           std::uint64_t units, Now now);
  void Link(Key& key, Number held);    // where its end belongs
  void Unlink(Key& key, Number held);  // stays the caller's
  void Drop(Key& key, Number held);    // unlinks and frees
  void DropExpired(Key& key, Now now);
  void FreeKeyIfIdle(Stripe& stripe, Number number);
  [[nodiscard]] bool StillHeld(const Receipt& receipt);
  [[nodiscard]] Receipt ReceiptOf(Number held, std::uint64_t units);

  [[nodiscard]] bool TakeEntries(Number& held, Number* key);
  // Frees what is over in some other stripe. False: nothing is.
  bool ReclaimElsewhere(const Stripe& mine, Now now);
  void SweepStripe(Stripe& stripe, Now now);

  const std::uint32_t max_slots_;
  Counters& counters_;
  Pages pages_;
  std::span<Held> held_;
  std::span<Key> keys_;
  std::array<Stripe, kStripes> stripes_;

  SpinLock free_lock_;  // over the four below
  Number free_held_ = 0;
  Number free_key_ = 0;
  Number fresh_held_ = 0;  // numbers up to here were in use at some time
  Number fresh_key_ = 0;
  std::atomic<std::uint32_t> used_{0};
};

}  // namespace sluice::memory
