#include "sluice/net/testing/redis_server.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>

namespace sluice::net::testing {
namespace {

TEST(RedisServer, AnswersAndForgetsWhenItIsKilled) {
  std::string folder;
  {
    RedisServer server;
    folder = server.folder();
    EXPECT_EQ(server.Ask({"SET", "a", "1"}).text(), "OK");
    EXPECT_EQ(server.Ask({"GET", "a"}).text(), "1");
    server.Kill();
    server.Start();
    EXPECT_EQ(server.Ask({"GET", "a"}).kind(), RedisKind::kNil);
    EXPECT_TRUE(std::filesystem::exists(folder));
  }
  EXPECT_FALSE(std::filesystem::exists(folder));
}

TEST(RedisServer, ListensOnItsPortAgain) {
  RedisServer server({.listens = RedisServer::Listens::kTcp, .more = {"--requirepass", "secret"}});
  const std::uint16_t port = server.port();
  EXPECT_EQ(RawRedis(port).Ask({"GET", "a"}).error_code(), "NOAUTH");
  server.Kill();
  server.Start();
  EXPECT_EQ(server.port(), port);
  EXPECT_EQ(RawRedis(port).Ask({"AUTH", "secret"}).text(), "OK");
}

TEST(RedisServer, StandsStillWhilePaused) {
  RedisServer server;
  RawRedis client(server.unix_socket());
  server.Pause();
  std::string commands;
  for (const std::string_view key : {"a", "b"}) {
    const std::string_view words[] = {"INCR", key};
    AppendRedisCommand(words, &commands);
  }
  client.Send(commands);
  server.Resume();
  EXPECT_EQ(client.Read().integer(), 1);
  EXPECT_EQ(client.Read().integer(), 1);
}

}  // namespace
}  // namespace sluice::net::testing
