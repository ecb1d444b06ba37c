// The connection against a real server.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "sluice/net/redis_connection.h"
#include "sluice/net/testing/certificates.h"
#include "sluice/net/testing/redis_on_loop.h"
#include "sluice/net/testing/redis_server.h"

namespace sluice::net {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using testing::KeyPair;
using testing::Lines;
using testing::RedisOnLoop;
using testing::RedisServer;
using testing::TestAuthority;

RedisConnectionOptions To(const RedisServer& server) {
  return {.unix_socket = server.unix_socket(), .max_backoff = 20ms};
}

RedisConnectionOptions ToPort(const RedisServer& server) {
  return {.address = {"127.0.0.1", server.port()}, .max_backoff = 20ms};
}

TEST(RedisLive, AnswersThousandsInOrder) {
  RedisServer server;
  RedisOnLoop redis(To(server));
  for (int round = 0; round < 20; ++round) {
    redis.Send(std::vector<RedisOnLoop::Words>(1000, {"INCR", "n"}));
    const Lines answers = redis.Answers(1000);
    ASSERT_EQ(answers.size(), 1000u);
    for (int i = 0; i < 1000; ++i) ASSERT_EQ(answers[i], std::to_string(round * 1000 + i + 1));
  }
}

TEST(RedisLive, CarriesAnyBytesAndLargeOnes) {
  RedisServer server;
  RedisOnLoop redis(To(server));
  std::string large(900'000, '\r');
  large[450'000] = '\0';
  EXPECT_EQ(redis.Ask({{"SET", "large", large}, {"GET", "large"}}), (Lines{"OK", large}));
  EXPECT_EQ(redis.Ask({{"EVAL", "return {1, {'a', false}, redis.error_reply('MINE x')}", "0"}}),
            (Lines{"[1 [a nil] -MINE x]"}));
}

TEST(RedisLive, GreetsAsUserOfTheAcl) {
  RedisServer server({.listens = RedisServer::Listens::kTcp});
  ASSERT_EQ(server
                .Ask({"ACL", "SETUSER", "ann", "on", ">s3cret", "~*", "-@all", "+set", "+get",
                      "+select", "+client|list", "+client|setname"})
                .text(),
            "OK");
  RedisConnectionOptions options = ToPort(server);
  options.user = "ann";
  options.password = "s3cret";
  options.database = 5;
  options.client_name = "sluice-test";
  RedisOnLoop redis(options);
  EXPECT_EQ(redis.Ask({{"SET", "a", "1"}}), (Lines{"OK"}));
  EXPECT_THAT(redis.Ask({{"INCR", "a"}}).at(0), HasSubstr("-NOPERM"));
  EXPECT_EQ(server.Ask({"GET", "a"}).kind(), RedisKind::kNil);  // in database 0
  const std::string clients(server.Ask({"CLIENT", "LIST"}).text());
  EXPECT_THAT(clients, HasSubstr("name=sluice-test"));
  EXPECT_THAT(clients, HasSubstr("user=ann"));
}

TEST(RedisLive, SaysWhyItIsNotGreeted) {
  RedisServer server({.more = {"--requirepass", "right"}});
  const struct {
    std::string user, password;
    std::uint32_t database;
    std::string why;
  } rows[] = {
      {"", "", 0, "NOAUTH"},
      {"", "s3cret", 0, "WRONGPASS"},
      {"ann", "s3cret", 0, "WRONGPASS"},
      {"", "right", 99, "out of range (to SELECT)"},
  };
  for (const auto& row : rows) {
    RedisConnectionOptions options = To(server);
    options.user = row.user;
    options.password = row.password;
    options.database = row.database;
    RedisOnLoop redis(options);
    EXPECT_TRUE(redis.AwaitState("waiting"));
    EXPECT_EQ(redis.Ask({{"GET", "a"}}), (Lines{"!UNAVAILABLE"}));
    const std::string error = redis.Error();
    EXPECT_THAT(error, HasSubstr("redis " + server.unix_socket() + ": "));
    EXPECT_THAT(error, HasSubstr(row.why));
    EXPECT_THAT(error, ::testing::Not(HasSubstr("s3cret")));
  }
}

TEST(RedisLive, FindsAServerThatWasKilledAndRestarted) {
  for (const auto listens : {RedisServer::Listens::kUnix, RedisServer::Listens::kTcp}) {
    RedisServer server({.listens = listens});
    RedisOnLoop redis(listens == RedisServer::Listens::kUnix ? To(server) : ToPort(server));
    EXPECT_EQ(redis.Ask({{"INCR", "n"}}), (Lines{"1"}));
    server.Kill();
    EXPECT_TRUE(redis.AwaitState("waiting"));
    EXPECT_EQ(redis.Ask({{"INCR", "n"}}), (Lines{"!UNAVAILABLE"}));
    server.Start();
    EXPECT_TRUE(redis.AwaitState("ready"));
    EXPECT_EQ(redis.Ask({{"INCR", "n"}}), (Lines{"1"}));
  }
}

TEST(RedisLive, WhatWaitsWhenTheServerDiesIsToldOnce) {
  RedisServer server;
  RedisOnLoop redis(To(server));
  EXPECT_TRUE(redis.AwaitState("ready"));
  server.Pause();
  redis.Send(std::vector<RedisOnLoop::Words>(500, {"INCR", "n"}));
  server.Kill();
  EXPECT_EQ(redis.Answers(500), Lines(500, "UNAVAILABLE"));
  EXPECT_TRUE(redis.AwaitState("waiting"));
  EXPECT_EQ(redis.answers(), 0u);
}

TEST(RedisLive, AfterAPauseRepliesStillMeetTheirCommands) {
  RedisServer server;
  RedisConnectionOptions options = To(server);
  options.max_silence = 20s;
  RedisOnLoop redis(options);
  EXPECT_EQ(redis.Ask({{"INCR", "n"}}), (Lines{"1"}));
  server.Pause();
  redis.Send({{"INCR", "n"}, {"INCR", "n"}, {"INCR", "n"}}, 5ms);
  EXPECT_EQ(redis.Answers(3), Lines(3, "DEADLINE_EXCEEDED"));
  redis.Send({{"INCR", "n"}});
  server.Resume();
  EXPECT_EQ(redis.Answers(1), (Lines{"5"}));  // the three were carried out
  EXPECT_EQ(redis.Ask({{"INCR", "n"}}), (Lines{"6"}));
}

TEST(RedisLive, AServerThatStandsStillIsLeftAndFoundAgain) {
  RedisServer server;
  RedisConnectionOptions options = To(server);
  options.max_silence = 50ms;
  options.connect_timeout = 50ms;
  RedisOnLoop redis(options);
  EXPECT_EQ(redis.Ask({{"INCR", "n"}}), (Lines{"1"}));
  server.Pause();
  redis.Send({{"GET", "n"}});
  EXPECT_EQ(redis.Answers(1), (Lines{"UNAVAILABLE"}));
  for (const char* state : {"waiting", "connecting", "waiting", "connecting"}) {
    EXPECT_TRUE(redis.AwaitState(state));  // the greeting is not awaited for ever either
  }
  server.Resume();
  EXPECT_TRUE(redis.AwaitState("ready"));
  EXPECT_EQ(redis.Ask({{"GET", "n"}}), (Lines{"1"}));
}

TEST(RedisLive, SpeaksTlsAndShowsWhoItIs) {
  TestAuthority authority;
  const KeyPair site = authority.Issue({.names = {"redis.test"}});
  const KeyPair ours = authority.Issue({.names = {"sluice.test"}});
  RedisServer server({.listens = RedisServer::Listens::kTls,
                      .more = {"--tls-cert-file", site.certificate_file, "--tls-key-file",
                               site.key_file, "--tls-ca-cert-file", authority.ca_file()}});
  const auto ask = [&](const TlsClientContext::Options& tls) -> std::string {
    RedisConnectionOptions options = ToPort(server);
    options.tls = TlsClientContext::Load(tls).value();
    RedisOnLoop redis(options);
    const Lines answers = redis.Ask({{"SET", "a", "1"}, {"GET", "a"}});
    if (answers != Lines{"OK", "1"}) return redis.Error();
    // And once more, with the ticket that the server gave.
    server.Ask({"CLIENT", "KILL", "TYPE", "normal"});
    EXPECT_TRUE(redis.AwaitState("waiting"));
    EXPECT_TRUE(redis.AwaitState("ready"));
    EXPECT_EQ(redis.Ask({{"GET", "a"}}), (Lines{"1"}));
    return "";
  };
  TlsClientContext::Options tls{.ca_file = authority.ca_file(),
                                .certificate_file = ours.certificate_file,
                                .key_file = ours.key_file,
                                .server_name = "redis.test"};
  EXPECT_EQ(ask(tls), "");
  tls.server_name = "other.test";
  EXPECT_THAT(ask(tls), HasSubstr("TLS handshake"));
  tls.server_name = "redis.test";
  tls.certificate_file = tls.key_file = "";
  EXPECT_THAT(ask(tls), HasSubstr("was ended"));
}

TEST(RedisLive, LooksUpAName) {
  RedisServer server({.listens = RedisServer::Listens::kTcp});
  RedisConnectionOptions options = ToPort(server);
  options.address.host = "localhost";
  RedisOnLoop redis(options);
  EXPECT_EQ(redis.Ask({{"PING"}}), (Lines{"PONG"}));
}

}  // namespace
}  // namespace sluice::net
