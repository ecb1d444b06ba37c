#include "sluice/net/internal/redis_greeting.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace sluice::net::internal {
namespace {

TEST(RedisGreeting, SaysNoMoreThanItWasTold) {
  const struct {
    RedisGreeting::Options options;
    std::vector<std::vector<std::string_view>> commands;
  } rows[] = {
      {{}, {{"PING"}}},
      {{.password = "p"}, {{"AUTH", "p"}, {"PING"}}},
      {{.user = "ann", .password = "p"}, {{"AUTH", "ann", "p"}, {"PING"}}},
      {{.user = "ann"}, {{"AUTH", "ann", ""}, {"PING"}}},  // one that needs no password
      {{.database = 3}, {{"SELECT", "3"}, {"PING"}}},
      {{.password = "p", .database = 15, .client_name = "sluice"},
       {{"AUTH", "p"}, {"SELECT", "15"}, {"CLIENT", "SETNAME", "sluice"}, {"PING"}}},
      {{.primary = true}, {{"PING"}, {"ROLE"}}},
  };
  for (const auto& row : rows) {
    std::string bytes;
    for (const auto& words : row.commands) AppendRedisCommand(words, &bytes);
    EXPECT_EQ(RedisGreeting(row.options).bytes(), bytes);
  }
}

TEST(RedisGreeting, TellsApartWhyItIsRefusedAndNeverSaysThePassword) {
  const struct {
    std::string answers;
    std::string why;  // empty: it is not
  } rows[] = {
      {"+OK\r\n+OK\r\n+OK\r\n+PONG\r\n", ""},
      {"-WRONGPASS invalid username-password pair or user is disabled.\r\n",
       "WRONGPASS invalid username-password pair or user is disabled. (to AUTH)"},
      {"-NOPERM this user has no permissions to run the 'auth' command\r\n",
       "NOPERM this user has no permissions to run the 'auth' command (to AUTH)"},
      {"-ERR unknown command 'AUTH', with args beginning with: 'ann' 's3cret' \r\n",
       "ERR: the server refuses AUTH; it knows no such users or passwords"},
      {"-ERR max number of clients reached\r\n", "ERR max number of clients reached"},
      {"+OK\r\n-ERR DB index is out of range\r\n", "ERR DB index is out of range (to SELECT)"},
      {"+OK\r\n-NOPERM no permission\r\n", "NOPERM no permission (to SELECT)"},
      {"+OK\r\n+OK\r\n-NOAUTH Authentication required.\r\n",
       "NOAUTH Authentication required. (to CLIENT SETNAME)"},
      {"+OK\r\n+OK\r\n+OK\r\n-LOADING Redis is loading\r\n", "LOADING Redis is loading (to PING)"},
      {"+OK\r\n+OK\r\n+OK\r\n-MASTERDOWN Link with MASTER is down\r\n",
       "MASTERDOWN Link with MASTER is down (to PING)"},
      // A user who may only run scripts, and a server that knows of no names.
      {"+OK\r\n+OK\r\n-NOPERM no\r\n-NOPERM no\r\n", ""},
      {"+OK\r\n+OK\r\n-ERR unknown subcommand\r\n+PONG\r\n", ""},
  };
  for (const auto& row : rows) {
    RedisGreeting greeting(
        {.user = "ann", .password = "s3cret", .database = 1, .client_name = "sluice"});
    RedisReplyReader reader;
    reader.Feed(row.answers);
    absl::Status status;
    RedisReply reply;
    while (status.ok() && !greeting.done()) {
      ASSERT_EQ(reader.Next(&reply), RedisReplyReader::Step::kReply) << row.answers;
      status = greeting.Answer(reply);
    }
    EXPECT_EQ(status.message(), row.why);
    EXPECT_EQ(status.ok(), row.why.empty());
  }
}

TEST(RedisGreeting, TakesNoneButAPrimaryWhereItMustBeOne) {
  const struct {
    std::string role;
    std::string why;  // empty: it is not refused
  } rows[] = {
      {"*3\r\n$6\r\nmaster\r\n:5\r\n*0\r\n", ""},
      {"*1\r\n+master\r\n", ""},
      {"*5\r\n$5\r\nslave\r\n$1\r\na\r\n:1\r\n$9\r\nconnected\r\n:1\r\n",
       "the server is a replica"},
      {"*2\r\n$8\r\nsentinel\r\n*0\r\n", "the server is no primary; its role is 'sentinel'"},
      {"*1\r\n$3\r\na\r\n\r\n", "the server is no primary; its role is 'a\\r\\n'"},
      {"*1\r\n:1\r\n", "the server is no primary; its role is ''"},
      {"*0\r\n", "the server is no primary; its role is ''"},
      {"*-1\r\n", "the server is no primary; its role is ''"},
      {"$6\r\nmaster\r\n", "the server is no primary; its role is ''"},
      {"+OK\r\n", "the server is no primary; its role is ''"},
      {"-NOPERM no permission\r\n", "NOPERM no permission (to ROLE)"},
      {"-ERR unknown command\r\n", "ERR unknown command (to ROLE)"},
  };
  for (const auto& row : rows) {
    RedisGreeting greeting({.primary = true});
    RedisReplyReader reader;
    reader.Feed("+PONG\r\n" + row.role);
    RedisReply reply;
    ASSERT_EQ(reader.Next(&reply), RedisReplyReader::Step::kReply);
    EXPECT_TRUE(greeting.Answer(reply).ok());
    ASSERT_EQ(reader.Next(&reply), RedisReplyReader::Step::kReply) << row.role;
    EXPECT_FALSE(greeting.done());
    EXPECT_EQ(greeting.Answer(reply).message(), row.why);
    EXPECT_TRUE(greeting.done());
  }
}

}  // namespace
}  // namespace sluice::net::internal
