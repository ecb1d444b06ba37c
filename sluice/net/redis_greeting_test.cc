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

}  // namespace
}  // namespace sluice::net::internal
