// The same key under other numbers: what was used stays used.

#include <array>
#include <atomic>
#include <thread>

#include "tests/conformance/store_under_test.h"

namespace sluice::conformance {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

TEST_P(StoreConformance, AnotherLimitKeepsWhatWasUsed) {
  const struct {
    std::string name;
    Limit from;
    Limit to;
    std::uint64_t used;
    std::uint64_t left;
  } rows[] = {
      {"raised", FixedWindow(5, minutes{1}), FixedWindow(20, minutes{1}), 5, 15},
      {"lowered", FixedWindow(100, minutes{1}), FixedWindow(10, minutes{1}), 1, 9},
      {"lowered below what was used", FixedWindow(100, minutes{1}), FixedWindow(10, minutes{1}), 50,
       0},
      {"bucket", TokenBucket(10, hours{1}, 10), TokenBucket(20, hours{1}, 20), 4, 16},
      {"log", SlidingLog(10, minutes{1}), SlidingLog(20, minutes{1}), 10, 10},
      {"log lowered", SlidingLog(20, minutes{1}), SlidingLog(10, minutes{1}), 15, 0},
      {"strict", StrictCounter(10, minutes{1}), StrictCounter(30, minutes{1}), 10, 20},
      {"calendar", Calendar(10, calendar::Period::kDay), Calendar(30, calendar::Period::kDay), 10,
       20},
      {"sliding counter", SlidingCounter(10, minutes{1}), SlidingCounter(12, minutes{1}), 4, 8},
      {"queue", LeakyBucket(1, minutes{1}, 9, hours{1}), LeakyBucket(1, minutes{1}, 19, hours{1}),
       4, 16},
      {"beyond what fits a word", FixedWindow(10, minutes{1}),
       FixedWindow(std::int64_t{1} << 40, minutes{1}), 10, (std::uint64_t{1} << 40) - 10},
      {"and back", FixedWindow(std::int64_t{1} << 40, minutes{1}), FixedWindow(100, minutes{1}), 10,
       90},
      {"bucket to window", TokenBucket(10, hours{1}, 10), FixedWindow(10, hours{1}), 4, 6},
      {"window to log", FixedWindow(10, hours{1}), SlidingLog(10, hours{1}), 4, 6},
      {"log to bucket", SlidingLog(10, hours{1}), TokenBucket(10, hours{1}, 10), 4, 6},
      {"log to strict", SlidingLog(10, hours{1}), StrictCounter(10, hours{1}), 4, 6},
      {"strict to log with costs", StrictCounter(10, hours{1}), SlidingLog(10, hours{1}, true), 4,
       6},
      {"calendar to counter", Calendar(10, calendar::Period::kDay), SlidingCounter(10, hours{24}),
       4, 6},
      {"other number of sub-windows", StrictCounter(10, minutes{1}, 6),
       StrictCounter(10, minutes{1}, 60), 7, 3},
      {"strict, beyond 32 bits", StrictCounter(10, minutes{1}),
       StrictCounter(std::int64_t{1} << 40, minutes{1}), 7, (std::uint64_t{1} << 40) - 7},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.name);
    const Registered& from = Register(row.from);
    ASSERT_TRUE(Ask(row.name, from, row.used).decision.allowed());
    const Registered& to = Register(row.to);
    store().Release(from.id, clock_.Read());
    EXPECT_EQ(Remaining(row.name, to), row.left);
    const bool more = row.left > 0;
    EXPECT_EQ(Ask(row.name, to).decision.allowed(), more);
    EXPECT_EQ(Remaining(row.name, to), more ? row.left - 1 : 0);
  }
}

TEST_P(StoreConformance, FiftyDeniedCallsDoNotEatARaisedQuota) {
  const Registered& ten = Register(FixedWindow(10, hours{1}));
  int allowed = 0;
  for (int i = 0; i < 50; ++i) allowed += Ask("ann", ten).decision.allowed() ? 1 : 0;
  EXPECT_EQ(allowed, 10);
  const Registered& twenty = Register(FixedWindow(20, hours{1}));
  store().Release(ten.id, clock_.Read());
  allowed = 0;
  for (int i = 0; i < 11; ++i) allowed += Ask("ann", twenty).decision.allowed() ? 1 : 0;
  EXPECT_EQ(allowed, 10);
}

// A hundred a day, half used, becomes ten a second: nobody waits for the day to end.
TEST_P(LocalStoreConformance, SlowOldLimitLocksNobodyOutUnderAFastNewOne) {
  const Registered& slow = Register(TokenBucket(100, hours{24}, 100));
  ASSERT_TRUE(Ask("ann", slow, 50).decision.allowed());
  const Registered& fast = Register(TokenBucket(10, seconds{1}, 10));
  // While both rule sets are in force the key counts as full.
  EXPECT_FALSE(Ask("ann", fast).decision.allowed());
  EXPECT_TRUE(Ask("ann", slow).decision.allowed());
  store().Release(slow.id, clock_.Read());
  EXPECT_EQ(Ask("ann", fast).decision.retry_after, Duration{milliseconds{100}});
  clock_.Advance(milliseconds{100});
  EXPECT_TRUE(Ask("ann", fast).decision.allowed());
}

// A plan: both limits are in use for good, so the wait for the old rule set has an end.
TEST_P(LocalStoreConformance, ChangeOfPlanTakesEffectWithinTenSeconds) {
  const Registered& pro = Register(TokenBucket(100, hours{24}, 100));
  const Registered& free = Register(TokenBucket(10, seconds{1}, 10));
  ASSERT_TRUE(Ask("ann", pro, 80).decision.allowed());
  EXPECT_FALSE(Ask("ann", free).decision.allowed());
  clock_.Advance(seconds{10});
  EXPECT_EQ(Ask("ann", free).decision.retry_after, Duration{milliseconds{100}});
  clock_.Advance(seconds{1});
  EXPECT_EQ(Remaining("ann", free), 10u);
}

// Two loops that change over at different moments, a client that hits both: asking by turns under
// the old and the new numbers gives no more than the larger of the two bursts.
TEST_P(StoreConformance, TwoRuleSetsInForceByTurnsMintNothing) {
  for (const NamedLimit& small : EveryRate(3, minutes{1})) {
    SCOPED_TRACE(small.name);
    const Registered& three = Register(small.limit);
    const Registered& seven = Register(TokenBucket(7, minutes{1}, 7));
    for (const bool old_is_small : {true, false}) {
      const std::string key = small.name + (old_is_small ? " up" : " down");
      std::uint64_t charged = 0;
      for (int i = 0; i < 200; ++i) {
        const bool first = (i % 2 == 0) == old_is_small;
        charged += Ask(key, first ? three : seven).receipt.units;
      }
      EXPECT_LE(charged, 7u);
    }
  }
}

TEST_P(StoreConformance, UndoUnderOtherNumbersMintsNothing) {
  const Registered& from = Register(TokenBucket(10, minutes{1}, 10));
  const Registered& to = Register(TokenBucket(20, minutes{1}, 20));
  Claim charged = Ask("ann", from, 10);
  EXPECT_EQ(Ask("ann", to, 10).decision.remaining, 0u);
  store().Undo(charged, 10, clock_.Read());
  EXPECT_LE(Remaining("ann", to), 10u);
}

// 3/s, then 7/s, then 333/min, while two threads never stop asking: in each stretch no more than
// the numbers in force allow, and nobody is locked out at the end.
TEST_P(StoreConformance, ReloadUnderLoadNeitherMintsNorLocksOut) {
  const Registered& first = Register(TokenBucket(3, seconds{1}, 3));
  const Registered& second = Register(TokenBucket(7, seconds{1}, 7));
  const Registered& third = Register(TokenBucket(333, minutes{1}, 333));
  const std::array phases = {&first, &second, &third};
  constexpr auto kTick = milliseconds{10};
  const int kTicksPerPhase = 300;
  std::array<std::uint64_t, 3> admitted{};

  for (std::size_t phase = 0; phase < phases.size(); ++phase) {
    std::atomic<std::uint64_t> units{0};
    for (int tick = 0; tick < kTicksPerPhase; ++tick) {
      // One thread changes over later than the other.
      std::vector<std::thread> threads;
      for (int t = 0; t < 2; ++t) {
        const bool late = t == 1 && tick < 5 && phase > 0;
        const Registered& limit = late ? *phases[phase - 1] : *phases[phase];
        threads.emplace_back([&, this] {
          for (int i = 0; i < 20; ++i) units += Ask("ann", limit).receipt.units;
        });
      }
      for (std::thread& thread : threads) thread.join();
      clock_.Advance(kTick);
    }
    admitted[phase] = units;
  }
  // burst + rate * 3 s, each burst once and only its part that the one before had not used.
  EXPECT_EQ(admitted[0], 3u + 9 - 1);  // the last tick's 10 ms do not make a unit
  EXPECT_LE(admitted[1], 7u + 21);
  EXPECT_GE(admitted[1], 21u);
  EXPECT_LE(admitted[2], 333u + 17);
  EXPECT_GE(admitted[2], 326u);
}

}  // namespace
}  // namespace sluice::conformance
