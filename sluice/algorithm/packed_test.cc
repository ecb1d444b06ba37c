#include "sluice/algorithm/packed.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "sluice/algorithm/state.h"
#include "sluice/algorithm/testing/trace.h"

namespace sluice {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;
using testing::After;
using testing::Random;

constexpr Now kStart{Time{hours{1000}}, WallTime{hours{24 * 365 * 54}}};

struct Row {
  Limit limit;
  Duration stride;
};

std::vector<Row> Rows() {
  return {
      {token_bucket::MakeLimit({3, seconds{1}}, 5).value(), milliseconds{500}},
      {token_bucket::MakeLimit({333, seconds{60}}, 5).value(), milliseconds{500}},
      {leaky_bucket::MakeLimit({7, seconds{1}}, 4, seconds{2}).value(), milliseconds{300}},
      {fixed_window::MakeLimit(5, seconds{10}).value(), seconds{2}},
      {fixed_window::MakeLimit(5, seconds{10}, fixed_window::Align::kClock, seconds{9}).value(),
       seconds{2}},
      {sliding_window_counter::MakeLimit(5, seconds{10}).value(), seconds{2}},
  };
}

// Both forms through one trace of charges, forced charges, undos, reloads and clock steps.
void CompareWithSmallState(const std::vector<Row>& rows, std::size_t first, std::uint64_t seed) {
  Random random(seed);
  const Limit* limit = &rows[first].limit;
  Duration stride = rows[first].stride;
  SmallState state;
  std::uint64_t word = 0;
  std::uint64_t undone = 0;
  std::vector<Receipt> receipts;
  Now now = kStart;
  for (int i = 0; i < 150 && !::testing::Test::HasFailure(); ++i) {
    now = After(
        now, Duration{random.Between(random.Chance(10) ? -stride.count() : 0, 2 * stride.count())});
    const std::uint64_t cost = random.Below(7);
    const std::uint64_t op = random.Below(10);
    if (op == 0 && !receipts.empty()) {
      const Receipt receipt = receipts[random.Below(receipts.size())];
      const SmallUndone small = Undo(*limit, state, receipt, receipt.units, now, undone);
      const WordUndone packed = UndoWord(*limit, word, receipt, receipt.units, now, undone);
      ASSERT_EQ(packed.ticks, small.ticks);
      state = small.next;
      word = packed.next;
      undone += small.ticks;
    } else if (op == 1) {
      const std::uint64_t most = 2 * CapacityOf(*limit);
      const auto small = Charge(*limit, state, cost, now, most);
      const auto packed = ChargeWord(*limit, word, cost, now, most);
      ASSERT_EQ(packed.decision, small.decision);
      ASSERT_EQ(packed.receipt.units, small.receipt.units);
      state = small.next;
      word = packed.next;
    } else if (op == 2 && random.Chance(20)) {
      const Row& next = rows[random.Below(rows.size())];
      state = Convert(*limit, state, next.limit, now);
      word = ConvertWord(*limit, word, next.limit, now);
      limit = &next.limit;
      stride = next.stride;
      receipts.clear();
    } else {
      const auto small = Decide(*limit, state, cost, now);
      const auto packed = DecideWord(*limit, word, cost, now);
      ASSERT_EQ(packed.decision, small.decision);
      ASSERT_EQ(packed.receipt.units, small.receipt.units);
      ASSERT_EQ(packed.receipt.before, small.receipt.before);
      ASSERT_EQ(packed.receipt.charged_at, small.receipt.charged_at);
      ASSERT_EQ(packed.damaged, small.damaged);
      ASSERT_TRUE(packed.receipt.units > 0 || packed.next == word);
      state = small.next;
      word = packed.next;
      receipts.push_back(small.receipt);
      receipts.back().undone_before = undone;
    }
    ASSERT_EQ(DebtOfWord(*limit, word, now), DebtOf(*limit, state, now));
  }
}

TEST(PackedTest, WordsAnswerAsTheStatesTheyStandFor) {
  const std::vector<Row> rows = Rows();
  for (std::size_t first = 0; first < rows.size(); ++first) {
    for (std::uint64_t seed = 0; seed < 300 && !HasFailure(); ++seed) {
      SCOPED_TRACE("row " + std::to_string(first) + ", seed " + std::to_string(seed));
      CompareWithSmallState(rows, first, seed);
    }
  }
}

TEST(PackedTest, WhatFitsIsWhatTheHeaderSays) {
  const auto fixed = [](std::int64_t limit, Duration window) {
    return FitsWord(fixed_window::MakeLimit(limit, window).value());
  };
  const auto counter = [](std::int64_t limit, Duration window) {
    return FitsWord(sliding_window_counter::MakeLimit(limit, window).value());
  };
  EXPECT_TRUE(fixed((1LL << 35) - 1, minutes{1}));
  EXPECT_FALSE(fixed(1LL << 35, minutes{1}));
  EXPECT_TRUE(fixed((1LL << 29) - 1, seconds{1}));
  EXPECT_FALSE(fixed(1LL << 29, seconds{1}));
  EXPECT_TRUE(counter((1LL << 17) - 1, minutes{1}));
  EXPECT_FALSE(counter(1LL << 17, minutes{1}));
  EXPECT_TRUE(counter((1LL << 14) - 1, seconds{1}));
  EXPECT_FALSE(counter(1LL << 14, seconds{1}));
  EXPECT_FALSE(fixed(INT64_MAX, hours{876'600}));

  EXPECT_TRUE(FitsWord(token_bucket::MakeLimit({1, seconds{1}}, 1).value()));
  EXPECT_TRUE(FitsWord(leaky_bucket::MakeLimit({1, seconds{1}}, 1, seconds{1}).value()));
  EXPECT_FALSE(
      FitsWord(fixed_window::MakeLimit(1, seconds{1}, fixed_window::Align::kFirstHit).value()));
  EXPECT_FALSE(FitsWord(calendar::MakeLimit(1, calendar::Period::kDay, "UTC").value()));
  EXPECT_FALSE(FitsWord(sliding_window_strict::MakeLimit(1, seconds{1}).value()));
  EXPECT_FALSE(FitsWord(sliding_window_log::MakeLimit(1, seconds{1}, false).value()));
  EXPECT_FALSE(FitsWord(concurrency::MakeLimit(1, Duration{0}).value()));
}

TEST(PackedTest, TheLargestLimitThatFitsCountsToItsEnd) {
  const Limit limits[] = {
      fixed_window::MakeLimit((1LL << 35) - 1, minutes{1}).value(),
      sliding_window_counter::MakeLimit((1LL << 17) - 1, minutes{1}).value(),
  };
  // The first and the last second of WallTime, and one between.
  for (const WallTime wall : {WallTime{}, kStart.wall, WallTime::max()}) {
    for (const Limit& limit : limits) {
      const Now now{kStart.steady, wall};
      const auto all = DecideWord(limit, 0, CapacityOf(limit), now);
      EXPECT_TRUE(all.decision.allowed());
      EXPECT_EQ(DebtOfWord(limit, all.next, now), CapacityOf(limit));
      EXPECT_EQ(DecideWord(limit, all.next, 1, now).decision.verdict, Verdict::kLimited);
      const auto forced = ChargeWord(limit, all.next, ~std::uint64_t{0}, now, ~std::uint64_t{0});
      EXPECT_GE(DebtOfWord(limit, forced.next, now), 2 * CapacityOf(limit));
      EXPECT_EQ(forced.receipt.units, DebtOfWord(limit, forced.next, now) - CapacityOf(limit));
    }
  }
}

TEST(PackedTest, BeforeTheEpochTimeStandsStill) {
  const Limit limit = fixed_window::MakeLimit(2, seconds{10}).value();
  // A key's phase may move the first instants before 1970: two windows are there.
  const Now just_before{Time{}, WallTime{-seconds{10}}};
  const auto step = DecideWord(limit, 0, 2, just_before);
  EXPECT_TRUE(step.decision.allowed());
  EXPECT_EQ(DecideWord(limit, step.next, 1, just_before).decision.verdict, Verdict::kLimited);
  EXPECT_EQ(DecideWord(limit, step.next, 1, {Time{}, WallTime::min()}).decision.verdict,
            Verdict::kLimited);
  EXPECT_TRUE(DecideWord(limit, step.next, 1, {Time{}, WallTime{}}).decision.allowed());
}

TEST(PackedTest, PhasesSpreadOverTheWindowAndShiftItsEdges) {
  fixed_window::Limit window = fixed_window::MakeLimit(5, seconds{10}).value();
  EXPECT_EQ(PhaseOf(window, 0xffffffff), Duration{0});
  window.per_key_offset = true;
  EXPECT_EQ(PhaseOf(window, 0), Duration{0});
  EXPECT_EQ(PhaseOf(window, 1U << 31), Duration{seconds{5}});
  EXPECT_LT(PhaseOf(window, 0xffffffff), Duration{seconds{10}});
  EXPECT_GT(PhaseOf(window, 0xffffffff), Duration{milliseconds{9'999}});

  // A phase of 5 s has its edges at 5, 15, 25 s.
  const Limit limit = window;
  const auto at = [&](int second) {
    return Now{Time{}, WallTime{seconds{second}} - PhaseOf(limit, 1U << 31)};
  };
  const auto all = DecideWord(limit, 0, 5, at(14));
  EXPECT_EQ(all.decision.reset_after, Duration{seconds{1}});
  EXPECT_TRUE(DecideWord(limit, all.next, 5, at(15)).decision.allowed());

  sliding_window_counter::Limit counter = sliding_window_counter::MakeLimit(5, seconds{10}).value();
  counter.per_key_offset = true;
  EXPECT_EQ(PhaseOf(counter, 1U << 31), Duration{seconds{5}});
  fixed_window::Limit first_hit =
      fixed_window::MakeLimit(5, seconds{10}, fixed_window::Align::kFirstHit).value();
  first_hit.per_key_offset = true;  // has no edges to move
  EXPECT_EQ(PhaseOf(first_hit, 1U << 31), Duration{0});
  EXPECT_EQ(PhaseOf(token_bucket::MakeLimit({1, seconds{1}}, 1).value(), 77), Duration{0});
}

TEST(PackedTest, AStateFarAheadIsDamageAndIsDropped) {
  const Limit limits[] = {fixed_window::MakeLimit(5, seconds{10}).value(),
                          sliding_window_counter::MakeLimit(5, seconds{10}).value()};
  for (const Limit& limit : limits) {
    const std::uint64_t ahead = WordOwing(limit, 5, After(kStart, seconds{20}));
    const auto step = DecideWord(limit, ahead, 1, kStart);
    EXPECT_TRUE(step.damaged);
    EXPECT_TRUE(step.decision.allowed());
    EXPECT_EQ(DebtOfWord(limit, ahead, kStart), 0U);
    // One window ahead is a clock that stepped back.
    const std::uint64_t next = WordOwing(limit, 5, After(kStart, seconds{10}));
    EXPECT_FALSE(DecideWord(limit, next, 1, kStart).damaged);
    EXPECT_EQ(DecideWord(limit, next, 1, kStart).decision.verdict, Verdict::kLimited);
  }
}

// A word from nowhere (memory gone wrong, a foreign file) may be anything; the sanitizers watch.
TEST(PackedTest, NoWordWhateverItHoldsIsATrap) {
  std::vector<Limit> limits;
  for (const Row& row : Rows()) limits.push_back(row.limit);
  limits.push_back(token_bucket::MakeLimit({1, hours{24 * 365}}, 3).value());
  limits.push_back(fixed_window::MakeLimit((1LL << 35) - 1, minutes{1}).value());
  limits.push_back(sliding_window_counter::MakeLimit((1LL << 17) - 1, minutes{1}).value());
  Random random(1);
  const auto any = [&random] {  // of any magnitude, either sign
    const std::uint64_t bits = random.Below(~std::uint64_t{0}) >> random.Below(64);
    return random.Chance(30) ? ~bits : bits;
  };
  for (int i = 0; i < 20'000; ++i) {
    const Limit& limit = limits[random.Below(limits.size())];
    const Now now{Time{Duration{static_cast<std::int64_t>(any())}},
                  WallTime{Duration{static_cast<std::int64_t>(any())}}};
    const std::uint64_t word = any();
    const auto step = DecideWord(limit, word, any(), now);
    ASSERT_LE(step.decision.remaining, CapacityOf(limit));
    ASSERT_GE(step.decision.retry_after, Duration{0});
    ASSERT_GE(step.decision.reset_after, Duration{0});
    const auto forced = ChargeWord(limit, word, any(), now, any());
    ASSERT_GE(forced.decision.reset_after, Duration{0});
    const Receipt receipt{.before = static_cast<std::int64_t>(any()),
                          .charged_at = static_cast<std::int64_t>(any()),
                          .undone_before = any(),
                          .units = any()};
    const std::uint64_t debt = DebtOfWord(limit, word, now);
    const WordUndone undone = UndoWord(limit, word, receipt, any(), now, any());
    ASSERT_LE(DebtOfWord(limit, undone.next, now), debt);
    const Limit& to = limits[random.Below(limits.size())];
    static_cast<void>(ConvertWord(limit, word, to, now));
  }
}

}  // namespace
}  // namespace sluice
