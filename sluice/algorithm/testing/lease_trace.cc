#include "sluice/algorithm/testing/lease_trace.h"

#include <algorithm>

namespace sluice::testing {

LeaseTrace::LeaseTrace(const Limit& limit, const LeaseTraceOptions& options, std::uint64_t seed,
                       LeasedKey* key)
    : limit_(limit), options_(options), random_(seed), key_(limit), elsewhere_(key) {}

PureKey::Answer LeaseTrace::Acquire(std::uint64_t cost) {
  return elsewhere_ ? elsewhere_->Charge(cost, TrueNow()) : key_.Acquire(cost, TrueNow());
}

void LeaseTrace::Undo(const Charged& charged, std::uint64_t units) {
  if (elsewhere_) {
    elsewhere_->Undo(charged.receipt, charged.lease, units, TrueNow());
  } else {
    key_.Undo(charged.receipt, units, TrueNow());
  }
}

bool LeaseTrace::Step() {
  const std::size_t before = spent_.size();
  while (steps_ < kSteps || !to_come_.empty()) {
    // What is to come happens at its own time, or together with what is done now.
    const bool idle = steps_ >= kSteps || (!to_come_.empty() && random_.Chance(30));
    if (!idle) {
      if (++steps_ == kSteps / 2 && options_.reload_to) Reload(*options_.reload_to);
      const std::int64_t stride = options_.stride.count();
      const std::uint64_t kind = random_.Below(10);
      Duration next = now_;
      if (kind >= 3) next += Duration{random_.Between(1, kind < 9 ? stride : 20 * stride)};
      if (to_come_.empty() || to_come_.begin()->first > Time{next}) {
        now_ = next;
        Do();
        if (spent_.size() > before) return true;
        continue;
      }
    }
    const auto first = to_come_.begin();
    const Event event = first->second;
    now_ = std::max(now_, first->first.time_since_epoch());
    to_come_.erase(first);
    if (Happen(event)) return true;
  }
  return false;
}

// A shared store converts buckets; of logs and strict counters it keeps what is owed, as of one
// time.
void LeaseTrace::Reload(const Limit& to) {
  if (std::holds_alternative<token_bucket::Limit>(to)) {
    key_.Convert(to, TrueNow());
  } else {
    PureKey converted(to);
    const std::uint64_t owed = std::min(key_.Debt(TrueNow()), CapacityOf(to));
    if (owed > 0) converted.Owe(owed, TrueNow(), key_.SpentUntil(TrueNow()));
    key_ = converted;
  }
  limit_ = to;
  reloaded_ = Time{now_};
  for (Charged& charged : charged_) charged.before_reload = true;
}

void LeaseTrace::Do() {
  const std::uint64_t kind = random_.Below(100);
  const std::uint64_t cost = 1 + random_.Below(options_.most_cost);
  if (kind < 40) {
    Charge(cost);
  } else if (kind < 70) {
    Lease(cost);
  } else {
    GiveBack();
  }
}

void LeaseTrace::Charge(std::uint64_t cost) {
  const PureKey::Answer answer = Acquire(cost);
  if (!answer.decision.allowed()) return;
  charged_.push_back({.receipt = answer.receipt, .left = cost, .spent_as = spent_.size()});
  spent_.push_back({Time{now_}, cost, answer.receipt.before});
}

void LeaseTrace::Lease(std::uint64_t cost) {
  const Duration length{random_.Between(1, options_.length.count())};
  const PureKey::Answer answer = options_.charged_when_taken ? Acquire(cost)
                                 : elsewhere_ ? elsewhere_->Lease(cost, TrueNow(), length)
                                              : key_.Lease(cost, TrueNow(), length);
  if (!answer.decision.allowed()) return;
  ++leases_;
  // The question was on its way for some time, and the answer will be.
  const Duration there{random_.Chance(50) ? 0 : random_.Between(0, length.count() / 4)};
  const Duration back{random_.Chance(50) ? 0 : random_.Between(0, length.count() / 4)};
  const Duration good_for = LeaseGoodFor(limit_, answer.decision, length);
  charged_.push_back({.receipt = answer.receipt,
                      .lease = true,
                      .good_until = Time{now_ - there + good_for},
                      .left = cost});
  Plan(charged_.size() - 1, Time{now_ + back});
}

// When it will be spent: at random moments, often the first or the last.
void LeaseTrace::Plan(std::size_t lease, Time from) {
  const Time last = charged_[lease].good_until - Duration{1};
  if (from > last) return;
  for (std::uint64_t i = random_.Below(4); i > 0; --i) {
    Time at = from + Duration{random_.Between(0, (last - from).count())};
    if (random_.Chance(50)) at = random_.Chance(70) ? last : from;
    to_come_.emplace(at, Event{lease, 1 + random_.Below(options_.most_cost), /*undo=*/false});
  }
}

// A part or all of something; it may be on its way for a while, and come long after a lease's end.
void LeaseTrace::GiveBack() {
  std::vector<std::size_t> open;
  for (std::size_t i = 0; i < charged_.size(); ++i) {
    if (charged_[i].left > 0 && !charged_[i].before_reload) open.push_back(i);
  }
  if (open.empty()) return;
  const std::size_t which = random_.Chance(50) ? open.back() : open[random_.Below(open.size())];
  Charged& charged = charged_[which];
  std::uint64_t units = random_.Chance(50) ? charged.left : 1 + random_.Below(charged.left);
  if (charged.lease) {
    charged.left -= units;
    const Duration way{random_.Chance(50) ? 0 : random_.Between(0, 3 * options_.length.count())};
    to_come_.emplace(Time{now_ + way}, Event{which, units, /*undo=*/true});
  } else {  // good for one
    charged.left = 0;
    Undo(charged, units);
    spent_[charged.spent_as].units -= units;
  }
}

// True: units were spent.
bool LeaseTrace::Happen(const Event& event) {
  Charged& charged = charged_[event.charged];
  if (event.undo) {
    if (!charged.before_reload) Undo(charged, event.units);
    return false;
  }
  const std::uint64_t units = std::min(event.units, charged.left);
  if (units == 0) return false;
  charged.left -= units;
  spent_.push_back({Time{now_}, units, charged.receipt.before});
  return true;
}

}  // namespace sluice::testing
