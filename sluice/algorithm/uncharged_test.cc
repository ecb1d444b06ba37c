// A charge that is taken back is told as a look is, on random traces under every algorithm.
#include "sluice/algorithm/uncharged.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <vector>

#include "sluice/algorithm/testing/pure_key.h"
#include "sluice/algorithm/testing/trace.h"

namespace sluice {
namespace {

using namespace std::chrono_literals;
using testing::PureKey;
using testing::Random;

struct Case {
  Limit limit;
  bool exact = true;  // reset_after, also where something else is owed
};

std::vector<Case> Cases() {
  return {
      {*token_bucket::MakeLimit({5, 1s}, 8)},
      {*token_bucket::MakeLimit({7919, 1s}, 20)},
      {*token_bucket::MakeLimit({333, 1min}, 3)},
      {*leaky_bucket::MakeLimit({10, 1s}, 5, 1s)},
      {*leaky_bucket::MakeLimit({333, 1min}, 3, 10s)},
      {*fixed_window::MakeLimit(6, 1s)},
      {*fixed_window::MakeLimit(6, 1s, fixed_window::Align::kFirstHit)},
      {*calendar::MakeLimit(1000, calendar::Period::kDay, "Europe/Berlin")},
      {*concurrency::MakeLimit(5, 1s)},
      {*sliding_window_counter::MakeLimit(6, 1s), false},
      {*sliding_window_strict::MakeLimit(6, 1s, 10), false},
      {*sliding_window_log::MakeLimit(6, 1s, /*weighted=*/true), false},
  };
}

// As a store tells a claim that it does not charge.
Decision Looked(const PureKey& key, std::uint64_t cost, Now now) {
  Decision decision = key.Look(cost, now);
  const Decision rest = key.Look(0, now);
  decision.remaining = rest.remaining;
  decision.reset_after = rest.reset_after;
  return decision;
}

void Compare(const Case& tested, std::uint64_t seed, int* charges) {
  Random random(seed);
  PureKey key(tested.limit);
  Now now = testing::At(1000h);
  for (int step = 0; step < 4000; ++step) {
    now = testing::After(now, Duration{random.Between(0, 400'000'000)});
    const std::uint64_t cost = 1 + random.Below(3);
    const Decision expected = Looked(key, cost, now);
    const bool owes = key.Look(0, now).remaining < CapacityOf(tested.limit);
    const PureKey::Answer answer = key.Acquire(cost, now);
    if (answer.receipt.units == 0) continue;
    ++*charges;
    Decision told = Uncharged(tested.limit, answer.decision, answer.receipt);
    if (!tested.exact && owes) {
      EXPECT_GE(told.reset_after, expected.reset_after);
      EXPECT_LE(told.reset_after, expected.reset_after + WindowOf(tested.limit) + 100ms);
      told.reset_after = expected.reset_after;
    }
    EXPECT_EQ(told.verdict, expected.verdict);
    EXPECT_EQ(told.remaining, expected.remaining);
    EXPECT_EQ(told.retry_after, expected.retry_after);
    EXPECT_EQ(told.reset_after, expected.reset_after);
    EXPECT_EQ(told.delay, expected.delay);
    if (random.Chance(30)) key.Undo(answer.receipt, answer.receipt.units, now);
    if (::testing::Test::HasFailure()) return;
  }
}

TEST(Uncharged, IsWhatALookIsTold) {
  const std::vector<Case> cases = Cases();
  for (std::size_t i = 0; i < cases.size(); ++i) {
    SCOPED_TRACE(std::string(AlgorithmName(cases[i].limit)) + " " + std::to_string(i));
    int charges = 0;
    for (std::uint64_t seed = 1; seed <= 5 && !HasFailure(); ++seed) {
      Compare(cases[i], seed, &charges);
    }
    EXPECT_GT(charges, 1000);
  }
}

}  // namespace
}  // namespace sluice
