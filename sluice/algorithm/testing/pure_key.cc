#include "sluice/algorithm/testing/pure_key.h"

#include <algorithm>
#include <utility>

namespace sluice::testing {
namespace {

using StrictLimit = sliding_window_strict::Limit;
using LogLimit = sliding_window_log::Limit;

}  // namespace

PureKey::PureKey(Limit limit) : limit_(std::move(limit)) {
  if (const auto* strict = std::get_if<StrictLimit>(&limit_)) {
    counters_.counts.resize(sliding_window_strict::LeasedCounts(*strict));
  }
}

std::uint64_t PureKey::InFlight(Now now) const {
  std::uint64_t units = 0;
  for (const auto& taken : slots_.taken) {
    if (taken.slot.end > now.steady) units += taken.slot.units;
  }
  return units;
}

Decision PureKey::DecideOnSlots(const concurrency::Limit& limit, std::uint64_t cost,
                                Now now) const {
  const std::uint64_t in_flight = InFlight(now);
  Decision decision = concurrency::Decide(limit, in_flight, cost);
  if (decision.verdict == Verdict::kLimited) {
    std::vector<concurrency::Slot> live;
    for (const auto& taken : slots_.taken) {
      if (taken.slot.end > now.steady) live.push_back(taken.slot);
    }
    decision.retry_after = concurrency::RetryAfter(limit, in_flight, cost, live, now.steady);
  }
  return decision;
}

PureKey::Answer PureKey::AcquireSlots(const concurrency::Limit& limit, std::uint64_t cost,
                                      Now now) {
  std::erase_if(slots_.taken, [&](const auto& taken) { return taken.slot.end <= now.steady; });
  Answer answer{.decision = DecideOnSlots(limit, cost, now), .receipt = {}};
  if (!answer.decision.allowed() || cost == 0) return answer;
  const bool for_ever = limit.slot_ttl == Duration{0} || now.steady > Time::max() - limit.slot_ttl;
  const Time end = for_ever ? Time::max() : now.steady + limit.slot_ttl;
  answer.receipt = {.before = next_slot_++, .units = cost};
  const auto place =
      std::upper_bound(slots_.taken.begin(), slots_.taken.end(), end,
                       [](Time time, const auto& taken) { return time < taken.slot.end; });
  slots_.taken.insert(place, {answer.receipt.before, {end, cost}});
  return answer;
}

PureKey::Answer PureKey::DecideOn(std::uint64_t cost, Now now) const {
  if (const auto* strict = std::get_if<StrictLimit>(&limit_)) {
    const auto answer = sliding_window_strict::Decide(*strict, {counters_.newest, counters_.counts},
                                                      cost, now.steady);
    return {answer.decision, answer.receipt};
  }
  if (const auto* log = std::get_if<LogLimit>(&limit_)) {
    const auto answer = sliding_window_log::Decide(*log, log_, cost, now.steady);
    return {answer.decision, answer.receipt};
  }
  if (const auto* slots = std::get_if<concurrency::Limit>(&limit_)) {
    return {DecideOnSlots(*slots, cost, now), {}};
  }
  const auto step = Decide(limit_, small_, cost, now);
  return {step.decision, step.receipt, step.damaged};
}

Decision PureKey::Look(std::uint64_t cost, Now now) const { return DecideOn(cost, now).decision; }

PureKey::Answer PureKey::Acquire(std::uint64_t cost, Now now) {
  if (const auto* slots = std::get_if<concurrency::Limit>(&limit_)) {
    return AcquireSlots(*slots, cost, now);
  }
  if (HasSmallState(limit_)) {
    const auto step = Decide(limit_, small_, cost, now);
    KeepSmall(step.next, now);
    Answer answer{step.decision, step.receipt, step.damaged};
    answer.receipt.undone_before = undone_;
    return answer;
  }
  const Answer answer = DecideOn(cost, now);
  if (answer.receipt.units == 0) return answer;
  if (const auto* log = std::get_if<LogLimit>(&limit_)) {
    log_.Keep(*log, sliding_window_log::Decide(*log, log_, cost, now.steady));
    return answer;
  }
  return Force(cost, now, CapacityOf(limit_));
}

// With a state that is written goes a lease end that is over.
void PureKey::KeepSmall(const SmallState& next, Now now) {
  if (next == small_) return;
  small_ = next;
  const auto* bucket = std::get_if<token_bucket::Limit>(&limit_);
  if (bucket != nullptr && lease_end_ <= token_bucket::TicksAt(*bucket, now.steady)) lease_end_ = 0;
}

PureKey::Answer PureKey::DecideLeaseOn(std::uint64_t cost, Now now, Duration length) const {
  if (const auto* strict = std::get_if<StrictLimit>(&limit_)) {
    const auto answer = sliding_window_strict::DecideLease(
        *strict, {counters_.newest, counters_.counts}, cost, now.steady, length);
    return {answer.decision, answer.receipt};
  }
  if (const auto* log = std::get_if<LogLimit>(&limit_)) {
    const auto answer = sliding_window_log::DecideLease(*log, log_, cost, now.steady, length);
    return {answer.decision, answer.receipt};
  }
  const auto step = sluice::DecideLease(limit_, small_, cost, now, length);
  return {step.decision, step.receipt, step.damaged};
}

Decision PureKey::LookLease(std::uint64_t cost, Now now, Duration length) const {
  return DecideLeaseOn(cost, now, length).decision;
}

PureKey::Answer PureKey::Lease(std::uint64_t cost, Now now, Duration length) {
  Answer answer = DecideLeaseOn(cost, now, length);
  if (answer.receipt.units == 0) return answer;
  if (const auto* strict = std::get_if<StrictLimit>(&limit_)) {
    (void)sliding_window_strict::ChargeLease(*strict, {counters_.newest, counters_.counts}, cost,
                                             now.steady, length);
  } else if (const auto* log = std::get_if<LogLimit>(&limit_)) {
    log_.Keep(*log, sliding_window_log::DecideLease(*log, log_, cost, now.steady, length));
  } else {
    KeepSmall(sluice::DecideLease(limit_, small_, cost, now, length).next, now);
    answer.receipt.undone_before = undone_;
    if (std::holds_alternative<token_bucket::Limit>(limit_)) {
      lease_end_ = std::max(lease_end_, answer.receipt.charged_at);
    }
  }
  return answer;
}

PureKey::Answer PureKey::Force(std::uint64_t cost, Now now, std::uint64_t max_debt) {
  if (const auto* strict = std::get_if<StrictLimit>(&limit_)) {
    const auto answer = sliding_window_strict::Charge(*strict, {counters_.newest, counters_.counts},
                                                      cost, now.steady, max_debt);
    return {answer.decision, answer.receipt};
  }
  if (const auto* log = std::get_if<LogLimit>(&limit_)) {
    const auto answer = sliding_window_log::Charge(*log, log_, cost, now.steady, max_debt);
    log_.Keep(*log, answer);
    return {answer.decision, answer.receipt};
  }
  const auto step = Charge(limit_, small_, cost, now, max_debt);
  KeepSmall(step.next, now);
  Answer answer{step.decision, step.receipt, step.damaged};
  answer.receipt.undone_before = undone_;
  return answer;
}

bool PureKey::Undo(const Receipt& receipt, std::uint64_t units, Now now) {
  if (std::holds_alternative<concurrency::Limit>(limit_)) {
    std::erase_if(slots_.taken, [&](const auto& taken) { return taken.slot.end <= now.steady; });
    return std::erase_if(slots_.taken,
                         [&](const auto& taken) { return taken.id == receipt.before; }) > 0;
  }
  if (const auto* strict = std::get_if<StrictLimit>(&limit_)) {
    sliding_window_strict::Undo(*strict, {counters_.newest, counters_.counts}, receipt, units,
                                now.steady);
  } else if (const auto* log = std::get_if<LogLimit>(&limit_)) {
    sliding_window_log::Undo(*log, log_, receipt, units, now.steady);
  } else {
    const auto [next, ticks] =
        sluice::UndoLeased(limit_, small_, receipt, units, now, undone_, lease_end_);
    KeepSmall(next, now);
    undone_ += ticks;
  }
  return true;
}

void PureKey::Owe(std::uint64_t units, Now now, Time until) {
  const auto* bucket = std::get_if<token_bucket::Limit>(&limit_);
  const bool can_tell = bucket != nullptr || std::holds_alternative<StrictLimit>(limit_) ||
                        std::holds_alternative<LogLimit>(limit_);
  const Duration ahead = can_tell ? std::max(until - now.steady, Duration{0}) : Duration{0};
  const Now then{now.steady + ahead, now.wall + ahead};
  (void)Force(units, then, units);
  if (bucket != nullptr && ahead > Duration{0}) {
    lease_end_ = token_bucket::TicksAt(*bucket, then.steady);
  }
}

void PureKey::Convert(const Limit& to, Now now) {
  const auto* bucket = std::get_if<token_bucket::Limit>(&limit_);
  const auto* other_bucket = std::get_if<token_bucket::Limit>(&to);
  if (bucket != nullptr && other_bucket != nullptr) {
    const auto* state = std::get_if<token_bucket::State>(&small_);
    const auto leased = token_bucket::ConvertLeased(
        *bucket, {state == nullptr ? token_bucket::State{} : *state, lease_end_}, *other_bucket,
        now.steady);
    small_ = leased.state;
    lease_end_ = leased.lease_end;
  } else if (HasSmallState(limit_) && HasSmallState(to)) {
    small_ = sluice::Convert(limit_, small_, to, now);
    lease_end_ = 0;
  } else if (const auto* log = std::get_if<LogLimit>(&limit_)) {
    log_.Rescale(*log, std::get<LogLimit>(to), now.steady);
  } else if (const auto* strict = std::get_if<StrictLimit>(&to)) {
    const std::uint64_t debt = Debt(now);
    const auto& from = std::get<StrictLimit>(limit_);
    if (from.step != strict->step || from.sub_windows != strict->sub_windows) {
      PureKey fresh(to);
      const Time latest = now.steady + LongestLease(limit_);
      if (debt > 0) fresh.Owe(debt, now, std::min(SpentUntil(now), latest));
      counters_ = fresh.counters_;
    }
  }
  limit_ = to;
}

std::uint64_t PureKey::Debt(Now now) const {
  if (std::holds_alternative<concurrency::Limit>(limit_)) return InFlight(now);
  if (const auto* strict = std::get_if<StrictLimit>(&limit_)) {
    return sliding_window_strict::Debt(*strict, {counters_.newest, counters_.counts}, now.steady);
  }
  if (const auto* log = std::get_if<LogLimit>(&limit_)) {
    return sliding_window_log::Debt(*log, log_, now.steady);
  }
  return DebtOf(limit_, small_, now);
}

Time PureKey::SpentUntil(Now now) const {
  Time until = now.steady;
  if (const auto* bucket = std::get_if<token_bucket::Limit>(&limit_)) {
    until = Time{Duration{lease_end_ / bucket->ticks_per_ns}};
  } else if (const auto* strict = std::get_if<StrictLimit>(&limit_)) {
    // Whole microseconds, as a store of texts has them.
    if (Debt(now) > 0) {
      until = Time{(counters_.newest + 1) * strict->step - std::chrono::microseconds{1}};
    }
  } else if (std::holds_alternative<LogLimit>(limit_) && log_.size() > 0) {
    until = log_.latest();
  }
  return std::max(until, now.steady);
}

bool PureKey::SameState(const PureKey& other) const {
  return small_ == other.small_ && counters_ == other.counters_ && log_ == other.log_ &&
         slots_.taken == other.slots_.taken && lease_end_ == other.lease_end_;
}

}  // namespace sluice::testing
