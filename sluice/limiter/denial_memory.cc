#include "sluice/limiter/denial_memory.h"

#include <algorithm>
#include <bit>

namespace sluice {
namespace {

constexpr auto kRelaxed = std::memory_order_relaxed;

constexpr std::uint32_t kNeverBit = std::uint32_t{1} << 31U;

std::int64_t Ns(Time at) { return at.time_since_epoch().count(); }

Duration Shortened(Duration wait, Duration passed) {
  if (wait == kNever || wait == kUnknown) return wait;
  return std::max(wait - passed, Duration{1});
}

}  // namespace

DenialMemory::DenialMemory(std::size_t entries)
    : mask_(std::bit_ceil(std::max<std::size_t>(entries, 2)) - 1),
      entries_(std::make_unique<Entry[]>(mask_ + 1)) {}

Hash128 DenialMemory::Mixed(const Name& name) {
  // The key is random to everybody; the limit's number only has to change it.
  return {.lo = name.key.lo ^ (name.limit * 0x9e3779b97f4a7c15U), .hi = name.key.hi + name.limit};
}

DenialMemory::Entry& DenialMemory::At(const Hash128& key, unsigned place) const {
  return entries_[(place == 0 ? key.lo : key.hi) & mask_];
}

std::optional<DenialMemory::Seen> DenialMemory::Read(const Entry& entry) {
  const std::uint32_t before = entry.sequence.load(std::memory_order_acquire);
  if ((before & 1U) != 0) return std::nullopt;
  Seen seen{.key = {.lo = entry.lo.load(kRelaxed), .hi = entry.hi.load(kRelaxed)},
            .cost = entry.cost.load(kRelaxed),
            .sent = entry.sent.load(kRelaxed),
            .until = entry.until.load(kRelaxed),
            .decision = {}};
  const std::uint32_t left = entry.left.load(kRelaxed);
  seen.decision = {.verdict = (left & kNeverBit) != 0 ? Verdict::kNever : Verdict::kLimited,
                   .remaining = left & ~kNeverBit,
                   .retry_after = Duration{entry.retry_after.load(kRelaxed)},
                   .reset_after = Duration{entry.reset_after.load(kRelaxed)}};
  std::atomic_thread_fence(std::memory_order_acquire);
  if (entry.sequence.load(kRelaxed) != before) return std::nullopt;
  return seen;
}

std::optional<Decision> DenialMemory::Recall(const Name& name, std::uint64_t cost,
                                             Time now) const noexcept {
  const Hash128 key = Mixed(name);
  for (const unsigned place : {0U, 1U}) {
    std::optional<Seen> seen = Read(At(key, place));
    if (!seen || seen->key != key) continue;
    if (Ns(now) >= seen->until || cost < seen->cost) return std::nullopt;
    if (seen->sent <= forgotten_.load(kRelaxed)) return std::nullopt;
    // A reading of the clock may be a little behind that of another thread.
    const Duration passed{std::max<std::int64_t>(Ns(now) - seen->sent, 0)};
    seen->decision.retry_after = Shortened(seen->decision.retry_after, passed);
    seen->decision.reset_after = Shortened(seen->decision.reset_after, passed);
    return seen->decision;
  }
  return std::nullopt;
}

// Where the key is already; else where what is there ends first.
DenialMemory::Entry& DenialMemory::PlaceFor(const Hash128& key) const {
  Entry& first = At(key, 0);
  Entry& second = At(key, 1);
  const auto holds = [&key](const Entry& entry) {
    return entry.lo.load(kRelaxed) == key.lo && entry.hi.load(kRelaxed) == key.hi;
  };
  if (holds(first)) return first;
  if (holds(second)) return second;
  return first.until.load(kRelaxed) <= second.until.load(kRelaxed) ? first : second;
}

// What was asked for later holds for longer; answers may come in another order.
bool DenialMemory::KnowsBetter(const Entry& entry, const Hash128& key, std::uint64_t cost,
                               std::int64_t sent) {
  const std::optional<Seen> seen = Read(entry);
  return seen && seen->key == key && seen->until != 0 && seen->cost <= cost && seen->sent > sent;
}

void DenialMemory::Remember(const Name& name, std::uint64_t cost, const Decision& decision,
                            Time sent) noexcept {
  const Hash128 key = Mixed(name);
  const Duration wait = decision.retry_after == kUnknown ? Duration{0} : decision.retry_after;
  const Duration kept = std::min(wait, kLongest);
  if (kept <= Duration{0}) return;
  Entry& entry = PlaceFor(key);
  if (KnowsBetter(entry, key, cost, Ns(sent))) return;
  std::uint32_t sequence = entry.sequence.load(kRelaxed);
  // Somebody else writes there: what is not remembered costs one question more.
  if ((sequence & 1U) != 0 || !entry.sequence.compare_exchange_strong(
                                  sequence, sequence + 1, std::memory_order_acquire, kRelaxed)) {
    return;
  }
  std::atomic_thread_fence(std::memory_order_release);
  entry.lo.store(key.lo, kRelaxed);
  entry.hi.store(key.hi, kRelaxed);
  const auto left =
      static_cast<std::uint32_t>(std::min<std::uint64_t>(decision.remaining, ~kNeverBit));
  entry.left.store(left | (decision.verdict == Verdict::kNever ? kNeverBit : 0), kRelaxed);
  entry.cost.store(cost, kRelaxed);
  entry.sent.store(Ns(sent), kRelaxed);
  entry.until.store(Ns(sent + kept), kRelaxed);
  entry.retry_after.store(decision.retry_after.count(), kRelaxed);
  entry.reset_after.store(decision.reset_after.count(), kRelaxed);
  entry.sequence.store(sequence + 2, std::memory_order_release);
}

void DenialMemory::Forget(const Name& name) noexcept {
  const Hash128 key = Mixed(name);
  for (const unsigned place : {0U, 1U}) {
    Entry& entry = At(key, place);
    // Whoever writes the entry anew at the same time may win: late by kLongest at most.
    if (entry.lo.load(kRelaxed) == key.lo && entry.hi.load(kRelaxed) == key.hi) {
      entry.until.store(0, kRelaxed);
    }
  }
}

void DenialMemory::ForgetAll(Time now) noexcept { forgotten_.store(Ns(now), kRelaxed); }

}  // namespace sluice
