#include "sluice/store/memory/internal/concurrency_table.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <mutex>
#include <new>
#include <utility>

namespace sluice::memory {
namespace {

Time EndOf(const concurrency::Limit& limit, Now now) {
  if (limit.slot_ttl == Duration{0}) return Time::max();
  if (now.steady > Time::max() - limit.slot_ttl) return Time::max();
  return now.steady + limit.slot_ttl;
}

}  // namespace

class ConcurrencyTable::Ends {
 public:
  class Iterator {
   public:
    using value_type = concurrency::Slot;
    using difference_type = std::ptrdiff_t;

    Iterator(ConcurrencyTable* table, Number at) : table_(table), at_(at) {}
    concurrency::Slot operator*() const {
      const Held& held = table_->HeldOf(at_);
      return {.end = held.end, .units = held.units};
    }
    Iterator& operator++() {
      at_ = table_->HeldOf(at_).next;
      return *this;
    }
    void operator++(int) { ++*this; }
    bool operator==(std::default_sentinel_t) const { return at_ == 0; }

   private:
    ConcurrencyTable* table_;
    Number at_;
  };

  Ends(ConcurrencyTable& table, Number first) : table_(table), first_(first) {}
  [[nodiscard]] Iterator begin() const { return {&table_, first_}; }
  [[nodiscard]] static std::default_sentinel_t end() { return {}; }

 private:
  ConcurrencyTable& table_;
  Number first_;
};

absl::Status ConcurrencyTable::Open() {
  if (!held_.empty() || max_slots_ == 0) return absl::OkStatus();
  const std::size_t per_stripe = (max_slots_ + kStripes - 1) / kStripes;
  const std::size_t buckets = per_stripe * kStripes;
  const std::size_t bytes = max_slots_ * (sizeof(Held) + sizeof(Key)) + buckets * sizeof(Number);
  absl::StatusOr<Pages> pages = Pages::Take(bytes, "concurrency slots (max_slots)");
  if (!pages.ok()) return pages.status();
  pages_ = *std::move(pages);
  std::byte* at = pages_.data();
  held_ = {new (at) Held[max_slots_](), max_slots_};
  at += held_.size_bytes();
  keys_ = {new (at) Key[max_slots_](), max_slots_};
  at += keys_.size_bytes();
  auto* const bucket = new (at) Number[buckets]();
  for (std::size_t i = 0; i < kStripes; ++i) {
    stripes_[i].buckets = {bucket + i * per_stripe, per_stripe};
  }
  return absl::OkStatus();
}

ConcurrencyTable::Number& ConcurrencyTable::BucketOf(Stripe& stripe, const Hash128& key) {
  return stripe.buckets[key.hi % stripe.buckets.size()];
}

ConcurrencyTable::Number ConcurrencyTable::Meet(Stripe& stripe, const Hash128& key, Now now) {
  if (stripe.buckets.empty()) return 0;
  Number number = BucketOf(stripe, key);
  while (number != 0 && !(KeyOf(number).key == key)) number = KeyOf(number).next;
  if (number == 0) return 0;
  DropExpired(KeyOf(number), now);
  if (KeyOf(number).first != 0) return number;
  FreeKeyIfIdle(stripe, number);
  return 0;
}

Decision ConcurrencyTable::Decide(Number key, const concurrency::Limit& limit, std::uint64_t cost,
                                  Now now) {
  const std::uint64_t in_flight = key == 0 ? 0 : KeyOf(key).in_flight;
  Decision decision = concurrency::Decide(limit, in_flight, cost);
  if (decision.verdict == Verdict::kLimited) {
    decision.retry_after = concurrency::RetryAfter(
        limit, in_flight, cost, Ends(*this, key == 0 ? 0 : KeyOf(key).first), now.steady);
  }
  return decision;
}

ConcurrencyTable::Answer ConcurrencyTable::Look(const Hash128& key, const concurrency::Limit& limit,
                                                std::uint64_t cost, Now now) {
  Stripe& stripe = StripeOf(key);
  const std::lock_guard lock(stripe.lock);
  const Number number = Meet(stripe, key, now);
  Answer answer{.decision = Decide(number, limit, cost, now)};
  if (answer.decision.allowed()) {
    answer.decision.remaining = Decide(number, limit, 0, now).remaining;
  }
  return answer;
}

ConcurrencyTable::Answer ConcurrencyTable::Hold(const Hash128& key, const concurrency::Limit& limit,
                                                std::uint64_t cost, Now now) {
  Stripe& stripe = StripeOf(key);
  const std::lock_guard lock(stripe.lock);
  const Number number = Meet(stripe, key, now);
  Answer answer{.decision = Decide(number, limit, cost, now)};
  if (!answer.decision.allowed() || cost == 0) return answer;
  const Number held = Add(stripe, key, number, EndOf(limit, now), cost, now);
  if (held == 0) {
    counters_.Add(Count::kRefused);
    answer.decision.verdict = Verdict::kLimited;
    answer.decision.remaining += cost;
    answer.decision.retry_after = kUnknown;
    return answer;
  }
  answer.receipt = ReceiptOf(held, cost);
  return answer;
}

ConcurrencyTable::Answer ConcurrencyTable::ForceHold(const Hash128& key,
                                                     const concurrency::Limit& limit,
                                                     std::uint64_t cost, Now now,
                                                     std::uint64_t max_in_flight) {
  Stripe& stripe = StripeOf(key);
  const std::lock_guard lock(stripe.lock);
  Number number = Meet(stripe, key, now);
  Answer answer{.decision = Decide(number, limit, cost, now)};
  const std::uint64_t in_flight = number == 0 ? 0 : KeyOf(number).in_flight;
  const std::uint64_t units = std::min(cost, max_in_flight - std::min(max_in_flight, in_flight));
  if (units == 0) return answer;
  const Number held = Add(stripe, key, number, EndOf(limit, now), units, now);
  if (held == 0) {
    counters_.Add(Count::kRefused);
    return answer;
  }
  answer.receipt = ReceiptOf(held, units);
  if (answer.decision.allowed()) return answer;
  // As it is afterwards: deeper in debt the answer is no again, with the wait as it is now.
  answer.decision = Decide(Meet(stripe, key, now), limit, cost, now);
  return answer;
}

void ConcurrencyTable::Release(const Hash128& key, const Receipt& receipt, Now now) {
  Stripe& stripe = StripeOf(key);
  const std::lock_guard lock(stripe.lock);
  const Number number = Meet(stripe, key, now);
  if (number == 0 || !StillHeld(receipt)) return;
  Drop(KeyOf(number), static_cast<Number>(receipt.before));
  FreeKeyIfIdle(stripe, number);
}

bool ConcurrencyTable::Renew(const Hash128& key, const concurrency::Limit& limit,
                             const Receipt& receipt, Now now) {
  Stripe& stripe = StripeOf(key);
  const std::lock_guard lock(stripe.lock);
  const Number number = Meet(stripe, key, now);
  if (number == 0 || !StillHeld(receipt)) return false;
  const auto held = static_cast<Number>(receipt.before);
  Unlink(KeyOf(number), held);
  HeldOf(held).end = EndOf(limit, now);
  Link(KeyOf(number), held);
  return true;
}

Receipt ConcurrencyTable::ReceiptOf(Number held, std::uint64_t units) {
  return {.before = held,
          .charged_at =
              static_cast<std::int64_t>(HeldOf(held).generation.load(std::memory_order_relaxed)),
          .units = units};
}

bool ConcurrencyTable::StillHeld(const Receipt& receipt) {
  if (receipt.units == 0) return false;
  const Held& held = HeldOf(static_cast<Number>(receipt.before));
  return held.generation.load(std::memory_order_relaxed) ==
         static_cast<std::uint64_t>(receipt.charged_at);
}

ConcurrencyTable::Number ConcurrencyTable::Add(Stripe& stripe, const Hash128& key, Number number,
                                               Time end, std::uint64_t units, Now now) {
  Number held = 0;
  Number fresh_key = 0;
  while (!TakeEntries(held, number == 0 ? &fresh_key : nullptr)) {
    if (!ReclaimElsewhere(stripe, now)) return 0;
  }
  if (number == 0) {
    number = fresh_key;
    Number& bucket = BucketOf(stripe, key);
    KeyOf(number) = {.key = key, .next = bucket};
    bucket = number;
  }
  Held& slot = HeldOf(held);
  slot.generation.fetch_add(1, std::memory_order_relaxed);
  slot.end = end;
  slot.units = units;
  Link(KeyOf(number), held);
  KeyOf(number).in_flight += units;
  const std::int64_t end_ns = end.time_since_epoch().count();
  if (end_ns < stripe.earliest_end.load(std::memory_order_relaxed)) {
    stripe.earliest_end.store(end_ns, std::memory_order_relaxed);
  }
  return held;
}

// Ends mostly come in order, so from the back.
void ConcurrencyTable::Link(Key& key, Number held) {
  Number before = key.last;
  while (before != 0 && HeldOf(before).end > HeldOf(held).end) before = HeldOf(before).previous;
  const Number after = before == 0 ? key.first : HeldOf(before).next;
  HeldOf(held).previous = before;
  HeldOf(held).next = after;
  (before == 0 ? key.first : HeldOf(before).next) = held;
  (after == 0 ? key.last : HeldOf(after).previous) = held;
}

void ConcurrencyTable::Unlink(Key& key, Number held) {
  const Number before = HeldOf(held).previous;
  const Number after = HeldOf(held).next;
  (before == 0 ? key.first : HeldOf(before).next) = after;
  (after == 0 ? key.last : HeldOf(after).previous) = before;
}

void ConcurrencyTable::Drop(Key& key, Number held) {
  Unlink(key, held);
  Held& slot = HeldOf(held);
  key.in_flight -= slot.units;
  slot.generation.fetch_add(1, std::memory_order_relaxed);
  const std::lock_guard lock(free_lock_);
  slot.next = free_held_;
  free_held_ = held;
  used_.fetch_sub(1, std::memory_order_relaxed);
}

void ConcurrencyTable::DropExpired(Key& key, Now now) {
  while (key.first != 0 && HeldOf(key.first).end <= now.steady) Drop(key, key.first);
}

void ConcurrencyTable::FreeKeyIfIdle(Stripe& stripe, Number number) {
  Key& key = KeyOf(number);
  if (key.first != 0) return;
  Number* link = &BucketOf(stripe, key.key);
  while (*link != number) link = &KeyOf(*link).next;
  *link = key.next;
  const std::lock_guard lock(free_lock_);
  key.next = free_key_;
  free_key_ = number;
}

// There are as many keys as slots, and a key without slots is free: no slot lacks a key.
bool ConcurrencyTable::TakeEntries(Number& held, Number* key) {
  const std::lock_guard lock(free_lock_);
  if (free_held_ == 0 && fresh_held_ == held_.size()) return false;
  if (key != nullptr && free_key_ == 0 && fresh_key_ == keys_.size()) return false;
  if (free_held_ != 0) {
    held = free_held_;
    free_held_ = HeldOf(held).next;
  } else {
    held = ++fresh_held_;
  }
  used_.fetch_add(1, std::memory_order_relaxed);
  if (key == nullptr) return true;
  if (free_key_ != 0) {
    *key = free_key_;
    free_key_ = KeyOf(*key).next;
  } else {
    *key = ++fresh_key_;
  }
  return true;
}

bool ConcurrencyTable::ReclaimElsewhere(const Stripe& mine, Now now) {
  const std::int64_t ns = now.steady.time_since_epoch().count();
  for (Stripe& stripe : stripes_) {
    if (stripe.earliest_end.load(std::memory_order_relaxed) > ns) continue;
    // Never waits: the other stripe's holder may be waiting for this one.
    const bool other = &stripe != &mine;
    if (other && !stripe.lock.try_lock()) continue;
    const std::uint32_t before = used();
    SweepStripe(stripe, now);
    if (other) stripe.lock.unlock();
    if (used() < before) return true;
  }
  return false;
}

void ConcurrencyTable::SweepStripe(Stripe& stripe, Now now) {
  Time earliest = Time::max();
  for (const Number& bucket : stripe.buckets) {
    for (Number number = bucket; number != 0;) {
      const Number next = KeyOf(number).next;
      DropExpired(KeyOf(number), now);
      if (KeyOf(number).first != 0) earliest = std::min(earliest, HeldOf(KeyOf(number).first).end);
      FreeKeyIfIdle(stripe, number);
      number = next;
    }
  }
  stripe.earliest_end.store(earliest.time_since_epoch().count(), std::memory_order_relaxed);
}

}  // namespace sluice::memory
