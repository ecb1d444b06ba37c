#include "sluice/store/memory/internal/limit_registry.h"

#include <gtest/gtest.h>

#include <vector>

#include "absl/status/status.h"

namespace sluice::memory {
namespace {

using std::chrono::hours;
using std::chrono::seconds;

Now At(Duration at) { return {Time{at}, WallTime{at}}; }

Limit Bucket(int n) { return token_bucket::MakeLimit({n, seconds{1}}, 1).value(); }

class LimitRegistryTest : public ::testing::Test {
 protected:
  LimitRegistry registry_{[this](const LimitRegistry::Ids& ids) { swept_.push_back(ids); }};
  std::vector<LimitRegistry::Ids> swept_;
};

TEST_F(LimitRegistryTest, EqualLimitsShareANumberUntilAllHaveLetGo) {
  const LimitId a = registry_.Register(Bucket(1)).value();
  EXPECT_EQ(registry_.Register(Bucket(1)).value(), a);
  const LimitId b = registry_.Register(Bucket(2)).value();
  EXPECT_NE(a, b);
  EXPECT_EQ(registry_.limit(b), Bucket(2));
  registry_.Release(a, At(seconds{1}));
  registry_.Release(a, At(seconds{1}));
  EXPECT_EQ(registry_.Register(Bucket(1)).value(), a);  // its states may still be there
}

TEST_F(LimitRegistryTest, ANumberComesBackOnlyAfterItsLifetimeAndASweep) {
  std::vector<LimitId> ids;
  for (std::size_t i = 1; i < kMaxClasses; ++i) {
    ids.push_back(registry_.Register(Bucket(static_cast<int>(i))).value());
  }
  EXPECT_TRUE(absl::IsResourceExhausted(registry_.Register(Bucket(5'000)).status()));

  // 1/s, burst 1: over after two seconds, since a forced charge may double the debt.
  registry_.Release(ids[0], At(seconds{10}));
  EXPECT_TRUE(absl::IsResourceExhausted(registry_.Register(Bucket(5'000)).status()));
  registry_.NoteTime(At(seconds{12}));
  EXPECT_TRUE(absl::IsResourceExhausted(registry_.Register(Bucket(5'000)).status()));
  EXPECT_TRUE(swept_.empty());
  registry_.NoteTime(At(seconds{12} + Duration{1}));
  EXPECT_EQ(registry_.Register(Bucket(5'000)).value(), ids[0]);
  ASSERT_EQ(swept_.size(), 1u);
  EXPECT_TRUE(swept_[0].test(ids[0]));
  EXPECT_EQ(swept_[0].count(), 1u);
  EXPECT_EQ(registry_.limit(ids[0]), Bucket(5'000));
}

TEST_F(LimitRegistryTest, AnAdoptedLimitIsKnownButNobodys) {
  const LimitId adopted = registry_.Adopt(Bucket(1), At(seconds{1})).value();
  EXPECT_EQ(registry_.Adopt(Bucket(1), At(seconds{1})).value(), adopted);
  EXPECT_EQ(registry_.Register(Bucket(1)).value(), adopted);
  EXPECT_EQ(registry_.size(), 1u);
}

TEST_F(LimitRegistryTest, RuleSetsSettleUntilTheOldIsLetGoOrTenSecondsAreOver) {
  const LimitId from = registry_.Register(Bucket(1)).value();
  const LimitId to = registry_.Register(Bucket(2)).value();
  EXPECT_TRUE(registry_.Settling(from, to, At(seconds{100})));
  EXPECT_TRUE(registry_.Settling(from, to, At(seconds{109})));
  EXPECT_FALSE(registry_.Settling(from, to, At(seconds{110})));
  // The next reload.
  EXPECT_EQ(registry_.Register(Bucket(2)).value(), to);
  EXPECT_TRUE(registry_.Settling(from, to, At(seconds{200})));
  registry_.Release(from, At(seconds{200}));
  EXPECT_FALSE(registry_.Settling(from, to, At(seconds{200})));
}

TEST_F(LimitRegistryTest, KeepersAreChosenByWhatFitsAWord) {
  EXPECT_EQ(KeeperOf(Bucket(1)), Keeper::kWord);
  EXPECT_EQ(KeeperOf(fixed_window::MakeLimit(5, hours{1}).value()), Keeper::kWord);
  EXPECT_EQ(KeeperOf(fixed_window::MakeLimit(std::int64_t{1} << 60, hours{1}).value()),
            Keeper::kSmall);
  EXPECT_EQ(KeeperOf(calendar::MakeLimit(5, calendar::Period::kDay, "UTC").value()),
            Keeper::kSmall);
  EXPECT_EQ(KeeperOf(sliding_window_strict::MakeLimit(5, hours{1}).value()), Keeper::kStrict);
  EXPECT_EQ(KeeperOf(sliding_window_log::MakeLimit(5, hours{1}, false).value()), Keeper::kLog);
  EXPECT_EQ(KeeperOf(concurrency::MakeLimit(5, Duration{0}).value()), Keeper::kConcurrency);
}

}  // namespace
}  // namespace sluice::memory
