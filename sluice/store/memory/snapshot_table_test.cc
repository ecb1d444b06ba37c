// A snapshot in a table of another size, in one with less room, and while requests are decided.

#include <algorithm>
#include <atomic>
#include <thread>

#include "sluice/store/memory/internal/line_table.h"
#include "sluice/store/memory/testing/snapshot_fixture.h"

namespace sluice {
namespace {

using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::seconds;

constexpr Now kNow{Time{hours{5}}, WallTime{hours{472'000}}};
constexpr std::uint64_t kKeys = 4'000;

const Limit kBucket = Must(token_bucket::MakeLimit({1'000, minutes{1}}, 1'000));

std::string KeyName(std::uint64_t number) { return "key " + std::to_string(number); }

// How many of the keys 0 .. count - 1 owe what they owed: key n owes 1 + n % 1000.
std::uint64_t CountKept(MemoryStore& store, std::uint64_t count, Now now) {
  std::uint64_t kept = 0;
  for (std::uint64_t n = 0; n < count; ++n) {
    const std::uint64_t left = Ask(store, KeyName(n), kBucket, 0, now).decision.remaining;
    kept += static_cast<std::uint64_t>(left == 1'000 - (1 + n % 1'000));
  }
  return kept;
}

void Fill(MemoryStore& store, std::uint64_t count, Now now) {
  for (std::uint64_t n = 0; n < count; ++n) Ask(store, KeyName(n), kBucket, 1 + n % 1'000, now);
}

TEST_F(SnapshotTest, NothingIsLostInATableThatIsAsLargeOrAWholeMultiple) {
  const auto old_store = Open(kNow, kKeys);
  // All the keys that there may be, and more: then the stash is in use, too.
  constexpr std::uint64_t kCount = kKeys * 3 / 2;
  Fill(*old_store, kCount, kNow);
  const std::uint64_t kept = CountKept(*old_store, kCount, kNow);
  EXPECT_GE(kept, kCount - old_store->Stats(kNow).evicted);
  Write(*old_store, kNow);
  for (const std::uint64_t times : {1, 2, 3, 5, 8}) {
    const auto store = Open(kNow, kKeys * times);
    EXPECT_EQ(CountKept(*store, kCount, kNow), kept) << times;
    EXPECT_EQ(store->Stats(kNow).evicted, 0u) << times;
  }
}

TEST_F(SnapshotTest, ATableOfAnyOtherSizeFindsTheKeysThatItHasRoomFor) {
  constexpr std::uint64_t kCount = kKeys / 20;
  const auto old_store = Open(kNow, kKeys);
  Fill(*old_store, kCount, kNow);
  Write(*old_store, kNow);
  for (const std::uint64_t max_keys : {kKeys / 2, kKeys * 2 / 3, kKeys * 9 / 10, kKeys - 1,
                                       kKeys + 1, kKeys * 11 / 10, kKeys * 7 / 2}) {
    SCOPED_TRACE(max_keys);
    const auto store = Open(kNow, max_keys);
    EXPECT_GE(CountKept(*store, kCount, kNow), kCount * 99 / 100);
    EXPECT_EQ(store->Stats(kNow).max_keys, max_keys);
  }
}

TEST_F(SnapshotTest, InASmallerTableTheLargestDebtsStay) {
  const auto old_store = Open(kNow, kKeys);
  Fill(*old_store, kKeys, kNow);
  Write(*old_store, kNow);
  const auto store = Open(kNow, kKeys / 8);
  EXPECT_GT(store->Stats(kNow).evicted, 0u);
  std::uint64_t large = 0;
  std::uint64_t small = 0;
  for (std::uint64_t n = 0; n < kKeys; ++n) {
    const std::uint64_t left = Ask(*store, KeyName(n), kBucket, 0, kNow).decision.remaining;
    if (left == 1'000) continue;
    large += static_cast<std::uint64_t>(left < 100);
    small += static_cast<std::uint64_t>(left >= 900);
  }
  EXPECT_GT(large, 300u);  // of 400
  EXPECT_LT(small, 10u);   // of 400
}

TEST_F(SnapshotTest, ATableOfMoreThanEightTimesTheSizeIsRefused) {
  Write(*Open(kNow, kKeys), kNow);
  for (const std::uint64_t max_keys : {kKeys / 8, kKeys * 8}) {
    EXPECT_TRUE(TryOpen(kNow, max_keys).ok()) << max_keys;
  }
  for (const std::uint64_t max_keys : {kKeys / 8 - 1, kKeys * 8 + 1}) {
    const absl::Status status = TryOpen(kNow, max_keys).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << max_keys;
    EXPECT_NE(status.message().find(path()), std::string::npos) << status;
    EXPECT_NE(status.message().find("4000 keys"), std::string::npos) << status;
  }
}

TEST_F(SnapshotTest, ASmallTableIsCutIntoTheLinesOfALargeOne) {
  // One key in a table of one line and a stash line may be in any line of the next one.
  const auto old_store = Open(kNow, 1);
  Fill(*old_store, 1, kNow);
  Write(*old_store, kNow);
  for (std::uint64_t max_keys = 1; max_keys <= 8; ++max_keys) {
    EXPECT_EQ(CountKept(*Open(kNow, max_keys), 1, kNow), 1u) << max_keys;
  }
}

TEST_F(SnapshotTest, StatesInBlocksMoveToATableOfAnotherSize) {
  const auto old_store = Open(kNow, 1'000);
  const std::vector<NamedLimit> limits = EveryLimit(10);
  for (int key = 0; key < 5; ++key) {
    for (const NamedLimit& named : limits)
      Ask(*old_store, KeyName(static_cast<std::uint64_t>(key)) + named.name, named.limit, 3, kNow);
  }
  Write(*old_store, kNow);
  for (const std::uint64_t max_keys : {600, 1'000, 1'700, 4'000}) {
    const auto store = Open(kNow, max_keys);
    for (int key = 0; key < 5; ++key) {
      for (const NamedLimit& named : limits) {
        SCOPED_TRACE(named.name);
        EXPECT_EQ(
            Ask(*store, KeyName(static_cast<std::uint64_t>(key)) + named.name, named.limit, 0, kNow)
                .decision.remaining,
            Ask(*old_store, KeyName(static_cast<std::uint64_t>(key)) + named.name, named.limit, 0,
                kNow)
                .decision.remaining);
      }
    }
  }
}

TEST_F(SnapshotTest, WhereThereIsLessRoomForLogsTheyAreLetGoAndCounted) {
  const Limit log = Must(sliding_window_log::MakeLimit(500, hours{1}, false));
  const auto old_store = Open(kNow);
  for (int key = 0; key < 20; ++key)
    Ask(*old_store, "log " + KeyName(static_cast<std::uint64_t>(key)), log, 500, kNow);
  Fill(*old_store, 20, kNow);
  Write(*old_store, kNow);
  const struct {
    std::uint64_t outside_bytes;
    std::uint64_t least;  // logs that have room
    std::uint64_t most;
  } rows[] = {
      {std::uint64_t{1} << 20, 20, 20},
      {std::uint64_t{20} << 10, 5, 9},  // 18 blocks each
      {std::uint64_t{2} << 10, 0, 0},   // not for one that is full
      {0, 0, 0},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.outside_bytes);
    const auto store = Open(kNow, 1'000, row.outside_bytes);
    const MemoryStats stats = store->Stats(kNow);
    EXPECT_GE(stats.evicted, 20 - row.most);
    EXPECT_LE(stats.evicted, 20 - row.least);
    EXPECT_EQ(CountKept(*store, 20, kNow), 20u);
  }
}

// Two threads charge their own keys while files are written, a share of the charges for each file.
// What a file holds of a key is one of the states that it went through: never less than it owed
// when the writing began. Meanwhile the numbers of limits run out, and some get another limit.
TEST_F(SnapshotTest, IsWrittenWhileRequestsAreDecided) {
  constexpr int kThreads = 2;
  constexpr std::int64_t kFiles = 10;
  constexpr std::int64_t kRoundsPerFile = 80;
  const Now earlier{kNow.steady - hours{10}, kNow.wall - hours{10}};
  const auto store = Open(earlier, 10'000);
  for (std::int64_t i = 1; i <= 3'600; ++i) {
    const absl::StatusOr<LimitId> id = store->Register(Must(fixed_window::MakeLimit(i, hours{1})));
    ASSERT_TRUE(id.ok()) << id.status();
    store->Release(*id, earlier);
  }
  // A key and a limit for each round that are not met again.
  const auto once = [](int thread, std::int64_t round) {
    return Must(fixed_window::MakeLimit(10'000 * (1 + thread) + round, hours{1}));
  };
  const auto name = [](int thread, std::string_view what) {
    return std::to_string(thread) + " " + std::string(what);
  };
  const std::vector<NamedLimit> limits = EveryLimit(1'000);
  std::atomic<std::int64_t> allowed{0};
  std::array<std::atomic<std::int64_t>, kThreads> charged{};
  std::vector<std::thread> threads;
  for (int thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&, thread] {
      for (std::int64_t round = 0; round < kFiles * kRoundsPerFile; ++round) {
        while (round >= allowed) std::this_thread::yield();
        for (const NamedLimit& named : limits) {
          Ask(*store, name(thread, named.name), named.limit, 1, kNow);
        }
        Ask(*store, name(thread, std::to_string(round)), once(thread, round), 2, kNow);
        charged[static_cast<std::size_t>(thread)] = round + 1;
      }
    });
  }
  for (int file = 0; file < kFiles; ++file) {
    const std::array<std::int64_t, kThreads> before{charged[0], charged[1]};
    allowed += kRoundsPerFile;
    Write(*store, kNow);
    const std::array<std::int64_t, kThreads> after{charged[0] + 1, charged[1] + 1};
    const auto restored = Open(kNow, 10'000);
    const auto used = [&](const std::string& key, const Limit& limit) {
      const Claim claim = Ask(*restored, key, limit, 0, kNow);
      return static_cast<std::int64_t>(CapacityOf(limit) - claim.decision.remaining);
    };
    for (int thread = 0; thread < kThreads; ++thread) {
      const std::int64_t least = before[static_cast<std::size_t>(thread)];
      for (const NamedLimit& named : limits) {
        SCOPED_TRACE(named.name);
        const bool queue = std::holds_alternative<leaky_bucket::Limit>(named.limit);
        EXPECT_GE(used(name(thread, named.name), named.limit) + (queue ? 1 : 0), least);
        EXPECT_LE(used(name(thread, named.name), named.limit),
                  after[static_cast<std::size_t>(thread)]);
      }
      for (std::int64_t round = 0; round < least; ++round) {
        EXPECT_EQ(used(name(thread, std::to_string(round)), once(thread, round)), 2);
      }
    }
    EXPECT_EQ(restored->Stats(kNow).conversions, 0u);
  }
  for (std::thread& thread : threads) thread.join();
}

// Two writers of one file take turns: what is there is always whole.
TEST_F(SnapshotTest, TwoWritersOfOneFileTakeTurns) {
  const auto store = Open(kNow);
  Fill(*store, 200, kNow);
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 2; ++thread) {
    threads.emplace_back([&] {
      for (int i = 0; i < 10; ++i) Write(*store, kNow);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(CountKept(*Open(kNow), 200, kNow), 200u);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder()), {}), 1);
}

}  // namespace
}  // namespace sluice
