// The connection against a server that the test plays by hand.
#include "sluice/net/redis_connection.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sluice/base/steady_now.h"
#include "sluice/net/testing/raw_client.h"
#include "sluice/net/testing/redis_on_loop.h"
#include "sluice/net/testing/tls_client.h"

namespace sluice::net {
namespace {

using namespace std::chrono_literals;
using namespace std::string_view_literals;
using ::testing::HasSubstr;
using testing::KeyPair;
using testing::LineLog;
using testing::Lines;
using testing::RawClient;
using testing::RawListener;
using testing::RedisOnLoop;
using testing::TestAuthority;
using testing::TlsClient;

constexpr std::string_view kPing = "*1\r\n$4\r\nPING\r\n";

std::string Bytes(const RedisOnLoop::Words& words) {
  std::string bytes;
  AppendRedisCommand(words, &bytes);
  return bytes;
}

class RedisConnectionTest : public ::testing::Test {
 protected:
  RedisConnectionOptions Options() {
    return {.address = {"127.0.0.1", listener_.port()},
            .jitter = [](Duration) { return Duration::zero(); }};
  }
  void Start() { Start(Options()); }
  void Start(RedisConnectionOptions options) { redis_.emplace(std::move(options)); }
  // The server's end of the next connection, before and after the greeting.
  void Accept() { server_.emplace(listener_.Accept()); }
  void Greet() {
    Accept();
    EXPECT_EQ(server_->ReadExactly(kPing.size()), kPing);
    server_->Send("+PONG\r\n");
    EXPECT_TRUE(redis_->AwaitState("ready"));
  }
  // The server has got these.
  void ExpectCommands(const std::vector<RedisOnLoop::Words>& commands) {
    for (const RedisOnLoop::Words& words : commands) {
      const std::string bytes = Bytes(words);
      EXPECT_EQ(server_->ReadExactly(bytes.size()), bytes);
    }
  }

  // Writes down the waits at most, in ms, and draws none.
  std::function<Duration(Duration)> Recorder() {
    return [this](Duration at_most) {
      drawn_.Add(std::to_string(at_most / 1ms));
      return Duration::zero();
    };
  }

  LineLog drawn_;
  RawListener listener_;
  std::optional<RawClient> server_;
  std::optional<RedisOnLoop> redis_;
};

TEST_F(RedisConnectionTest, GreetsBeforeItSendsAnything) {
  RedisConnectionOptions options = Options();
  options.user = "ann";
  options.password = "s3cret";
  options.database = 7;
  options.client_name = "sluice";
  Start(options);
  redis_->Send({{"GET", "a"}});
  Accept();
  ExpectCommands(
      {{"AUTH", "ann", "s3cret"}, {"SELECT", "7"}, {"CLIENT", "SETNAME", "sluice"}, {"PING"}});
  server_->Send("+OK\r\n+OK\r\n+OK\r\n");
  EXPECT_TRUE(server_->Silent(5ms));
  server_->Send("+PONG\r\n");
  ExpectCommands({{"GET", "a"}});
  server_->Send("$1\r\n5\r\n");
  EXPECT_EQ(redis_->Answers(1), (Lines{"5"}));
}

TEST_F(RedisConnectionTest, AGreetingThatIsRefusedIsNoConnection) {
  RedisConnectionOptions options = Options();
  options.user = "ann";
  options.password = "s3cret";
  Start(options);
  const std::pair<std::string_view, std::string_view> refusals[] = {
      {"-WRONGPASS invalid username-password pair\r\n-NOAUTH x\r\n", "WRONGPASS"},
      {"+OK\r\n-LOADING Redis is loading the dataset in memory\r\n", "LOADING"},
      {"HTTP/1.1 400 Bad Request\r\n\r\n", "got \"H\""},
      {"+OK\r\n*100000000\r\n", "larger than allowed"},
  };
  for (const auto& [answer, why] : refusals) {
    Accept();
    ExpectCommands({{"AUTH", "ann", "s3cret"}, {"PING"}});
    server_->Send(answer);
    EXPECT_TRUE(server_->Ended());
    EXPECT_THAT(redis_->Error(), HasSubstr(why));
  }
}

TEST_F(RedisConnectionTest, RepliesCutAtAnyByteReachTheirCommandsInOrder) {
  Start();
  Greet();
  redis_->Send({{"GET", "a"}, {"EVAL", "..."}, {"GET", "b"}, {"X"}});
  ExpectCommands({{"GET", "a"}, {"EVAL", "..."}, {"GET", "b"}, {"X"}});
  const std::string_view replies =
      "$4\r\n\r\n+a\r\n*2\r\n:12\r\n*2\r\n$1\r\nx\r\n$-1\r\n$0\r\n\r\n-ERR unknown\r\n";
  for (const char byte : replies) server_->Send({&byte, 1});
  EXPECT_EQ(redis_->Answers(4), (Lines{"\r\n+a", "[12 [x nil]]", "", "-ERR unknown"}));
}

TEST_F(RedisConnectionTest, OfSeveralRepliesTheLastCounts) {
  Start();
  Greet();
  LineLog answers;
  redis_->OnLoop([&](RedisConnection* redis) {
    const std::string two = Bytes({"ASKING"}) + Bytes({"GET", "a"});
    EXPECT_TRUE(
        redis
            ->Send(
                two, SteadyNow() + 20s, [&](auto reply) { answers.Add(testing::Shown(reply)); }, 2)
            .ok());
  });
  redis_->Send({{"GET", "b"}});
  ExpectCommands({{"ASKING"}, {"GET", "a"}, {"GET", "b"}});
  server_->Send("+OK\r\n$1\r\na\r\n$1\r\nb\r\n");
  EXPECT_EQ(redis_->Answers(1), (Lines{"b"}));
  EXPECT_EQ(answers.Take(1), (Lines{"a"}));
}

TEST_F(RedisConnectionTest, ALateReplyIsDroppedInOrderAndTheConnectionStays) {
  Start();
  Greet();
  redis_->Send({{"GET", "a"}, {"GET", "b"}}, 10ms);
  redis_->Send({{"GET", "c"}});
  ExpectCommands({{"GET", "a"}, {"GET", "b"}, {"GET", "c"}});
  EXPECT_EQ(redis_->Answers(2), (Lines{"DEADLINE_EXCEEDED", "DEADLINE_EXCEEDED"}));
  server_->Send("+a\r\n+b\r\n+c\r\n");
  EXPECT_EQ(redis_->Answers(1), (Lines{"c"}));
  redis_->Send({{"GET", "d"}});
  ExpectCommands({{"GET", "d"}});
  server_->Send("+d\r\n");
  EXPECT_EQ(redis_->Answers(1), (Lines{"d"}));
}

TEST_F(RedisConnectionTest, ANearDeadlineDoesNotWaitForAFarOne) {
  Start();
  Greet();
  redis_->Send({{"GET", "far"}});
  LineLog near;
  redis_->OnLoop([&](RedisConnection* redis) {
    for (const Time deadline : {SteadyNow() + 10ms, SteadyNow() + 30ms}) {
      const absl::Status sent =
          redis->Send(Bytes({"GET", "near"}), deadline, [&near, deadline](auto reply) {
            EXPECT_GE(SteadyNow(), deadline);
            near.Add(testing::Shown(reply));
          });
      EXPECT_TRUE(sent.ok());
    }
  });
  EXPECT_EQ(near.Take(2), (Lines{"DEADLINE_EXCEEDED", "DEADLINE_EXCEEDED"}));
  EXPECT_EQ(redis_->answers(), 0u);
}

TEST_F(RedisConnectionTest, WhatExpiresBeforeItIsSentIsNeverSent) {
  Start();
  redis_->Send({{"GET", "a"}}, 10ms);
  redis_->Send({{"GET", "b"}});
  redis_->Send({{"GET", "c"}}, 10ms);
  Accept();
  ExpectCommands({{"PING"}});
  EXPECT_EQ(redis_->Answers(2), (Lines{"DEADLINE_EXCEEDED", "DEADLINE_EXCEEDED"}));
  server_->Send("+PONG\r\n");
  ExpectCommands({{"GET", "b"}});
  server_->Send("+b\r\n");
  EXPECT_EQ(redis_->Answers(1), (Lines{"b"}));
  EXPECT_TRUE(server_->Silent(5ms));
}

TEST_F(RedisConnectionTest, WhatIsTooLateWhenItIsGivenIsNeverSent) {
  Start();
  Greet();
  redis_->OnLoop([&](RedisConnection*) {
    redis_->SendHere({{"GET", "a"}}, -1ms);
    redis_->SendHere({{"GET", "b"}});
    EXPECT_EQ(redis_->answers(), 0u);
  });
  EXPECT_EQ(redis_->Answers(1), (Lines{"DEADLINE_EXCEEDED"}));
  ExpectCommands({{"GET", "b"}});
  redis_->Send({{"GET", "c"}}, -1ms);
  EXPECT_EQ(redis_->Answers(1), (Lines{"DEADLINE_EXCEEDED"}));
  EXPECT_TRUE(server_->Silent(5ms));
}

TEST_F(RedisConnectionTest, RefusesWhatIsTooMuchAndSendsNothingOfIt) {
  RedisConnectionOptions options = Options();
  options.max_waiting = 3;
  options.max_unsent_bytes = 250;
  Start(options);
  Greet();
  const std::string long_key(150, 'k');
  redis_->Send({{"GET", "a"}, {"GET", long_key}, {"GET", long_key}, {"GET", "b"}, {"GET", "c"}});
  EXPECT_EQ(redis_->Answers(2), (Lines{"!RESOURCE_EXHAUSTED", "!RESOURCE_EXHAUSTED"}));
  ExpectCommands({{"GET", "a"}, {"GET", long_key}, {"GET", "b"}});
  server_->Send("+a\r\n");
  EXPECT_EQ(redis_->Answers(1), (Lines{"a"}));
  redis_->Send({{"GET", "d"}, {"GET", "e"}});
  EXPECT_EQ(redis_->Answers(1), (Lines{"!RESOURCE_EXHAUSTED"}));
  ExpectCommands({{"GET", "d"}});
  server_->Send("+k\r\n+b\r\n+d\r\n");
  EXPECT_EQ(redis_->Answers(3), (Lines{"k", "b", "d"}));
}

TEST_F(RedisConnectionTest, OneWhoseReplyIsStillDueKeepsItsPlace) {
  RedisConnectionOptions options = Options();
  options.max_waiting = 1;
  Start(options);
  Greet();
  redis_->Send({{"GET", "a"}}, 1ms);
  EXPECT_EQ(redis_->Answers(1), (Lines{"DEADLINE_EXCEEDED"}));
  ExpectCommands({{"GET", "a"}});
  redis_->Send({{"GET", "b"}});
  EXPECT_EQ(redis_->Answers(1), (Lines{"!RESOURCE_EXHAUSTED"}));
}

TEST_F(RedisConnectionTest, AnEndInTheMiddleFailsAllThatWaitInOrder) {
  Start();
  Greet();
  redis_->Send({{"1"}, {"2"}, {"3"}});
  ExpectCommands({{"1"}, {"2"}, {"3"}});
  server_->Send("+one\r\n$100\r\nhalf of");
  EXPECT_EQ(redis_->Answers(1), (Lines{"one"}));
  server_->Close();
  EXPECT_EQ(redis_->Answers(2), (Lines{"UNAVAILABLE", "UNAVAILABLE"}));
  EXPECT_THAT(redis_->Error(), HasSubstr("was ended"));
  Greet();
  redis_->Send({{"4"}});
  ExpectCommands({{"4"}});
  server_->Send("+four\r\n");
  EXPECT_EQ(redis_->Answers(1), (Lines{"four"}));
}

TEST_F(RedisConnectionTest, AnEndAtAnyByteTellsEachOnce) {
  Start();
  const std::string_view replies = "+a\r\n$1\r\nb\r\n*2\r\n:1\r\n$-1\r\n";
  const std::pair<std::size_t, std::string> whole[] = {{4, "a"}, {11, "b"}, {24, "[1 nil]"}};
  for (std::size_t size = 0; size <= replies.size(); ++size) {
    Greet();
    redis_->Send({{"1"}, {"2"}, {"3"}});
    ExpectCommands({{"1"}, {"2"}, {"3"}});
    server_->Send(replies.substr(0, size));
    server_->Close();
    Lines answers;
    for (const auto& [end, shown] : whole) answers.push_back(end <= size ? shown : "UNAVAILABLE");
    EXPECT_EQ(redis_->Answers(3), answers) << size;
    EXPECT_TRUE(redis_->AwaitState("waiting"));
    EXPECT_EQ(redis_->answers(), 0u) << size;
  }
}

TEST_F(RedisConnectionTest, DamageAndWordsUnaskedForEndTheConnection) {
  Start();
  for (const auto& [bytes, why] : {std::pair{"!what\r\n", "Protocol error"},
                                   {"*100000000\r\n", "larger than allowed"},
                                   {"+1\r\n+2\r\n", "nobody asked for"}}) {
    Greet();
    redis_->Send({{"1"}});
    ExpectCommands({{"1"}});
    server_->Send(bytes);
    EXPECT_EQ(redis_->Answers(1), (Lines{bytes[0] == '+' ? "1" : "UNAVAILABLE"}));
    EXPECT_TRUE(server_->Ended());
    EXPECT_THAT(redis_->Error(), HasSubstr(why));
  }
}

TEST_F(RedisConnectionTest, AServerThatFallsSilentIsGivenUp) {
  RedisConnectionOptions options = Options();
  options.max_silence = 20s;
  Start(options);
  Greet();
  redis_->Send({{"1"}}, 5ms);
  redis_->Send({{"2"}, {"3"}});
  ExpectCommands({{"1"}, {"2"}, {"3"}});
  EXPECT_EQ(redis_->Answers(1), (Lines{"DEADLINE_EXCEEDED"}));
  redis_->Pass(15s);
  server_->Send("+one\r\n+two\r\n+half");
  EXPECT_EQ(redis_->Answers(1), (Lines{"two"}));
  redis_->Pass(15s);
  EXPECT_EQ(redis_->answers(), 0u);
  redis_->Pass(10s);
  EXPECT_EQ(redis_->Answers(1), (Lines{"UNAVAILABLE"}));
  EXPECT_TRUE(server_->Ended());
  EXPECT_THAT(redis_->Error(), HasSubstr("does not answer any more"));
  Greet();
}

TEST_F(RedisConnectionTest, OneThatIsAskedNothingMayBeSilent) {
  Start();
  Greet();
  redis_->Pass(10s);
  redis_->Send({{"1"}});
  ExpectCommands({{"1"}});
  server_->Send("+one\r\n");
  EXPECT_EQ(redis_->Answers(1), (Lines{"one"}));
  redis_->Pass(10s);
  redis_->Send({{"2"}});
  ExpectCommands({{"2"}});
  server_->Send("+two\r\n");
  EXPECT_EQ(redis_->Answers(1), (Lines{"two"}));
}

TEST_F(RedisConnectionTest, AGreetingIsNotAwaitedForEver) {
  Start();
  redis_->Send({{"1"}});
  Accept();
  ExpectCommands({{"PING"}});
  redis_->Pass(1200ms);
  EXPECT_EQ(redis_->Answers(1), (Lines{"UNAVAILABLE"}));
  EXPECT_THAT(redis_->Error(), HasSubstr("does not answer the greeting"));
}

TEST_F(RedisConnectionTest, CommandsAreRefusedAtOnceWhileItIsGone) {
  RedisConnectionOptions options = Options();
  options.jitter = [](Duration) { return Duration{1h}; };
  Start(options);
  Greet();
  server_->Close();
  EXPECT_TRUE(redis_->AwaitState("waiting"));
  EXPECT_EQ(redis_->Ask({{"1"}, {"2"}}), (Lines{"!UNAVAILABLE", "!UNAVAILABLE"}));
}

TEST_F(RedisConnectionTest, TriesAgainEverMoreSlowly) {
  RedisConnectionOptions options = Options();
  options.jitter = Recorder();
  listener_.Close();
  Start(options);
  EXPECT_EQ(drawn_.Take(8), (Lines{"10", "20", "40", "80", "160", "320", "500", "500"}));
  EXPECT_THAT(redis_->Error(), HasSubstr("Connection refused"));
}

TEST_F(RedisConnectionTest, AConnectionThatIsSoonLostSlowsDownToo) {
  RedisConnectionOptions options = Options();
  options.jitter = Recorder();
  options.max_backoff = 20s;
  Start(options);
  for (const char* at_most : {"10", "20", "40", "80"}) {
    Greet();
    server_->Close();
    EXPECT_EQ(drawn_.Take(1), (Lines{at_most}));
  }
}

TEST_F(RedisConnectionTest, AfterOneThatHeldTheWaitsBeginAnew) {
  RedisConnectionOptions options = Options();
  options.jitter = Recorder();
  options.min_backoff = 1ms;
  options.max_backoff = 4ms;
  Start(options);
  for (const char* at_most : {"1", "2", "4", "4"}) {
    Accept();
    server_->Close();
    EXPECT_EQ(drawn_.Take(1), (Lines{at_most}));
  }
  Greet();
  EXPECT_TRUE(server_->Silent(10ms));
  server_->Close();
  EXPECT_EQ(drawn_.Take(1), (Lines{"1"}));
}

TEST_F(RedisConnectionTest, TheOwnDrawIsAtMostWhatItMayBe) {
  RedisConnectionOptions options = Options();
  options.jitter = nullptr;
  options.max_backoff = options.min_backoff = 2ms;
  listener_.Close();
  Start(options);
  for (int i = 0; i < 20; ++i) {
    EXPECT_TRUE(redis_->AwaitState("waiting"));
    EXPECT_TRUE(redis_->AwaitState("connecting"));
  }
}

TEST_F(RedisConnectionTest, DestroyedItTellsAllThatWait) {
  Start();
  Greet();
  redis_->Send({{"1"}, {"2"}, {"3"}});
  ExpectCommands({{"1"}, {"2"}, {"3"}});
  server_->Send("+one\r\n");
  EXPECT_EQ(redis_->Answers(1), (Lines{"one"}));
  redis_->Destroy();
  EXPECT_EQ(redis_->answers(), 2u);
  EXPECT_EQ(redis_->Answers(2), (Lines{"CANCELLED", "CANCELLED"}));
  EXPECT_TRUE(server_->Ended());
}

TEST_F(RedisConnectionTest, MayBeDestroyedByWhoeverIsTold) {
  const struct {
    std::string told;
    Duration deadline;
    std::string_view server;
  } rows[] = {
      {"one", RedisOnLoop::kLong, "answers"},
      {"DEADLINE_EXCEEDED", 5ms, "is silent"},
      {"UNAVAILABLE", RedisOnLoop::kLong, "hangs up"},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.told);
    Start();
    Greet();
    const bool silent = row.server == "is silent";
    LineLog told;
    if (silent) redis_->Send({{"0"}});
    redis_->SendThen({"1"}, row.deadline, [&](std::string what) {
      told.Add(std::move(what));
      redis_->DestroyHere();
    });
    if (!silent) redis_->Send({{"2"}});
    if (row.server == "answers") {
      ExpectCommands({{"1"}, {"2"}});
      server_->Send("+one\r\n+two\r\n");
    }
    if (row.server == "hangs up") server_->Close();
    EXPECT_EQ(told.Take(1), (Lines{row.told}));
    EXPECT_EQ(redis_->Answers(1), (Lines{"CANCELLED"}));
  }
}

TEST_F(RedisConnectionTest, MayBeDestroyedWhenItsStateChanges) {
  for (const RedisState last :
       {RedisState::kReady, RedisState::kWaiting, RedisState::kConnecting}) {
    RedisConnectionOptions options = Options();
    options.on_state = [this, last](RedisState state) {
      if (state == last) redis_->DestroyHere();
    };
    Start(options);
    redis_->Send({{"1"}});
    Accept();
    ExpectCommands({{"PING"}});
    if (last == RedisState::kReady) {
      server_->Send("+PONG\r\n");
    } else {
      server_->Close();
    }
    const std::string told = last == RedisState::kConnecting ? "UNAVAILABLE" : "CANCELLED";
    EXPECT_EQ(redis_->Answers(1), (Lines{told}));
  }
}

TEST_F(RedisConnectionTest, WhoIsToldMaySendMore) {
  Start();
  Greet();
  redis_->SendThen({"1"}, RedisOnLoop::kLong,
                   [&](const std::string&) { redis_->SendHere({{"3"}}); });
  redis_->SendThen({"2"}, 5ms, [&](const std::string&) { redis_->SendHere({{"2 again"}}); });
  ExpectCommands({{"1"}, {"2"}, {"2 again"}});
  server_->Send("+one\r\n");
  ExpectCommands({{"3"}});
  redis_->SendThen({"4"}, RedisOnLoop::kLong,
                   [&](const std::string&) { redis_->SendHere({{"5"}}); });
  ExpectCommands({{"4"}});
  server_->Send("+late\r\n+two\r\n+three\r\n");
  EXPECT_EQ(redis_->Answers(2), (Lines{"two", "three"}));
  server_->Close();
  EXPECT_EQ(redis_->Answers(1), (Lines{"!UNAVAILABLE"}));
}

TEST_F(RedisConnectionTest, IsRenewedOnceForAllThatSayItIsWrong) {
  RedisConnectionOptions options = Options();
  options.jitter = Recorder();
  Start(options);
  Greet();
  redis_->OnLoop([&](RedisConnection* redis) {
    for (int i = 0; i < 3; ++i) {
      const absl::Status sent = redis->Send(Bytes({"SET"}), SteadyNow() + 20s, [redis](auto reply) {
        if (reply.ok() && reply->is_error()) redis->Renew("READONLY a replica");
      });
      EXPECT_TRUE(sent.ok());
    }
  });
  redis_->Send({{"SET"}});
  ExpectCommands({{"SET"}, {"SET"}, {"SET"}, {"SET"}});
  server_->Send("-READONLY a\r\n-READONLY b\r\n-READONLY c\r\n");
  EXPECT_EQ(redis_->Answers(1), (Lines{"UNAVAILABLE"}));
  EXPECT_TRUE(server_->Ended());
  EXPECT_THAT(redis_->Error(), HasSubstr("READONLY a replica"));
  Greet();
  EXPECT_EQ(drawn_.size(), 1u);
  redis_->Send({{"4"}});
  ExpectCommands({{"4"}});
}

TEST_F(RedisConnectionTest, MayBeDestroyedBeforeItIsReady) {
  Start();
  redis_->Send({{"1"}});
  redis_->Destroy();
  EXPECT_EQ(redis_->Answers(1), (Lines{"CANCELLED"}));
  Start();
  Accept();
  redis_.reset();
}

TEST_F(RedisConnectionTest, AllOfOneTurnLeavesTogether) {
  TestAuthority authority;
  const KeyPair pair = authority.Issue({.names = {"127.0.0.1"}});
  RedisConnectionOptions options = Options();
  options.tls = TlsClientContext::Load({.ca_file = authority.ca_file()}).value();
  Start(options);
  TlsClient server(listener_.Accept(), {.server = true, .pair = pair});
  ASSERT_TRUE(server.Handshake()) << server.why();
  EXPECT_EQ(server.ReadExactly(kPing.size()), kPing);
  server.Send("+PONG\r\n");
  EXPECT_TRUE(redis_->AwaitState("ready"));
  const int before = server.records();
  const std::string command = Bytes({"GET", "a"});
  redis_->Send(std::vector<RedisOnLoop::Words>(100, {"GET", "a"}));
  server.ReadExactly(100 * command.size());
  EXPECT_EQ(server.records() - before, 1);
}

}  // namespace
}  // namespace sluice::net
