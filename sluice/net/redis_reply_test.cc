#include "sluice/net/redis_reply.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace sluice::net {
namespace {

using Step = RedisReplyReader::Step;
using namespace std::string_view_literals;

// A reply on one line, so that tables can hold what comes out.
std::string Shown(RedisValue value) {
  switch (value.kind()) {
    case RedisKind::kNil:
      return "nil";
    case RedisKind::kText:
      return "'" + std::string(value.text()) + "'";
    case RedisKind::kStatus:
      return "+" + std::string(value.text());
    case RedisKind::kInteger:
      return std::to_string(value.integer());
    case RedisKind::kError:
      return "-" + std::string(value.error());
    case RedisKind::kArray:
      break;
  }
  std::string text = "[";
  for (std::size_t i = 0; i < value.size(); ++i) text += (i == 0 ? "" : " ") + Shown(value[i]);
  return text + "]";
}

constexpr std::pair<std::string_view, std::string_view> kReplies[] = {
    {"+OK\r\n", "+OK"},
    {"+\r\n", "+"},
    {"-NOSCRIPT No matching script.\r\n", "-NOSCRIPT No matching script."},
    {":0\r\n", "0"},
    {":-9223372036854775808\r\n", "-9223372036854775808"},
    {":9223372036854775807\r\n", "9223372036854775807"},
    {"$-1\r\n", "nil"},
    {"*-1\r\n", "nil"},
    {"$0\r\n\r\n", "''"},
    {"$4\r\n\r\n\0$\r\n"sv, "'\r\n\0$'"sv},
    {"*0\r\n", "[]"},
    {"*3\r\n:1\r\n$1\r\na\r\n*2\r\n-ERR x\r\n$-1\r\n", "[1 'a' [-ERR x nil]]"},
    {"*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n:7\r\n", "[[[[[[[7]]]]]]]"},
};

TEST(RedisReply, ShowsEachKind) {
  for (const auto& [bytes, shown] : kReplies) {
    RedisReplyReader reader;
    reader.Feed(bytes);
    RedisReply reply;
    ASSERT_EQ(reader.Next(&reply), Step::kReply) << shown;
    EXPECT_EQ(Shown(reply), shown);
    EXPECT_EQ(reader.Next(&reply), Step::kMore);
  }
}

TEST(RedisReply, IsReadThoughCutAtAnyByte) {
  std::string all;
  std::vector<std::string_view> want;
  for (const auto& [bytes, shown] : kReplies) {
    all.append(bytes);
    want.push_back(shown);
  }
  for (std::size_t first = 1; first < all.size(); ++first) {
    for (const std::size_t then : {std::size_t{1}, all.size()}) {
      RedisReplyReader reader;
      std::vector<std::string> got;
      for (std::size_t at = 0; at < all.size();) {
        const std::size_t size = std::min(at == 0 ? first : then, all.size() - at);
        reader.Feed(std::string_view(all).substr(at, size));
        at += size;
        RedisReply reply;
        while (reader.Next(&reply) == Step::kReply) got.push_back(Shown(reply));
        ASSERT_EQ(reader.why(), "");
      }
      ASSERT_EQ(got, std::vector<std::string>(want.begin(), want.end())) << first;
    }
  }
}

TEST(RedisReply, AskedForWhatItIsNotSaysSoByBeingEmpty) {
  for (const auto& [bytes, shown] : kReplies) {
    RedisReplyReader reader;
    reader.Feed(bytes);
    RedisReply reply;
    ASSERT_EQ(reader.Next(&reply), Step::kReply);
    const RedisKind kind = reply.kind();
    const bool has_text = kind == RedisKind::kText || kind == RedisKind::kStatus;
    EXPECT_TRUE(kind == RedisKind::kInteger || reply.integer() == 0) << shown;
    EXPECT_TRUE(has_text || reply.text().empty()) << shown;
    EXPECT_TRUE(kind == RedisKind::kError || reply.error().empty()) << shown;
    EXPECT_TRUE(kind == RedisKind::kArray || reply.size() == 0) << shown;
    EXPECT_EQ(reply[reply.size()].kind(), RedisKind::kNil) << shown;
    EXPECT_EQ(reply[999][3].text(), "") << shown;
  }
}

TEST(RedisReply, TellsErrorsApartByTheirFirstWord) {
  for (const auto& [bytes, code] : {std::pair{"-NOSCRIPT No matching script.\r\n", "NOSCRIPT"},
                                    {"-LOADING\r\n", "LOADING"},
                                    {"-\r\n", ""},
                                    {"+NOSCRIPT\r\n", ""}}) {
    RedisReplyReader reader;
    reader.Feed(bytes);
    RedisReply reply;
    ASSERT_EQ(reader.Next(&reply), Step::kReply);
    EXPECT_EQ(reply.error_code(), code);
  }
}

TEST(RedisReply, MovedFromIsANil) {
  RedisReplyReader reader;
  reader.Feed(":5\r\n:6\r\n");
  RedisReply first, second;
  ASSERT_EQ(reader.Next(&first), Step::kReply);
  ASSERT_EQ(reader.Next(&second), Step::kReply);
  RedisReply moved(std::move(first));
  EXPECT_EQ(moved.integer(), 5);
  EXPECT_EQ(first.kind(), RedisKind::kNil);  // NOLINT(bugprone-use-after-move): what is tested
  moved = std::move(second);
  EXPECT_EQ(moved.integer(), 6);
}

TEST(RedisReplyReader, RefusesWhatIsNoReplyOrTooLarge) {
  const std::pair<std::string, std::string_view> refused[] = {
      {"HTTP/1.1 400 Bad Request\r\n", "Protocol error"},
      {"%1\r\n", "Protocol error"},  // a map, of version 3
      {":1x\r\n", "Bad integer"},
      {"$x\r\n", "Bad bulk string length"},
      {"$-2\r\n", "Bulk string length"},
      {"*-2\r\n", "Multi-bulk length"},
      {"*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n", "nested"},
      {"*2147483647\r\n", "larger than allowed"},
      {"*4\r\n*4\r\n:1\r\n:1\r\n:1\r\n:1\r\n*1\r\n", "larger than allowed"},  // 9 in all
      {"$17\r\n12345678901234567\r\n", "larger than allowed"},
      {"*2\r\n$9\r\n123456789\r\n+12345678\r\n", "larger than allowed"},            // 17 in all
      {"$9000000000000000000\r\n" + std::string(200, 'x'), "larger than allowed"},  // so far
      {"+" + std::string(200, 'x'), "larger than allowed"},
  };
  for (const auto& [bytes, why] : refused) {
    RedisReplyReader reader({.bytes = 16, .elements = 8});
    reader.Feed(bytes);
    RedisReply reply;
    EXPECT_EQ(reader.Next(&reply), Step::kBroken) << bytes;
    EXPECT_NE(reader.why().find(why), std::string::npos) << bytes << ": " << reader.why();
    reader.Feed("+OK\r\n");
    EXPECT_EQ(reader.Next(&reply), Step::kBroken) << bytes;
    EXPECT_EQ(reply.kind(), RedisKind::kNil);
  }
}

TEST(RedisReplyReader, GivesEachReplyTheWholeOfItsBounds) {
  RedisReplyReader reader({.bytes = 16, .elements = 8});
  const std::string full = "*8\r\n" + std::string("$16\r\n1234567890123456\r\n") +
                           ":1\r\n:1\r\n:1\r\n:1\r\n:1\r\n:1\r\n:1\r\n";
  for (int i = 0; i < 100; ++i) reader.Feed(full);
  RedisReply reply;
  for (int i = 0; i < 100; ++i) ASSERT_EQ(reader.Next(&reply), Step::kReply) << reader.why();
  EXPECT_EQ(reader.Next(&reply), Step::kMore);
}

TEST(RedisReplyReader, GivesOutWhatCameBeforeTheDamage) {
  RedisReplyReader reader;
  reader.Feed("+OK\r\n?\r\n");
  RedisReply reply;
  EXPECT_EQ(reader.Next(&reply), Step::kReply);
  EXPECT_EQ(reader.Next(&reply), Step::kBroken);
}

TEST(RedisCommand, IsAnArrayOfItsWords) {
  std::string out = "before";
  const std::string_view words[] = {"SET", "a b\r\n", "", "\0"sv};
  AppendRedisCommand(words, &out);
  EXPECT_EQ(out, "before*4\r\n$3\r\nSET\r\n$5\r\na b\r\n\r\n$0\r\n\r\n$1\r\n\0\r\n"sv);
}

}  // namespace
}  // namespace sluice::net
