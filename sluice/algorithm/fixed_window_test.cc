#include "sluice/algorithm/fixed_window.h"

#include <gtest/gtest.h>

#include <string>

namespace sluice::fixed_window {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::seconds;

Now At(Duration at) { return {Time{at}, WallTime{at}}; }

TEST(FixedWindowTest, FirstHitWindowsRunOnTheSteadyClock) {
  const Limit limit = MakeLimit(2, seconds{10}, Align::kFirstHit).value();
  const State state = Decide(limit, {}, 2, {Time{seconds{100}}, WallTime{}}).next;
  // The wall clock jumps; nothing happens.
  const Decision decision =
      Decide(limit, state, 1, {Time{seconds{104}}, WallTime{hours{99}}}).decision;
  EXPECT_EQ(decision.verdict, Verdict::kLimited);
  EXPECT_EQ(decision.retry_after, Duration{seconds{6}});
}

TEST(FixedWindowTest, BeforeItsFirstHitAWindowHasNothingToReset) {
  const Limit limit = MakeLimit(2, seconds{10}, Align::kFirstHit).value();
  EXPECT_EQ(Decide(limit, {}, 0, At(seconds{5})).decision.reset_after, Duration{0});
  EXPECT_EQ(Decide(limit, {}, 3, At(seconds{5})).decision.reset_after, Duration{0});
  EXPECT_EQ(Decide(limit, {}, 1, At(seconds{5})).decision.reset_after, Duration{seconds{10}});
}

TEST(FixedWindowTest, AFirstHitFarAheadIsDamage) {
  const Limit limit = MakeLimit(2, seconds{10}, Align::kFirstHit).value();
  const State state = Decide(limit, {}, 2, At(seconds{100})).next;
  const Step<State> near = Decide(limit, state, 1, At(seconds{95}));
  EXPECT_EQ(near.decision.retry_after, Duration{seconds{15}});
  EXPECT_FALSE(near.damaged);
  const Step<State> far = Decide(limit, state, 1, At(seconds{89}));
  EXPECT_TRUE(far.decision.allowed());
  EXPECT_TRUE(far.damaged);
  EXPECT_EQ(Debt(limit, state, At(seconds{89})), 0U);
}

TEST(FixedWindowTest, UndoIsForTheWindowThatWasCharged) {
  const Limit limit = MakeLimit(5, seconds{10}).value();
  const Step<State> first = Decide(limit, {}, 3, At(seconds{5}));
  const Step<State> second = Decide(limit, first.next, 4, At(seconds{15}));
  EXPECT_EQ(Undo(limit, second.next, first.receipt, 3, At(seconds{15})), second.next);
  EXPECT_EQ(
      Debt(limit, Undo(limit, second.next, second.receipt, 9, At(seconds{16})), At(seconds{16})),
      0U);  // never more than was charged
  EXPECT_EQ(
      Debt(limit, Undo(limit, second.next, second.receipt, 1, At(seconds{16})), At(seconds{16})),
      3U);
}

TEST(FixedWindowTest, AReloadToAnotherWindowCountsThere) {
  const Limit tens = MakeLimit(5, seconds{10}).value();
  const Limit minutes = MakeLimit(3, seconds{60}).value();
  const State used = Decide(tens, {}, 5, At(seconds{25})).next;
  const State converted = Convert(tens, used, minutes, At(seconds{26}));
  EXPECT_EQ(Debt(minutes, converted, At(seconds{26})), 3U);
  EXPECT_EQ(Decide(minutes, converted, 1, At(seconds{26})).decision.retry_after,
            Duration{seconds{34}});
  EXPECT_EQ(Convert(tens, used, minutes, At(seconds{30})), State{});
}

TEST(FixedWindowTest, EveryRefusalNamesTheValue) {
  const struct {
    absl::StatusOr<Limit> made;
    const char* says;
  } rows[] = {
      {MakeLimit(-1, seconds{1}), "got -1"},
      {MakeLimit(1, Duration{0}), "window must be positive, got 0 ns"},
      {MakeLimit(1, Duration{-5}), "got -5 ns"},
      {MakeLimit(1, Duration{999'999}), "at least 1 ms, got 999999 ns"},
      {MakeLimit(1, hours{900'000}), "at most 100 years"},
      {MakeLimit(1, seconds{1}, Align::kClock, seconds{1}), "less than the window of 1000000000"},
      {MakeLimit(1, seconds{1}, Align::kClock, Duration{-1}), "got -1 ns"},
      {MakeLimit(1, seconds{1}, Align::kFirstHit, milliseconds{1}), "aligned to the clock"},
  };
  for (const auto& row : rows) {
    EXPECT_EQ(row.made.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_NE(row.made.status().ToString().find(row.says), std::string::npos) << row.made.status();
  }
}

}  // namespace
}  // namespace sluice::fixed_window
