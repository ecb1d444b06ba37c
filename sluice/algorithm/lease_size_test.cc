#include "sluice/algorithm/lease_size.h"

#include <gtest/gtest.h>

#include <chrono>

namespace sluice {
namespace {

using namespace std::chrono_literals;

TEST(LeaseSizeTest, FollowTheLimit) {
  const auto bucket = [](std::int64_t count, std::uint64_t burst) {
    return *token_bucket::MakeLimit({count, 1s}, burst);
  };
  EXPECT_EQ(LeaseSizeOf(bucket(1'000, 1'000), 0, 0ns)->length, 20ms);
  EXPECT_EQ(LeaseSizeOf(bucket(1'000, 1'000), 0, 0ns)->most, 980u);
  EXPECT_EQ(LeaseSizeOf(bucket(1'000, 1'000), 50, 0ns)->most, 50u);
  EXPECT_EQ(LeaseSizeOf(bucket(1'000, 1'000), 0, 50ms)->length, 50ms);
  EXPECT_EQ(LeaseSizeOf(bucket(1'000, 1'000), 0, 5s)->length, 500ms)
      << "at most half of its window";
  EXPECT_EQ(LeaseSizeOf(bucket(1, 1'000), 0, 0ns)->length, 100ms);
  EXPECT_FALSE(LeaseSizeOf(bucket(1'000, 1), 0, 0ns)) << "there is nothing to be leased";
  EXPECT_FALSE(LeaseSizeOf(bucket(10'000'000, 100), 0, 0ns)) << "it would last 5 us";
  EXPECT_FALSE(LeaseSizeOf(*concurrency::MakeLimit(100, 1s), 0, 0ns));
}

}  // namespace
}  // namespace sluice
