#include "sluice/algorithm/testing/trace.h"

#include <algorithm>

namespace sluice::testing {

Now At(Duration at) { return {Time{at}, WallTime{at}}; }
Now After(Now now, Duration by) { return {now.steady + by, now.wall + by}; }

bool Trace::Step() {
  Wait();
  if (random_.Chance(options_.undo_per_cent)) {
    UndoOne();
    return false;
  }
  return Spend();
}

void Trace::Wait() {
  const std::int64_t stride = options_.stride.count();
  if (random_.Chance(options_.back_per_cent)) {
    now_ = After(latest_, Duration{-random_.Between(1, kMostBack * stride)});
    return;
  }
  const std::uint64_t kind = random_.Below(10);
  if (kind < 3) return;  // a burst at one instant
  if (kind < 4) {
    now_ = After(now_, Duration{random_.Between(1, 3)});
  } else if (kind < 9) {
    now_ = After(now_, Duration{random_.Between(1, stride)});
  } else {
    now_ = After(now_, Duration{random_.Between(1, 20 * stride)});
  }
  if (now_.steady > latest_.steady) latest_ = now_;
}

void Trace::UndoOne() {
  std::vector<std::size_t> open;
  for (std::size_t i = 0; i < spendings_.size(); ++i) {
    if (spendings_[i].receipt.units > 0) open.push_back(i);
  }
  if (open.empty()) return;
  Spending& spending =
      spendings_[options_.forward_undo ? open[random_.Below(open.size())] : open.back()];
  if (!options_.forward_undo && &spending != &spendings_.back()) return;
  const std::uint64_t units =
      random_.Chance(60) ? spending.receipt.units : 1 + random_.Below(spending.receipt.units);
  key_.Undo(spending.receipt, units, now_);
  spending.units -= units;
  // A receipt is good for one undo.
  spending.receipt.units = 0;
}

bool Trace::Spend() {
  const std::uint64_t cost = 1 + random_.Below(options_.most_cost);
  const PureKey::Answer answer = key_.Acquire(cost, now_);
  if (!answer.decision.allowed()) return false;
  spendings_.push_back({now_, latest_, answer.decision.delay, cost, answer.receipt});
  return true;
}

void Trace::ForgetReceipts() {
  for (Spending& spending : spendings_) spending.receipt.units = 0;
}

}  // namespace sluice::testing
