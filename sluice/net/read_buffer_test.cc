#include "sluice/net/read_buffer.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

namespace sluice::net {
namespace {

void Put(ReadBuffer& buffer, std::string_view bytes, std::size_t max_capacity) {
  while (!bytes.empty()) {
    const std::span<char> room = buffer.Room(max_capacity);
    ASSERT_FALSE(room.empty());
    const std::size_t size = std::min(room.size(), bytes.size());
    std::copy_n(bytes.begin(), size, room.begin());
    buffer.Commit(size);
    bytes.remove_prefix(size);
  }
}

TEST(ReadBufferTest, GivesOutWhatCameInInOrder) {
  std::mt19937 random(3);
  ReadBuffer buffer(16);
  std::string in;
  std::string out;
  for (int i = 0; i < 5000; ++i) {
    std::string piece(random() % 40, static_cast<char>('a' + i % 26));
    piece.resize(std::min(piece.size(), 256 - buffer.size()));
    in += piece;
    Put(buffer, piece, 256);
    const std::size_t taken = buffer.empty() ? 0 : random() % (buffer.size() + 1);
    out.append(buffer.view().substr(0, taken));
    buffer.Consume(taken);
  }
  out.append(buffer.view());
  EXPECT_TRUE(in == out);
}

TEST(ReadBufferTest, HasNoRoomBeyondTheBound) {
  ReadBuffer buffer(4);
  Put(buffer, "0123456789abcdef", 16);
  EXPECT_TRUE(buffer.Room(16).empty());
  EXPECT_FALSE(buffer.Room(17).empty());
  EXPECT_EQ(buffer.view(), "0123456789abcdef");
}

TEST(ReadBufferTest, GrowsWhereReadsFillItAndShrinksWhenAsked) {
  ReadBuffer buffer(4);
  for (int i = 0; i < 3; ++i) {
    buffer.Commit(buffer.Room(64).size());
    buffer.Consume(buffer.size());
  }
  EXPECT_EQ(buffer.Room(64).size(), 32U);
  buffer.Commit(1);
  buffer.Shrink(4);  // not while something is unread
  EXPECT_EQ(buffer.Room(64).size(), 31U);
  buffer.Consume(1);
  buffer.Shrink(4);
  EXPECT_EQ(buffer.Room(64).size(), 4U);
}

}  // namespace
}  // namespace sluice::net
