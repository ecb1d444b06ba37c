#include "sluice/store/redis/redis_slots.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "sluice/store/redis/key_name.h"

namespace sluice::redis {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const net::HostPort kAsked{.host = "10.0.0.1", .port = 7000};

// From a reply as it comes, with '|' for the ends of lines.
net::RedisReply Reply(std::string text) {
  for (std::size_t at = 0; (at = text.find('|', at)) != std::string::npos;) {
    text.replace(at, 1, "\r\n");
  }
  net::RedisReplyReader reader;
  reader.Feed(text);
  net::RedisReply reply;
  EXPECT_EQ(reader.Next(&reply), net::RedisReplyReader::Step::kReply) << text;
  return reply;
}

TEST(SlotOfTest, IsThatOfTheSpecification) {
  const struct {
    std::string_view key;
    std::uint16_t slot;
  } rows[] = {
      {"123456789", 0x31C3 % 16384},  // the value that the specification names
      {"", 0},
      {"foo", 12182},
      {"{foo}", 12182},
      {"a{foo}b", 12182},
      {"{foo}{bar}", 12182},  // the first of two
      {"a{foo", 113},         // not closed: all of it counts
      {"foo{}bar", 14292},    // nothing in it: all of it counts
      {"a{{foo}b", 13308},    // "{foo" is what stands between
      {"sluice:1{Xb3_9sQe2Lw}api:ann", 9158},
  };
  for (const auto& row : rows) EXPECT_EQ(SlotOf(row.key), row.slot) << row.key;
}

TEST(SlotOfTest, KeysOfOneIdentityLieInOneSlot) {
  std::string a;
  std::string b;
  const auto key = [](std::string_view rule) {
    return std::to_string(rule.size()) + ":" + std::string(rule) + std::string("\x03\0\0\0ann", 7);
  };
  AppendKeyName({}, KeyKind::kCounter, key("api"), &a);
  AppendKeyName({}, KeyKind::kSlots, key("exports"), &b);
  EXPECT_EQ(SlotOf(a), SlotOf(b));
}

TEST(ReadSlotsTest, ReadsWhatServersOfEachVersionSay) {
  const net::RedisReply reply = Reply(
      "*4|"
      // Version 3: host and port. The second is a replica.
      "*4|:0|:99|*2|$8|10.0.0.1|:7000|*2|$8|10.0.0.4|:7003|"
      // Version 4 to 6: an id. An empty host is that of who was asked.
      "*3|:100|:5460|*3|$0||:7001|$2|id|"
      // Version 7: more; a nil in place of a host, too.
      "*3|:5461|:5461|*4|$-1|:7002|$2|id|*0|"
      // A host name that is preferred but not known: its address stands there as well.
      "*3|:5462|:16383|*4|$1|?|:7003|$2|id|*2|$2|ip|$3|::1|");
  const auto map = ReadSlots(reply, kAsked);
  ASSERT_TRUE(map.ok()) << map.status();
  EXPECT_THAT(*map, ElementsAre(SlotRange{0, 99, {"10.0.0.1", 7000}},
                                SlotRange{100, 5460, {"10.0.0.1", 7001}},
                                SlotRange{5461, 5461, {"10.0.0.1", 7002}},
                                SlotRange{5462, 16383, {"::1", 7003}}));
}

TEST(ReadSlotsTest, LeavesOutWhatHasNoAddress) {
  const net::RedisReply reply = Reply(
      "*3|*3|:0|:9|*3|$1|?|:7003|$2|id|*3|:10|:19|*3|$1|a|:0|$2|id|*3|:20|:29|*3|$1|a|:1|$2|id|");
  EXPECT_THAT(*ReadSlots(reply, kAsked), ElementsAre(SlotRange{20, 29, {"a", 1}}));
  EXPECT_THAT(*ReadSlots(Reply("*0|"), kAsked), ElementsAre());
}

TEST(ReadSlotsTest, SaysWhatIsWrong) {
  const struct {
    std::string_view reply;
    std::string_view why;
  } rows[] = {
      {"-ERR This instance has cluster support disabled|", "cluster support disabled"},
      {"-NOPERM this user|", "NOPERM"},
      {"-|", "an error without a word"},
      {"+OK|", "no list"},
      {"$-1|", "no list"},
      {"*1|:1|", "without slots or a server"},
      {"*1|*2|:0|:1|", "without slots or a server"},
      {"*1|*3|$1|0|:1|*2|$1|a|:1|", "without slots or a server"},
      {"*1|*3|:0|$1|9|*2|$1|a|:1|", "without slots or a server"},
      {"*1|*3|:-1|:1|*2|$1|a|:1|", "slots -1 to 1"},
      {"*1|*3|:2|:1|*2|$1|a|:1|", "slots 2 to 1"},
      {"*1|*3|:0|:16384|*2|$1|a|:1|", "slots 0 to 16384"},
      {"*1|*3|:0|:1|:5|", "a server without an address"},
      {"*1|*3|:0|:1|*1|$1|a|", "a server without an address"},
      {"*1|*3|:0|:1|*2|$1|a|:65536|", "a port that is none"},
      {"*1|*3|:0|:1|*2|$1|a|:-1|", "a port that is none"},
      {"*1|*3|:0|:1|*2|$3|a b|:1|", "a host that is none"},
      {"*1|*3|:0|:1|*2|$1|\n|:1|", "a host that is none"},
      {"*2|*3|:0|:5|*2|$1|a|:1|*3|:5|:9|*2|$1|b|:1|", "slot 5 twice"},
  };
  for (const auto& row : rows) {
    const auto map = ReadSlots(Reply(std::string(row.reply)), kAsked);
    EXPECT_TRUE(absl::IsUnavailable(map.status())) << row.reply;
    EXPECT_THAT(std::string(map.status().message()), HasSubstr(std::string(row.why)));
  }
}

TEST(ReadRedirectTest, ReadsWhereToGo) {
  using Kind = Redirect::Kind;
  const struct {
    std::string_view error;
    Redirect redirect;
  } rows[] = {
      {"MOVED 3999 127.0.0.1:6381", {Kind::kMoved, 3999, {"127.0.0.1", 6381}}},
      {"ASK 16383 redis-2.example:6379", {Kind::kAsk, 16383, {"redis-2.example", 6379}}},
      {"MOVED 0 ::1:6381", {Kind::kMoved, 0, {"::1", 6381}}},
      {"MOVED 1 :6381", {Kind::kMoved, 1, {"", 6381}}},  // the host that was asked
      {"TRYAGAIN Multiple keys request during rehashing of slot", {Kind::kTryAgain, 0, {}}},
  };
  for (const auto& row : rows) EXPECT_EQ(ReadRedirect(row.error), row.redirect) << row.error;
}

TEST(ReadRedirectTest, FollowsNothingElse) {
  for (const std::string_view error : {"",
                                       "MOVED",
                                       "MOVED ",
                                       "MOVED 3999",
                                       "MOVED 3999 ",
                                       "MOVED 3999 a",
                                       "MOVED 3999 a:",
                                       "MOVED 3999 a:0",
                                       "MOVED 3999 a:65536",
                                       "MOVED 3999 a:1x",
                                       "MOVED 16384 a:1",
                                       "MOVED -1 a:1",
                                       "MOVED x a:1",
                                       "MOVED 1:2 a",
                                       "MOVED 3999 a b:1",
                                       "MOVED 3999 ?:1",
                                       "MOVEDX 1 a:1",
                                       "moved 1 a:1",
                                       "ASKING 1 a:1",
                                       "TRYAGAINX",
                                       "CLUSTERDOWN Hash slot",
                                       "CROSSSLOT Keys in request don't hash to the same slot",
                                       "ERR MOVED 1 a:1"}) {
    EXPECT_EQ(ReadRedirect(error), std::nullopt) << error;
  }
}

}  // namespace
}  // namespace sluice::redis
