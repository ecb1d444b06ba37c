// What holds for every algorithm (decision.h), on random traces: the wait is exact, a denial is
// free, a look is what a call then answers, an undo restores, an idle key may be dropped.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "sluice/algorithm/testing/trace.h"

namespace sluice {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::After;
using testing::PureKey;
using testing::Trace;
using testing::TraceOptions;

struct Case {
  std::string name;
  Limit limit;
  Duration stride;
  std::uint64_t most_cost;
};

void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

std::vector<Case> Cases() {
  return {
      {"TokenBucket3PerSecond", token_bucket::MakeLimit({3, seconds{1}}, 5).value(),
       milliseconds{500}, 6},
      {"TokenBucket333PerMinute", token_bucket::MakeLimit({333, seconds{60}}, 20).value(),
       milliseconds{500}, 21},
      {"TokenBucket10MPerSecond", token_bucket::MakeLimit({10'000'000, seconds{1}}, 9).value(),
       Duration{300}, 10},
      {"TokenBucket700MPerSecond", token_bucket::MakeLimit({700'000'000, seconds{1}}, 50).value(),
       Duration{30}, 51},
      {"LeakyBucket", leaky_bucket::MakeLimit({7, seconds{1}}, 9, seconds{2}).value(),
       milliseconds{400}, 11},
      {"LeakyBucketWithoutQueue",
       leaky_bucket::MakeLimit({333, seconds{60}}, 0, seconds{2}).value(), milliseconds{100}, 2},
      {"FixedWindow", fixed_window::MakeLimit(9, seconds{10}).value(), seconds{2}, 10},
      {"FixedWindowOffset",
       fixed_window::MakeLimit(9, seconds{10}, fixed_window::Align::kClock, seconds{3}).value(),
       seconds{2}, 10},
      {"FixedWindowFirstHit",
       fixed_window::MakeLimit(9, seconds{10}, fixed_window::Align::kFirstHit).value(), seconds{2},
       10},
      {"SlidingCounter", sliding_window_counter::MakeLimit(9, seconds{10}).value(), seconds{2}, 10},
      {"SlidingCounterOddOffset",
       sliding_window_counter::MakeLimit(7, seconds{1}, milliseconds{333}).value(),
       milliseconds{200}, 8},
      {"CalendarDay", calendar::MakeLimit(9, calendar::Period::kDay, "America/Santiago").value(),
       hours{5}, 10},
      {"CalendarMonth", calendar::MakeLimit(9, calendar::Period::kMonth, "Asia/Tokyo").value(),
       hours{24 * 6}, 10},
      {"Strict", sliding_window_strict::MakeLimit(9, seconds{10}, 7).value(), seconds{2}, 10},
      {"StrictOne", sliding_window_strict::MakeLimit(9, seconds{10}, 1).value(), seconds{2}, 10},
      {"LogUnit", sliding_window_log::MakeLimit(9, seconds{61}, false).value(), seconds{12}, 10},
      {"LogWeighted", sliding_window_log::MakeLimit(9, seconds{61}, true).value(), seconds{12}, 10},
      {"Concurrency", concurrency::MakeLimit(9, seconds{5}).value(), seconds{1}, 10},
      {"ConcurrencyForEver", concurrency::MakeLimit(9, Duration{0}).value(), seconds{1}, 10},
  };
}

constexpr Now kStart{Time{hours{1000}}, WallTime{hours{24 * 365 * 54}}};

class RulesTest : public ::testing::TestWithParam<Case> {
 protected:
  static constexpr int kTraces = 150;
  static constexpr int kSteps = 100;

  [[nodiscard]] TraceOptions Options(int back_per_cent) const {
    const bool leaky = std::holds_alternative<leaky_bucket::Limit>(GetParam().limit);
    return {.start = kStart,
            .stride = GetParam().stride,
            .most_cost = GetParam().most_cost,
            .undo_per_cent = 15,
            .back_per_cent = back_per_cent,
            .forward_undo = !leaky};
  }

  // visit(trace, seed) after every step of many traces.
  void ForEachStep(int back_per_cent, const std::function<void(Trace&)>& visit) const {
    for (int seed = 0; seed < kTraces && !HasFailure(); ++seed) {
      SCOPED_TRACE("seed " + std::to_string(seed));
      Trace trace(GetParam().limit, Options(back_per_cent), static_cast<std::uint64_t>(seed));
      for (int i = 0; i < kSteps && !HasFailure(); ++i) {
        trace.Step();
        visit(trace);
      }
    }
  }

  // A cost to ask for now: mostly small ones, sometimes the whole capacity or more.
  [[nodiscard]] std::uint64_t ACost(Trace& trace) const {
    const std::uint64_t capacity = CapacityOf(GetParam().limit);
    if (trace.random().Chance(10)) return capacity;
    if (trace.random().Chance(5)) return capacity + 1 + trace.random().Below(1000);
    return 1 + trace.random().Below(GetParam().most_cost);
  }
};

TEST_P(RulesTest, TheSameCallPassesAfterItsWaitAndNotANanosecondEarlier) {
  int waits = 0;
  ForEachStep(5, [&](Trace& trace) {
    const std::uint64_t cost = ACost(trace);
    const Decision decision = trace.key().Look(cost, trace.now());
    if (decision.allowed()) {
      ASSERT_EQ(decision.retry_after, Duration{0});
      return;
    }
    if (cost > CapacityOf(GetParam().limit)) {
      ASSERT_EQ(decision.verdict, Verdict::kNever);
      ASSERT_EQ(decision.retry_after, kNever);
      return;
    }
    ASSERT_EQ(decision.verdict, Verdict::kLimited);
    if (decision.retry_after == kUnknown) return;  // concurrency without a time to live
    ++waits;
    ASSERT_GT(decision.retry_after, Duration{0});
    const Now then = After(trace.now(), decision.retry_after);
    ASSERT_TRUE(trace.key().Look(cost, then).allowed()) << "cost " << cost;
    ASSERT_FALSE(trace.key().Look(cost, After(then, Duration{-1})).allowed()) << "cost " << cost;
  });
  EXPECT_TRUE(waits > 500 || GetParam().name == "ConcurrencyForEver") << waits;
}

TEST_P(RulesTest, NothingIsOwedAfterTheResetAndSomethingANanosecondEarlier) {
  ForEachStep(5, [&](Trace& trace) {
    const Decision decision = trace.key().Look(0, trace.now());
    if (trace.key().Debt(trace.now()) == 0) return;
    if (decision.reset_after == kUnknown) return;
    const Now then = After(trace.now(), decision.reset_after);
    ASSERT_EQ(trace.key().Debt(then), 0U);
    ASSERT_EQ(trace.key().Look(0, then).remaining, CapacityOf(GetParam().limit));
    ASSERT_GT(trace.key().Debt(After(then, Duration{-1})), 0U);
  });
}

TEST_P(RulesTest, WhatRemainsCanBeSpentAndOneMoreCanNot) {
  ForEachStep(5, [&](Trace& trace) {
    const std::uint64_t remaining = trace.key().Look(0, trace.now()).remaining;
    ASSERT_LE(remaining, CapacityOf(GetParam().limit));
    if (remaining > 0) {
      ASSERT_TRUE(trace.key().Look(remaining, trace.now()).allowed());
    }
    // In a queue it is the place that counts, not the cost; where the interval is rounded up, one
    // request may be a little cheaper than so many of one unit.
    if (std::holds_alternative<leaky_bucket::Limit>(GetParam().limit)) return;
    const auto* bucket = std::get_if<token_bucket::Limit>(&GetParam().limit);
    if (bucket != nullptr && bucket->units > 1) return;
    ASSERT_FALSE(trace.key().Look(remaining + 1, trace.now()).allowed());
  });
}

TEST_P(RulesTest, ALookIsWhatACallThenAnswersAndChangesNothing) {
  ForEachStep(5, [&](Trace& trace) {
    const std::uint64_t cost = trace.random().Chance(10) ? 0 : ACost(trace);
    const PureKey before = trace.key();
    const Decision look = trace.key().Look(cost, trace.now());
    ASSERT_TRUE(trace.key().SameState(before));
    PureKey copy = trace.key();
    const PureKey::Answer answer = copy.Acquire(cost, trace.now());
    ASSERT_EQ(answer.decision, look);
    ASSERT_EQ(answer.receipt.units, answer.decision.allowed() ? cost : 0);
  });
}

TEST_P(RulesTest, ADenialIsFree) {
  // A second key lives through the same trace without the calls that are denied.
  for (int seed = 0; seed < kTraces && !HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    testing::Random random(static_cast<std::uint64_t>(seed));
    PureKey hammered(GetParam().limit);
    PureKey spared(GetParam().limit);
    Now now = kStart;
    for (int i = 0; i < kSteps && !HasFailure(); ++i) {
      now = After(now, Duration{random.Between(0, GetParam().stride.count())});
      const std::uint64_t cost = 1 + random.Below(GetParam().most_cost + 1);
      const Decision decision = hammered.Acquire(cost, now).decision;
      if (decision.allowed()) {
        ASSERT_EQ(spared.Acquire(cost, now).decision, decision);
      } else {
        ASSERT_EQ(spared.Look(cost, now), decision);
      }
    }
  }
}

TEST_P(RulesTest, AnIdleKeyMayBeDropped) {
  for (int seed = 0; seed < kTraces && !HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    testing::Random random(static_cast<std::uint64_t>(seed));
    PureKey kept(GetParam().limit);
    PureKey dropped(GetParam().limit);
    Now now = kStart;
    int drops = 0;
    for (int i = 0; i < kSteps && !HasFailure(); ++i) {
      const std::int64_t stride = GetParam().stride.count();
      now = After(now, Duration{random.Between(0, random.Chance(10) ? 30 * stride : stride)});
      if (kept.Debt(now) == 0) {
        dropped = PureKey(GetParam().limit);
        ++drops;
      }
      const std::uint64_t cost = 1 + random.Below(GetParam().most_cost);
      const Decision decision = kept.Acquire(cost, now).decision;
      ASSERT_EQ(dropped.Acquire(cost, now).decision, decision);
    }
    EXPECT_GT(drops, 0);
  }
}

TEST_P(RulesTest, UndoneAtOnceItIsAsIfNothingHadBeenCharged) {
  int undone = 0;
  ForEachStep(0, [&](Trace& trace) {
    const PureKey before = trace.key();
    PureKey key = before;
    std::vector<Receipt> receipts;
    for (int n = 0; n < 4; ++n) {
      const Receipt receipt = key.Acquire(ACost(trace), trace.now()).receipt;
      if (receipt.units > 0) receipts.push_back(receipt);
    }
    // From a queue only the last can leave; from everything else anyone, in parts too.
    const bool leaky = std::holds_alternative<leaky_bucket::Limit>(GetParam().limit);
    if (leaky) std::reverse(receipts.begin(), receipts.end());
    if (!leaky)
      std::rotate(receipts.begin(), receipts.begin() + receipts.size() / 2, receipts.end());
    for (const Receipt& receipt : receipts) {
      key.Undo(receipt, receipt.units, trace.now());
      ++undone;
    }
    for (const std::uint64_t cost : {std::uint64_t{0}, std::uint64_t{1}, GetParam().most_cost}) {
      for (const int strides : {0, 1, 3, 10}) {
        const Now then = After(trace.now(), strides * GetParam().stride);
        ASSERT_EQ(key.Look(cost, then), before.Look(cost, then)) << cost << " after " << strides;
      }
    }
  });
  EXPECT_GT(undone, 500);
}

TEST_P(RulesTest, ACostOfNothingAlwaysPassesAndKeepsNothing) {
  ForEachStep(5, [&](Trace& trace) {
    PureKey key = trace.key();
    const PureKey::Answer answer = key.Acquire(0, trace.now());
    ASSERT_EQ(answer.decision.verdict, Verdict::kAllowed);
    ASSERT_EQ(answer.decision.retry_after, Duration{0});
    ASSERT_EQ(answer.receipt.units, 0U);
    ASSERT_TRUE(key.SameState(trace.key()));
  });
}

TEST_P(RulesTest, AForcedChargeIsWaitedForAndStopsAtItsBound) {
  if (std::holds_alternative<concurrency::Limit>(GetParam().limit)) return;  // has no debts
  ForEachStep(0, [&](Trace& trace) {
    PureKey key = trace.key();
    const std::uint64_t before = key.Debt(trace.now());
    const std::uint64_t most = 2 * CapacityOf(GetParam().limit);
    const std::uint64_t cost = trace.random().Chance(10) ? ~std::uint64_t{0} : ACost(trace);
    const Decision look = key.Look(cost, trace.now());
    const PureKey::Answer answer = key.Force(cost, trace.now(), most);
    ASSERT_EQ(answer.decision.verdict, look.verdict);
    ASSERT_LE(key.Debt(trace.now()), std::max(before, most));
    ASSERT_LE(answer.receipt.units, cost);
    ASSERT_GE(key.Debt(trace.now()), before);
    const Decision now_left = key.Look(0, trace.now());
    ASSERT_EQ(answer.decision.remaining, now_left.remaining);
    ASSERT_EQ(answer.decision.reset_after, now_left.reset_after);
    if (look.verdict != Verdict::kLimited) return;
    const Now then = After(trace.now(), answer.decision.retry_after);
    ASSERT_TRUE(key.Look(cost, then).allowed());
    ASSERT_FALSE(key.Look(cost, After(then, Duration{-1})).allowed());
  });
}

TEST_P(RulesTest, NothingIsOwedALifetimeAfterTheLastCharge) {
  const Duration lifetime = LifetimeOf(GetParam().limit);
  if (lifetime == Duration{0}) return;  // slots without a time to live
  ForEachStep(0, [&](Trace& trace) {
    PureKey key = trace.key();
    ASSERT_EQ(key.Debt(After(trace.now(), lifetime)), 0U);
    if (std::holds_alternative<concurrency::Limit>(GetParam().limit)) return;
    key.Force(ACost(trace), trace.now(), 2 * CapacityOf(GetParam().limit));
    ASSERT_EQ(key.Debt(After(trace.now(), lifetime)), 0U);
  });
}

INSTANTIATE_TEST_SUITE_P(Algorithms, RulesTest, ::testing::ValuesIn(Cases()),
                         [](const auto& row) { return row.param.name; });

}  // namespace
}  // namespace sluice
