#include "sluice/base/random.h"

#include <gtest/gtest.h>

#include <set>

namespace sluice {
namespace {

TEST(RandomTest, DrawsFromNothingUpToTheMostAndAllThatIsBetween) {
  std::set<Duration> drawn;
  for (int i = 0; i < 1'000; ++i) drawn.insert(DrawEvenly(Duration{3}));
  EXPECT_EQ(drawn, (std::set<Duration>{Duration{0}, Duration{1}, Duration{2}, Duration{3}}));
  EXPECT_EQ(DrawEvenly(Duration{0}), Duration{0});
}

TEST(RandomTest, NoNumberComesTwice) {
  std::set<std::uint64_t> drawn;
  for (int i = 0; i < 1'000; ++i) drawn.insert(RandomNumber());
  EXPECT_EQ(drawn.size(), 1'000u);
}

}  // namespace
}  // namespace sluice
