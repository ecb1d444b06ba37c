// What a store owes, over a restart: the same decisions, as if there had been none.

#include "sluice/store/memory/testing/snapshot_fixture.h"

namespace sluice {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

// Monday 2023-11-13, 12:00:10 UTC.
constexpr WallTime kWall{seconds{1'699'876'810}};
constexpr Now kBefore{Time{hours{5}}, kWall};

Now After(Now now, Duration by) { return {now.steady + by, now.wall + by}; }

std::string Told(const Decision& decision) {
  std::string text = std::to_string(static_cast<int>(decision.verdict));
  for (const std::int64_t number :
       {static_cast<std::int64_t>(decision.remaining), std::int64_t{decision.retry_after.count()},
        std::int64_t{decision.reset_after.count()}, std::int64_t{decision.delay.count()}}) {
    text += " " + std::to_string(number);
  }
  return text;
}

std::uint64_t Remaining(MemoryStore& store, std::string_view key, const Limit& limit, Now now) {
  return Ask(store, key, limit, 0, now).decision.remaining;
}

const Limit kBucket = Must(token_bucket::MakeLimit({10, minutes{1}}, 10));

// The restart takes five seconds by the wall clock, and the new process's steady clock begins
// elsewhere. Where steps of that clock are counted (strict) it is moved by whole ones.
TEST_F(SnapshotTest, DecidesAfterARestartAsIfThereHadBeenNone) {
  constexpr Duration kRestart = seconds{5};
  for (const Duration moved : {Duration{-hours{5} + seconds{7}}, Duration{hours{9'000}}}) {
    for (const NamedLimit& named : EveryLimit(10)) {
      SCOPED_TRACE(named.name);
      std::filesystem::remove(path());
      const auto old_store = Open(kBefore);
      Now now = kBefore;
      for (const std::uint64_t cost : {3, 4, 2}) {
        Ask(*old_store, "ann", named.limit, cost, now);
        now = After(now, milliseconds{900});
      }
      Ask(*old_store, "large", named.limit, CapacityOf(named.limit), now);
      Write(*old_store, now);

      const auto new_now = [moved](Now old) { return Now{old.steady + moved, old.wall}; };
      now = After(now, kRestart);
      const auto new_store = Open(new_now(now));
      for (int i = 0; i < 40; ++i) {
        for (const char* key : {"ann", "large", "new"}) {
          SCOPED_TRACE(std::string(key) + " " + std::to_string(i));
          const Claim old_claim = Ask(*old_store, key, named.limit, 1, now);
          const Claim new_claim = Ask(*new_store, key, named.limit, 1, new_now(now));
          ASSERT_EQ(Told(new_claim.decision), Told(old_claim.decision));
        }
        now = After(now, milliseconds{2'700});
      }
    }
  }
}

TEST_F(SnapshotTest, WhoWasDeniedIsDeniedUntilExactlyItsTime) {
  for (const NamedLimit& named : EveryLimit(10)) {
    SCOPED_TRACE(named.name);
    std::filesystem::remove(path());
    const auto old_store = Open(kBefore);
    Ask(*old_store, "ann", named.limit, CapacityOf(named.limit), kBefore);
    const Duration wait = Ask(*old_store, "ann", named.limit, 1, kBefore).decision.retry_after;
    Write(*old_store, kBefore);
    // Found new in another process a moment after it was written, but for its clock.
    const Now opened{Time{seconds{3}}, kWall};
    const auto store = Open(opened);
    const Now one_early = After(opened, wait - Duration{1});
    EXPECT_EQ(Ask(*store, "ann", named.limit, 1, one_early).decision.verdict,
              wait > Duration{0} ? Verdict::kLimited : Verdict::kDelayed);
    EXPECT_NE(Ask(*store, "ann", named.limit, 1, After(opened, wait)).decision.verdict,
              Verdict::kLimited);
  }
}

// The new clock's steps begin in the middle of the old one's.
TEST_F(SnapshotTest, WhatCountsInStepsLeavesAtMostOneStepLaterAndNeverSooner) {
  const struct {
    Limit limit;
    Duration step;
  } rows[] = {
      {Must(sliding_window_strict::MakeLimit(10, minutes{1}, 6)), seconds{10}},
      {Must(sliding_window_log::MakeLimit(10, hours{1'000}, false)), milliseconds{2}},
      {Must(sliding_window_log::MakeLimit(10, hours{1'000}, true)), milliseconds{2}},
  };
  for (const auto& row : rows) {
    for (const Duration moved : {Duration{1}, Duration{-1}, row.step / 2 + Duration{1},
                                 -row.step / 3, row.step - Duration{1}}) {
      SCOPED_TRACE(std::string(AlgorithmName(row.limit)) + " " + std::to_string(moved.count()));
      std::filesystem::remove(path());
      const auto old_store = Open(kBefore);
      Ask(*old_store, "ann", row.limit, 6, After(kBefore, Duration{17}));
      Ask(*old_store, "ann", row.limit, 4, After(kBefore, seconds{7}));
      const Now written = After(kBefore, seconds{8});
      const Duration wait = Ask(*old_store, "ann", row.limit, 5, written).decision.retry_after;
      Write(*old_store, written);
      const Now opened{written.steady + moved, written.wall};
      const auto store = Open(opened);
      const Duration new_wait = Ask(*store, "ann", row.limit, 5, opened).decision.retry_after;
      EXPECT_GE(new_wait, wait);
      EXPECT_LE(new_wait, wait + row.step);
    }
  }
}

TEST_F(SnapshotTest, AWallClockThatSteppedBackPaysNothingBack) {
  const struct {
    Duration step;
    bool windows_kept;  // of a minute, aligned to the clock
  } rows[] = {
      {-Duration{1}, true},
      {-seconds{30}, true},  // into the window before: the newer one is kept
      {-hours{3}, false},    // a window so far ahead is damage
      {-hours{24 * 365 * 70}, false},
  };
  for (const auto& row : rows) {
    for (const NamedLimit& named : EveryLimit(10)) {
      SCOPED_TRACE(named.name + " " + std::to_string(row.step.count()));
      const bool aligned =
          named.name.starts_with("fixed") && named.name != "fixed window, first hit";
      const bool counter = named.name.starts_with("sliding counter");
      const bool day = named.name == "calendar";
      std::filesystem::remove(path());
      const auto old_store = Open(kBefore);
      Ask(*old_store, "ann", named.limit, CapacityOf(named.limit), kBefore);
      Write(*old_store, kBefore);
      const Now opened{Time{hours{1}}, kWall + row.step};
      const auto store = Open(opened);
      const bool kept = day ? row.step >= -hours{3} : !(aligned || counter) || row.windows_kept;
      const std::uint64_t left = Remaining(*store, "ann", named.limit, opened);
      // Under the leaky bucket one may still wait in the queue.
      const std::uint64_t none = Remaining(*old_store, "ann", named.limit, kBefore);
      if (kept) {
        EXPECT_EQ(left, none);
      } else {
        EXPECT_EQ(left, CapacityOf(named.limit));
      }
      // Once the clock is right again, so are the windows that nobody asked for meanwhile.
      const auto untouched = Open(opened);
      EXPECT_EQ(Remaining(*untouched, "ann", named.limit, {opened.steady, kWall}), none);
    }
  }
}

TEST_F(SnapshotTest, WhatIsOverWhenTheFileIsReadTakesNoRoom) {
  const auto old_store = Open(kBefore);
  for (const NamedLimit& named : EveryLimit(10)) {
    Ask(*old_store, named.name, named.limit, 1, kBefore);
  }
  Write(*old_store, kBefore);
  const Now later{Time{hours{1}}, kWall + hours{24 * 40}};
  const auto store = Open(later);
  EXPECT_EQ(store->Stats(later).table_slots_occupied, 0u);
  EXPECT_EQ(store->Stats(later).outside_blocks_used, 0u);
  EXPECT_EQ(store->Stats(later).limits, 0u);
}

TEST_F(SnapshotTest, ShortLimitsIdleKeysAndSlotsInFlightAreLeftOut) {
  const Limit two_seconds = Must(token_bucket::MakeLimit({1, seconds{1}}, 1));
  const Limit held = Must(concurrency::MakeLimit(5, hours{1}));
  const auto old_store = Open(kBefore);
  Ask(*old_store, "idle", kBucket, 1, After(kBefore, -minutes{5}));
  Ask(*old_store, "short", two_seconds, 1, kBefore);
  Ask(*old_store, "held", held, 1, kBefore);
  Write(*old_store, kBefore, seconds{10});
  EXPECT_EQ(Open(kBefore)->Stats(kBefore).table_slots_occupied, 0u);
  EXPECT_EQ(Open(kBefore)->Stats(kBefore).concurrency_slots_used, 0u);
  Write(*old_store, kBefore, seconds{2});
  EXPECT_EQ(Open(kBefore)->Stats(kBefore).table_slots_occupied, 1u);
}

TEST_F(SnapshotTest, ARuleWithTheSameNumbersFindsItsStatesUnderItsId) {
  const auto old_store = Open(kBefore);
  const std::vector<NamedLimit> limits = EveryLimit(10);
  for (const NamedLimit& named : limits) Ask(*old_store, named.name, named.limit, 1, kBefore);
  Write(*old_store, kBefore);
  const auto store = Open(kBefore);
  EXPECT_EQ(store->Stats(kBefore).limits, limits.size());
  for (const NamedLimit& named : limits) Ask(*store, named.name, named.limit, 1, kBefore);
  EXPECT_EQ(store->Stats(kBefore).limits, limits.size());
  EXPECT_EQ(store->Stats(kBefore).conversions, 0u);
}

TEST_F(SnapshotTest, ARuleWithOtherNumbersTakesTheDebtOver) {
  const auto old_store = Open(kBefore);
  Ask(*old_store, "ann", kBucket, 7, kBefore);
  Write(*old_store, kBefore);
  const auto store = Open(kBefore);
  const Limit larger = Must(token_bucket::MakeLimit({100, minutes{1}}, 100));
  EXPECT_EQ(Remaining(*store, "ann", larger, kBefore), 93u);
  EXPECT_EQ(store->Stats(kBefore).conversions, 1u);
}

TEST_F(SnapshotTest, LimitsThatNoRuleRegistersGiveTheirIdsBack) {
  const auto old_store = Open(kBefore);
  Ask(*old_store, "ann", kBucket, 1, kBefore);
  Write(*old_store, kBefore);
  const auto store = Open(kBefore);
  // One id is taken by the snapshot's limit: as long as that may matter only 4094 are left.
  for (std::int64_t i = 1; i <= 4094; ++i) {
    ASSERT_TRUE(store->Register(Must(fixed_window::MakeLimit(i, hours{1}))).ok()) << i;
  }
  const Limit one_more = Must(fixed_window::MakeLimit(5'000, hours{1}));
  EXPECT_EQ(store->Register(one_more).status().code(), absl::StatusCode::kResourceExhausted);
  const Now over = After(kBefore, LifetimeOf(kBucket) + seconds{1});
  (void)store->Stats(over);
  EXPECT_TRUE(store->Register(one_more).ok());
}

TEST_F(SnapshotTest, GoesFromFileToFileUnchanged) {
  const auto old_store = Open(kBefore);
  for (const NamedLimit& named : EveryLimit(10)) {
    Ask(*old_store, named.name, named.limit, 3, kBefore);
  }
  Write(*old_store, kBefore);
  // From file to file through stores that are never asked, with clocks of their own.
  for (const Time steady : {Time{hours{2}}, Time{hours{700}}, Time{hours{5}}}) {
    Write(*Open({steady, kWall}), {steady, kWall});
  }
  const auto store = Open(kBefore);
  for (const NamedLimit& named : EveryLimit(10)) {
    SCOPED_TRACE(named.name);
    EXPECT_EQ(Remaining(*store, named.name, named.limit, kBefore),
              Remaining(*old_store, named.name, named.limit, kBefore));
  }
}

// A file of format 1 as an earlier build wrote it: "NAME" owes 3 units under the limit NAME of
// EveryLimit(10). Where this fails, what decides where a key lies or what its bits mean has
// changed: that is another format (snapshot.h).
TEST_F(SnapshotTest, AFileOfAnEarlierBuildIsReadAsItWasMeant) {
  constexpr Now kWritten{Time{hours{5}}, WallTime{hours{472'000}}};
  std::filesystem::copy_file(SLUICE_SOURCE_DIR "/tests/data/snapshot_format_1", path());
  const auto store = Open(kWritten, 64);
  for (const NamedLimit& named : EveryLimit(10)) {
    SCOPED_TRACE(named.name);
    const std::uint64_t capacity = CapacityOf(named.limit);
    EXPECT_EQ(Remaining(*store, named.name, named.limit, kWritten), capacity - 3);
  }
  EXPECT_EQ(store->Stats(kWritten).conversions, 0u);
}

}  // namespace
}  // namespace sluice
