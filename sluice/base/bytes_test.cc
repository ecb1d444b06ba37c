#include "sluice/base/bytes.h"

#include <gtest/gtest.h>

#include <string>

namespace sluice {
namespace {

// Longer than every size that is handled apart.
constexpr std::size_t kLongest = 140;

std::string Text(std::size_t size) {
  std::string text;
  for (std::size_t i = 0; i < size; ++i) text.push_back(static_cast<char>('a' + i % 26));
  return text;
}

TEST(BytesTest, EqualRunsAreTheSameWhateverTheirLength) {
  for (std::size_t size = 0; size <= kLongest; ++size) {
    const std::string copy = Text(size);
    EXPECT_TRUE(SameBytes(Text(size), copy)) << size;
  }
}

TEST(BytesTest, OneByteThatDiffersIsSeenWhereverItIs) {
  for (std::size_t size = 1; size <= kLongest; ++size) {
    for (std::size_t at = 0; at < size; ++at) {
      std::string other = Text(size);
      other[at] = '!';
      EXPECT_FALSE(SameBytes(Text(size), other)) << size << " at " << at;
    }
  }
}

TEST(BytesTest, RunsOfDifferentLengthAreNotTheSame) {
  for (std::size_t size = 1; size <= kLongest; ++size) {
    EXPECT_FALSE(SameBytes(Text(size), Text(size - 1))) << size;
    EXPECT_FALSE(SameBytes(Text(size - 1), Text(size))) << size;
  }
}

TEST(BytesTest, ACopyHasAllBytesAndWritesNoOthers) {
  for (std::size_t size = 0; size <= kLongest; ++size) {
    std::string room(size + 2, '.');
    CopyBytes(room.data() + 1, Text(size));
    EXPECT_EQ(room, "." + Text(size) + ".");
  }
}

TEST(BytesTest, AnEmptyViewMayPointNowhere) {
  char byte = 'x';
  CopyBytes(&byte, std::string_view());
  EXPECT_EQ(byte, 'x');
  EXPECT_TRUE(SameBytes(std::string_view(), ""));
}

}  // namespace
}  // namespace sluice
