#include "sluice/store/memory/internal/limit_registry.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "sluice/algorithm/state.h"

namespace sluice::memory {
namespace {

struct OwnTraits {
  LimitTraits operator()(const token_bucket::Limit& limit) const {
    return {.counts_undone = true, .ticks_per_ns = limit.ticks_per_ns, .interval = limit.interval};
  }
  LimitTraits operator()(const leaky_bucket::Limit& limit) const {
    return {.ticks_per_ns = limit.pace.ticks_per_ns, .interval = limit.pace.interval};
  }
  LimitTraits operator()(const fixed_window::Limit& limit) const {
    return {.phased = limit.per_key_offset};
  }
  LimitTraits operator()(const sliding_window_counter::Limit& limit) const {
    return {.phased = limit.per_key_offset};
  }
  template <typename Other>
  LimitTraits operator()(const Other&) const {
    return {};
  }
};

}  // namespace

Keeper KeeperOf(const Limit& limit) {
  if (std::holds_alternative<concurrency::Limit>(limit)) return Keeper::kConcurrency;
  if (std::holds_alternative<sliding_window_log::Limit>(limit)) return Keeper::kLog;
  if (std::holds_alternative<sliding_window_strict::Limit>(limit)) return Keeper::kStrict;
  return FitsWord(limit) ? Keeper::kWord : Keeper::kSmall;
}

LimitTraits TraitsOf(const Limit& limit) {
  LimitTraits traits = std::visit(OwnTraits{}, limit);
  traits.keeper = KeeperOf(limit);
  return traits;
}

absl::StatusOr<LimitId> LimitRegistry::Register(const Limit& limit) {
  const std::lock_guard lock(mutex_);
  LimitId id = FindEqual(limit);
  if (id == 0) {
    const absl::StatusOr<LimitId> added = NewId(limit);
    if (!added.ok()) return added;
    id = *added;
  }
  ++entries_[id].users;
  entries_[id].settling_since = kNotAsked;
  return id;
}

absl::StatusOr<LimitId> LimitRegistry::Adopt(const Limit& limit, Now now) {
  const std::lock_guard lock(mutex_);
  latest_ = std::max(latest_, now.steady);
  const LimitId id = FindEqual(limit);
  if (id != 0) return id;
  return NewId(limit);
}

void LimitRegistry::Release(LimitId id, Now now) {
  const std::lock_guard lock(mutex_);
  assert(id < kMaxClasses && entries_[id].users > 0);
  latest_ = std::max(latest_, now.steady);
  if (--entries_[id].users == 0) entries_[id].released_at = latest_;
}

void LimitRegistry::NoteTime(Now now) {
  const std::lock_guard lock(mutex_);
  latest_ = std::max(latest_, now.steady);
}

bool LimitRegistry::Settling(LimitId from, LimitId to, Now now) {
  constexpr Duration kChangeOfRules = std::chrono::seconds{10};
  if (entries_[from].users == 0) return false;
  const std::int64_t ns = now.steady.time_since_epoch().count();
  std::int64_t since = kNotAsked;
  if (entries_[to].settling_since.compare_exchange_strong(since, ns)) return true;
  return ns - since < kChangeOfRules.count();
}

std::size_t LimitRegistry::size() const {
  const std::lock_guard lock(mutex_);
  return first_unused_ - 1 - free_.size();
}

// A walk over all of them: tens of microseconds for thousands, at a reload.
LimitId LimitRegistry::FindEqual(const Limit& limit) const {
  for (std::size_t id = 1; id < first_unused_; ++id) {
    if (entries_[id].limit && *entries_[id].limit == limit) return static_cast<LimitId>(id);
  }
  return 0;
}

absl::StatusOr<LimitId> LimitRegistry::NewId(const Limit& limit) {
  std::size_t id = first_unused_;
  if (id < kMaxClasses) {
    ++first_unused_;
  } else if (!free_.empty() || FreeOverdue()) {
    id = free_.back();
    free_.pop_back();
  } else {
    return absl::ResourceExhaustedError(
        absl::StrCat("the memory store knows at most ", kMaxClasses - 1,
                     " different limits at a time, counting those that were replaced and may still "
                     "be alive in some key"));
  }
  traits_[id] = TraitsOf(limit);
  entries_[id].limit = std::make_unique<const Limit>(limit);
  entries_[id].released_at = latest_;
  return static_cast<LimitId>(id);
}

// Sweeps the table once for all numbers that are overdue: 2 ns a slot.
bool LimitRegistry::FreeOverdue() {
  const std::unique_lock no_readers(reuse_mutex_);
  Ids overdue;
  for (std::size_t id = 1; id < first_unused_; ++id) {
    const Entry& entry = entries_[id];
    if (!entry.limit || entry.users > 0) continue;
    const Duration lifetime = LifetimeOf(*entry.limit);
    if (latest_ - entry.released_at > lifetime) overdue.set(id);
  }
  if (overdue.none()) return false;
  sweep_(overdue);
  for (std::size_t id = 1; id < first_unused_; ++id) {
    if (!overdue.test(id)) continue;
    entries_[id].limit.reset();
    free_.push_back(static_cast<LimitId>(id));
  }
  return true;
}

}  // namespace sluice::memory
