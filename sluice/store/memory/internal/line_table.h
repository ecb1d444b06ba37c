// The array of lines: where a key can be, and finding it there. Who gives way to whom is decided
// elsewhere (eviction.h).
//
// A key has two candidate lines and, for the few that find no room in either, one line of a small
// stash at the end of the array. With a new key in its first line while that has fewer than two
// live keys, else in the emptier of the two, 0.004 % of the inserts at half load and 0.05 % at 60 %
// find both lines full (simulated); the stash takes those.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "absl/status/statusor.h"
#include "sluice/base/hash.h"
#include "sluice/base/int128.h"
#include "sluice/store/memory/internal/line.h"
#include "sluice/store/memory/internal/pages.h"
#include "sluice/store/memory/internal/spin_lock.h"

namespace sluice::memory {

// A key, as far as the table knows it. The halves of the hash are independent, and so is which line
// from the fingerprint.
struct Place {
  explicit Place(const Hash128& key)
      : fingerprint(FingerprintOf(key.lo) != 0 ? FingerprintOf(key.lo) : kClassMask + 1),
        where(key.hi) {}

  std::uint64_t fingerprint;  // as in a tag, with the class bits 0; never 0
  std::uint64_t where;
};

// How many lines there are.
struct TableShape {
  std::uint64_t main_lines = 0;
  std::uint64_t stash_lines = 0;
  [[nodiscard]] std::uint64_t lines() const { return main_lines + stash_lines; }
};

class LineTable {
 public:
  // `max_keys` at a load of one half: two slots each, of which one in 256 lies in the stash. Where
  // the size of `like`, a table whose keys are to come here, goes into that a whole number of times
  // but for a few per cent, exactly so many times its lines: then each of its lines is cut evenly.
  static absl::StatusOr<LineTable> Open(std::uint64_t max_keys, const TableShape& like = {});

  LineTable(LineTable&&) = default;

  // The slot that holds the key under any class, or none. It may be another's the moment after.
  [[nodiscard]] Slot Find(const Place& place) const {
    if (const Slot slot = FindIn(First(place), place)) return slot;
    if (const Slot slot = FindIn(Second(place), place)) return slot;
    if (!stash_in_use()) return {};
    return FindIn(Stash(place), place);
  }

  // Fetches both lines. One in six or seven keys is in its second; to look at the first before the
  // second is asked for would cost each of these another wait, and all of them the look.
  void Prefetch(const Place& place) const {
    PrefetchToWrite(&First(place));
    PrefetchToWrite(&Second(place));
  }

  // What the key's slot in its first line holds just now, or 0; only good as a hint.
  [[nodiscard]] std::uint64_t WordInFirst(const Place& place) const {
    Seen seen;
    const Slot slot = FindIn(First(place), place);
    return slot && slot.Read(seen) ? seen.word : 0;
  }

  [[nodiscard]] Line& First(const Place& place) const {
    return lines_[Scale(place.where, main_lines_)];
  }
  [[nodiscard]] Line& Second(const Place& place) const {
    return lines_[Scale(place.where * kSecondMix, main_lines_)];
  }
  [[nodiscard]] Line& Stash(const Place& place) const {
    return lines_[main_lines_ + Scale(place.where * kStashMix, stash_lines_)];
  }
  [[nodiscard]] bool stash_in_use() const {
    return shared_->stash_in_use.load(std::memory_order_relaxed);
  }
  // To be called before the first key is put there.
  void UseStash() { shared_->stash_in_use.store(true, std::memory_order_relaxed); }

  // One of a fixed number of locks and counters, by the key.
  static constexpr std::size_t kStripes = 1024;
  // Held to insert a key or to convert its state: makes "it is not there" hold.
  [[nodiscard]] SpinLock& Lock(const Place& place) { return shared_->locks[StripeOf(place)].lock; }
  // All stripes in turn: whoever held one of them before has let go of it afterwards.
  void PassAllLocks();
  // What was given back so far on the keys of the stripe, in ticks; only grows.
  [[nodiscard]] std::atomic<std::uint64_t>& Undone(const Place& place) {
    return shared_->undone[StripeOf(place)];
  }

  // The main lines, then the stash.
  [[nodiscard]] std::span<Line> lines() const { return {lines_, main_lines_ + stash_lines_}; }
  [[nodiscard]] TableShape shape() const { return {main_lines_, stash_lines_}; }
  [[nodiscard]] std::size_t bytes() const { return pages_.size() + sizeof(Shared); }

  // A slot's number in the whole table, and back.
  [[nodiscard]] std::uint32_t NumberOf(const Slot& slot) const {
    return static_cast<std::uint32_t>((&slot.line() - lines_) * kSlotsPerLine + slot.index());
  }
  [[nodiscard]] Slot SlotOf(std::uint32_t number) const {
    return {lines_[number / kSlotsPerLine], static_cast<int>(number % kSlotsPerLine)};
  }

  // The line among `lines` for a number that is spread over 64 bits. Monotonic: a table twice as
  // large cuts each line in two (the snapshot leans on that).
  [[nodiscard]] static std::uint64_t Scale(std::uint64_t where, std::uint64_t lines) {
    return static_cast<std::uint64_t>((static_cast<Uint128>(where) * lines) >> 64);
  }

 private:
  // Odd numbers without a pattern: the upper half of the product depends on all bits of `where`.
  static constexpr std::uint64_t kSecondMix = 0x9e3779b97f4a7c15;
  static constexpr std::uint64_t kStashMix = 0xd6e8feb86659fd93;

  struct alignas(64) Stripe {
    SpinLock lock;
  };
  // What is written while others read lies apart from the lines.
  struct Shared {
    std::array<Stripe, kStripes> locks;
    std::array<std::atomic<std::uint64_t>, kStripes> undone{};
    alignas(64) std::atomic<bool> stash_in_use{false};
  };

  LineTable(Pages pages, const TableShape& shape);

  [[nodiscard]] static std::size_t StripeOf(const Place& place) {
    return (place.fingerprint >> kClassBits) % kStripes;
  }
  [[nodiscard]] static Slot FindIn(Line& line, const Place& place) {
    const unsigned mask = MatchMask(line, place.fingerprint);
    if (mask == 0) return {};
    return {line, std::countr_zero(mask)};
  }

  Pages pages_;
  Line* lines_;
  std::uint64_t main_lines_;
  std::uint64_t stash_lines_;
  std::unique_ptr<Shared> shared_;
};

}  // namespace sluice::memory
