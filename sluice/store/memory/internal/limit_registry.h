// The limits that a store knows, by number. The number is the class in a slot's tag, so that
// anybody can read any slot: is it over, what does it owe, under which numbers was it written.
//
// Therefore a number outlives its limit's users: a released one comes back only when nothing that
// was written under it can matter any more (LifetimeOf after the release), and the last traces of
// it are swept out of the table before.
//
// Reading needs no lock where the number came from a claim, or from a slot while one of the table's
// stripe locks is held (or a Reading): Register() lets all stripe locks pass between the sweep and
// the change of a number's limit.
#pragma once

#include <array>
#include <atomic>
#include <bitset>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "sluice/algorithm/limit.h"
#include "sluice/algorithm/packed.h"
#include "sluice/base/time.h"
#include "sluice/store/memory/internal/line.h"
#include "sluice/store/store.h"

namespace sluice::memory {

// Who keeps the states of a limit.
enum class Keeper : std::uint8_t {
  kWord,         // the slot's word is the state
  kSmall,        // one of the small states that does not fit a word: in a block
  kStrict,       // counters of sub-windows: in blocks
  kLog,          // events: in blocks
  kConcurrency,  // the table of concurrency slots
};
[[nodiscard]] Keeper KeeperOf(const Limit& limit);

// What the hot paths ask of a limit, without a visit to the variant.
struct LimitTraits {
  Keeper keeper = Keeper::kWord;
  bool phased = false;            // per-key edges: now moves back by the key's phase
  bool counts_undone = false;     // token bucket
  std::uint8_t ticks_per_ns = 0;  // > 0: the word is an instant in such ticks (token, leaky bucket)
  std::int64_t interval = 1;      // of one unit, in these ticks
};
[[nodiscard]] LimitTraits TraitsOf(const Limit& limit);

class LimitRegistry {
 public:
  using Ids = std::bitset<kMaxClasses>;
  // Takes everything that was written under `ids` out of the store.
  using Sweep = std::function<void(const Ids& ids)>;

  explicit LimitRegistry(Sweep sweep) : sweep_(std::move(sweep)) {}

  // As Store::Register and Store::Release.
  absl::StatusOr<LimitId> Register(const Limit& limit);
  void Release(LimitId id, Now now);

  // A limit from a snapshot: known, but as if released just now.
  absl::StatusOr<LimitId> Adopt(const Limit& limit, Now now);

  // Time goes on; only a clock that somebody looked at can tell that a lifetime is over.
  void NoteTime(Now now);

  [[nodiscard]] const Limit& limit(LimitId id) const { return *entries_[id].limit; }
  [[nodiscard]] const LimitTraits& traits(LimitId id) const { return traits_[id]; }

  // While held, no number gets another limit. For readers of the whole table.
  using Reading = std::shared_lock<std::shared_mutex>;
  [[nodiscard]] Reading Read() const { return Reading(reuse_mutex_); }

  // Whether two rule sets may be in force at once, the one with `from` and the one with `to`:
  // `from` is still in use, and the first time that this was asked after the last Register(to) is
  // no longer ago than a change of rules should take. A state must not lose anything on its way
  // from one limit to the other then: it may go back and forth.
  [[nodiscard]] bool Settling(LimitId from, LimitId to, Now now);

  [[nodiscard]] std::size_t size() const;

 private:
  static constexpr std::int64_t kNotAsked = std::numeric_limits<std::int64_t>::min();
  struct Entry {
    std::unique_ptr<const Limit> limit;  // null: the number was never used, or is free again
    std::atomic<std::uint64_t> users{0};
    Time released_at{};
    std::atomic<std::int64_t> settling_since{kNotAsked};
  };

  // The number of an equal limit, or 0.
  [[nodiscard]] LimitId FindEqual(const Limit& limit) const;
  absl::StatusOr<LimitId> NewId(const Limit& limit);
  bool FreeOverdue();

  const Sweep sweep_;
  mutable std::mutex mutex_;               // over all but what readers read
  mutable std::shared_mutex reuse_mutex_;  // taken after mutex_
  std::array<Entry, kMaxClasses> entries_;
  std::array<LimitTraits, kMaxClasses> traits_;
  std::vector<LimitId> free_;
  std::size_t first_unused_ = 1;  // 0 is no limit
  Time latest_{Duration::min()};
};

}  // namespace sluice::memory
