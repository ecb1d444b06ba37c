// Sliding window log: every event is kept for one window, so the limit holds in every window.
//
//      t1   t2    t3 t4      now         an event at t counts until t + window, not at t + window
//   ---|----|--|--|--|--------|
//           |<-- window ----->|
//
//   allowed    <=> sum of the costs kept + cost <= limit
//   remaining   = limit - sum
//   retry_after = until so many of the oldest events have left that cost fits
//   reset_after = until the newest event has left
//
// Guarantee: never more than `limit` units in any window (with readings up to d behind: in any
// stretch of window - d). Because of the tick, below, a charge leaves up to one tick late.
//
// Ticks. An event's time is kept in 32 bits, in ticks of the smallest 1, 2 or 5 * 10^n ns that is
// >= window / 2^31, rounded up to the next tick, so that whole seconds stay exact. The window is
// rounded up to whole ticks too: at most 2^31 of them, so that a stamp is never ambiguous.
//
// Two forms: `unit` keeps a stamp for each unit (4 bytes each: for cost 1, though any cost works),
// `weighted` a stamp and a cost for each event (8 bytes each: where costs vary).
//
// Clock: steady. Where it steps back, events are dated as the newest before them, and none leaves
// sooner than without the step.
//
// Cost: 24 bytes a key and 4 or 8 for each event kept; constant time a call for cost 1, else linear
// in the events that must leave.
#pragma once

#include <algorithm>
#include <cassert>
#include <concepts>
#include <cstdint>

#include "absl/status/statusor.h"
#include "sluice/algorithm/decision.h"
#include "sluice/algorithm/internal/arithmetic.h"
#include "sluice/algorithm/internal/counted.h"
#include "sluice/base/time.h"

namespace sluice::sliding_window_log {

// More units than this would be memory without a bound: take the strict or the sliding counter.
inline constexpr std::int64_t kMaxLimit = 16'777'216;

struct Limit {
  std::uint64_t limit = 0;  // units in any window; 0 denies everything
  Duration window{0};       // >= 1 ms
  Duration tick{0};         // resolution of the stamps
  bool weighted = false;    // 8 bytes an event, with its cost
  friend bool operator==(const Limit&, const Limit&) = default;
};

// Errors: limit negative or above kMaxLimit; window as fixed_window.h.
[[nodiscard]] absl::StatusOr<Limit> MakeLimit(std::int64_t limit, Duration window, bool weighted);

struct Event {
  std::uint32_t stamp = 0;  // ticks, modulo 2^32
  std::uint32_t cost = 1;   // 1 in the unit form
  friend bool operator==(const Event&, const Event&) = default;
};

// Where the keeper has the events, oldest first. `latest` is the time of the newest event that was
// ever appended (Answer::latest): it tells a log that is wholly over from one with wrapped stamps.
template <typename L>
concept EventLog = requires(const L& log, std::uint64_t n) {
  { log.size() } -> std::convertible_to<std::uint64_t>;  // events kept
  { log.sum() } -> std::convertible_to<std::uint64_t>;   // of their costs
  { log.latest() } -> std::convertible_to<Time>;         // meaningless when empty
  { log.at(n) } -> std::convertible_to<Event>;           // the n-th oldest; near 0 is cheap
};

// What Undo needs beside.
template <typename L>
concept MutableEventLog = EventLog<L> && requires(L& log, std::uint64_t n, std::uint32_t cost) {
  log.erase(n);           // takes the n-th oldest out; those behind it move up
  log.set_cost(n, cost);  // weighted form only; cost >= 1
};

// What the keeper is to do with it, when it charges: drop the `expired` oldest events, append
// `event` (unit form: `event.cost` times), and keep `latest`. When it does not charge it may still
// drop the expired ones.
struct Answer {
  Decision decision;
  Receipt receipt;            // as if charged; its charged_at is free for the keeper's generation
  std::uint64_t expired = 0;  // how many of the oldest events are over
  Event event{};
  Time latest{};
};

// Decides on `cost` units at `now`. Reads the log, changes nothing.
template <EventLog L>
[[nodiscard]] Answer Decide(const Limit& limit, const L& log, std::uint64_t cost, Time now);

// As Decide, but with a charge whatever the room, up to `max_used` units in the log: answer.event
// says how many, 0 none. The verdict tells whether there was room, the rest how it is afterwards.
template <EventLog L>
[[nodiscard]] Answer Charge(const Limit& limit, const L& log, std::uint64_t cost, Time now,
                            std::uint64_t max_used);

// A lease: units that are charged now and spent by whoever took them at any time within `length`
// (at most half a window). As Decide, but the event is dated `length` ahead, and so counts from now
// on until a window after the latest moment at which it may be spent. Charges that come before that
// moment are dated as the newest event, as always: up to `length` later than they are.
//
// Guarantee: as above, whenever within its lease each unit is spent. A receipt of a lease is good
// for several undos, together of at most its units.
template <EventLog L>
[[nodiscard]] Answer DecideLease(const Limit& limit, const L& log, std::uint64_t cost, Time now,
                                 Duration length);

// Takes `units` of the receipt's event out of the log, while they are in it. Any event of the same
// stamp will do: they leave together, so there is no telling them apart. The keeper sees to it that
// the receipt is of this log and of this limit.
template <MutableEventLog L>
void Undo(const Limit& limit, L& log, const Receipt& receipt, std::uint64_t units, Time now);

// Units in the window that ends at `now`.
template <EventLog L>
[[nodiscard]] std::uint64_t Debt(const Limit& limit, const L& log, Time now);

// For a reload that changes the tick: an event of a log under `from`, whose latest is `latest`, as
// it is to be kept under `to`; never dated earlier. RescaleLatest gives the new log's latest.
// Events already over under `from` must be dropped before. Receipts are not carried over.
[[nodiscard]] Event Rescale(const Limit& from, Time latest, Event event, const Limit& to);
[[nodiscard]] Time RescaleLatest(const Limit& from, Time latest, const Limit& to);

// What follows is how.
namespace internal_log {

inline std::int64_t WindowTicks(const Limit& limit) {
  return internal::CeilDiv(limit.window.count(), limit.tick.count());
}
inline std::int64_t TickDown(const Limit& limit, Time at) {
  return internal::FloorDiv(at.time_since_epoch().count(), limit.tick.count());
}
inline std::int64_t TickUp(const Limit& limit, Time at) {
  return internal::CeilDiv(at.time_since_epoch().count(), limit.tick.count());
}
// The instant of a tick; saturates at the end of time.
inline Time TimeOf(const Limit& limit, std::int64_t tick) {
  std::int64_t ns = 0;
  if (__builtin_mul_overflow(tick, limit.tick.count(), &ns)) {
    ns = tick < 0 ? std::numeric_limits<std::int64_t>::min() : internal::kMaxInt64;
  }
  return Time{Duration{ns}};
}

// The log as it stands at some moment, with stamps as whole numbers again.
template <EventLog L>
class Window {
 public:
  // `ahead`: by how much an event would be dated later than now.
  Window(const Limit& limit, const L& log, Time now, Duration ahead = Duration{0})
      : limit_(limit),
        log_(log),
        now_(std::clamp(now, Time{-kEnd}, Time{kEnd})),
        size_(log.size()),
        live_sum_(log.sum()) {
    if (size_ == 0) {
      newest_ = TickUp(limit, now_ + ahead);
      return;
    }
    newest_ = TickUp(limit, log.latest());
    over_ = TickDown(limit, now_) - WindowTicks(limit);
    if (newest_ <= over_) {  // a log that is over as a whole is not walked through
      expired_ = size_;
      live_sum_ = 0;
    }
    while (expired_ < size_ && TickOf(log_.at(expired_)) <= over_) {
      live_sum_ -= log_.at(expired_).cost;
      ++expired_;
    }
    newest_ = std::max(newest_, TickUp(limit, now_ + ahead));
  }

  [[nodiscard]] std::uint64_t size() const { return size_; }
  [[nodiscard]] std::uint64_t expired() const { return expired_; }
  [[nodiscard]] std::uint64_t sum() const { return live_sum_; }
  // The tick at which an event is dated now: never before one that is in the log.
  [[nodiscard]] std::int64_t charge_tick() const { return newest_; }

  [[nodiscard]] std::int64_t TickOf(const Event& event) const {
    const std::int64_t newest = reference();
    return newest - static_cast<std::uint32_t>(static_cast<std::uint32_t>(newest) - event.stamp);
  }

  // Until an event of that tick has left.
  [[nodiscard]] Duration LeavesAfter(std::int64_t tick) const {
    const Time leaves = TimeOf(limit_, tick + WindowTicks(limit_));
    return Duration{
        std::max<std::int64_t>(0, internal::SaturatedSub(leaves.time_since_epoch().count(),
                                                         now_.time_since_epoch().count()))};
  }

  // Until the oldest `need` units have left.
  [[nodiscard]] Duration LeavesAfterUnits(std::uint64_t need) const {
    if (!limit_.weighted) return LeavesAfter(TickOf(log_.at(expired_ + need - 1)));
    std::uint64_t leaving = 0;
    std::uint64_t n = expired_;
    while (n + 1 < size_ && leaving + log_.at(n).cost < need) leaving += log_.at(n++).cost;
    return LeavesAfter(TickOf(log_.at(n)));
  }

 private:
  // 146 years from the clock's zero, where time stands still: a window more still fits 64 bits.
  static constexpr Duration kEnd{std::int64_t{1} << 62};

  [[nodiscard]] std::int64_t reference() const { return TickUp(limit_, log_.latest()); }

  const Limit& limit_;
  const L& log_;
  Time now_;
  std::uint64_t size_;
  std::uint64_t live_sum_;
  std::uint64_t expired_ = 0;
  std::int64_t newest_ = 0;
  std::int64_t over_ = 0;  // events of this tick and before are over
};

template <EventLog L>
Answer AnswerOf(const Limit& limit, const L& log, const Window<L>& window, Verdict verdict,
                std::uint64_t cost, std::uint64_t charged) {
  const std::uint64_t sum = window.sum() + charged;
  Answer answer{
      .decision = {.verdict = verdict, .remaining = internal::MinusOrZero(limit.limit, sum)},
      .receipt = {},
      .expired = window.expired(),
      .event = {.stamp = static_cast<std::uint32_t>(window.charge_tick()),
                .cost = static_cast<std::uint32_t>(charged)},
      .latest = TimeOf(limit, window.charge_tick())};
  if (charged > 0) {
    answer.receipt = {.before = window.charge_tick(), .units = charged};
    answer.decision.reset_after = window.LeavesAfter(window.charge_tick());
  } else if (window.sum() > 0) {
    answer.decision.reset_after = window.LeavesAfter(window.TickOf(log.at(window.size() - 1)));
  }
  if (verdict == Verdict::kNever) answer.decision.retry_after = kNever;
  if (verdict == Verdict::kLimited) {
    const std::uint64_t need = sum - (limit.limit - cost);
    answer.decision.retry_after = need <= window.sum() ? window.LeavesAfterUnits(need)
                                                       : window.LeavesAfter(window.charge_tick());
  }
  return answer;
}

}  // namespace internal_log

template <EventLog L>
Answer Decide(const Limit& limit, const L& log, std::uint64_t cost, Time now) {
  const internal_log::Window<L> window(limit, log, now);
  const Verdict verdict = internal::Judge(limit.limit, window.sum(), cost);
  return internal_log::AnswerOf(limit, log, window, verdict, cost,
                                verdict == Verdict::kAllowed ? cost : 0);
}

template <EventLog L>
Answer DecideLease(const Limit& limit, const L& log, std::uint64_t cost, Time now,
                   Duration length) {
  assert(length >= Duration{0} && length <= limit.window);
  const internal_log::Window<L> window(limit, log, now, length);
  const Verdict verdict = internal::Judge(limit.limit, window.sum(), cost);
  return internal_log::AnswerOf(limit, log, window, verdict, cost,
                                verdict == Verdict::kAllowed ? cost : 0);
}

template <EventLog L>
Answer Charge(const Limit& limit, const L& log, std::uint64_t cost, Time now,
              std::uint64_t max_used) {
  // What fits the 32 bits of an event, and of a sum of several.
  constexpr std::uint64_t kMaxUsed = 4 * kMaxLimit;
  const internal_log::Window<L> window(limit, log, now);
  const Verdict verdict = internal::Judge(limit.limit, window.sum(), cost);
  const std::uint64_t charged =
      internal::Charged(verdict, window.sum(), cost, std::min(max_used, kMaxUsed));
  return internal_log::AnswerOf(limit, log, window, verdict, cost, charged);
}

template <MutableEventLog L>
void Undo(const Limit& limit, L& log, const Receipt& receipt, std::uint64_t units, Time now) {
  const internal_log::Window<L> window(limit, log, now);
  std::uint64_t low = window.expired();
  std::uint64_t high = window.size();
  while (low < high) {  // the first event that is not older than the receipt's
    const std::uint64_t middle = low + (high - low) / 2;
    if (window.TickOf(log.at(middle)) < receipt.before) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  std::uint64_t left = std::min(units, receipt.units);
  while (left > 0 && low < log.size() && window.TickOf(log.at(low)) == receipt.before) {
    const Event event = log.at(low);
    if (event.cost > left) {
      log.set_cost(low, static_cast<std::uint32_t>(event.cost - left));
      return;
    }
    left -= event.cost;
    log.erase(low);
  }
}

template <EventLog L>
std::uint64_t Debt(const Limit& limit, const L& log, Time now) {
  return internal_log::Window<L>(limit, log, now).sum();
}

}  // namespace sluice::sliding_window_log
