// The store while a real server fails, in each of its ways, and afterwards.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/net/testing/redis_server.h"
#include "sluice/store/redis/redis_store.h"
#include "sluice/store/redis/testing/store_on_loop.h"

namespace sluice::redis {
namespace {

using namespace std::chrono_literals;
using net::testing::RawRedis;
using net::testing::RedisServer;
using ::testing::HasSubstr;
using testing::Key;
using testing::LimitPtr;
using testing::Request;
using testing::StoreOnLoop;
using testing::ToSocket;
using testing::Want;

class RedisStoreOutageTest : public ::testing::Test {
 protected:
  void Start() { Start(ToSocket(server_)); }
  void Start(const RedisStoreOptions& options) {
    store_.emplace(options);
    limit_ = store_->Prepare(*token_bucket::MakeLimit({1000, 1h}, 100'000));
  }
  // A request that has room.
  Want Some() { return {.key = Key("api", "ann"), .limit = limit_}; }
  absl::Status Ask(Duration deadline = StoreOnLoop::kLong) {
    Request request(Some());
    store_->Ask(request, deadline);
    EXPECT_EQ(request.allowed(), request.status().ok());
    return request.status();
  }
  void ExpectUnavailable(std::string_view word) {
    const absl::Status status = Ask();
    EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(std::string(word)));
  }
  // Decisions are made again, sooner or later.
  void ExpectRecovery() {
    EXPECT_TRUE(store_->AwaitThat([&](const RedisCounters&) { return Ask().ok(); }));
    EXPECT_TRUE(store_->AwaitThat([&](const RedisCounters&) { return store_->health().up; }));
  }
  // Asks until the breaker opens. Each waits as long as it said, and the timers are not late.
  void AskUntilRefused() {
    int late = 0;
    for (; late < 1000; ++late) {
      Request request(Some());
      store_->Ask(request, 5ms);
      if (absl::IsUnavailable(request.status())) break;
      EXPECT_EQ(request.status().code(), absl::StatusCode::kDeadlineExceeded) << request.status();
      EXPECT_GE(request.waited(), 5ms);
      EXPECT_LT(request.waited(), 5s);
    }
    EXPECT_GE(late, 10);
    ExpectUnavailable("not asked for now");
    EXPECT_FALSE(store_->health().up);
  }
  std::size_t ClientsOfTheServer() {
    const std::string clients(server_.Ask({"CLIENT", "LIST"}).text());
    return static_cast<std::size_t>(std::ranges::count(clients, '\n')) - 1;  // but for who asks
  }

  RedisServer server_;
  LimitPtr limit_;
  std::optional<StoreOnLoop> store_;
};

TEST_F(RedisStoreOutageTest, HowLongEachWaitedIsCountedHoweverItEnded) {
  Start();
  const RedisHistogram& waits = store_->counters().waits;
  const auto total = [&waits] {
    std::uint64_t sum = 0;
    for (std::size_t i = 0; i < RedisHistogram::kBuckets; ++i) sum += waits[i];
    return sum;
  };
  ASSERT_TRUE(Ask().ok());
  EXPECT_EQ(total(), 1u);
  const Duration before = waits.sum();
  server_.Pause();
  EXPECT_EQ(Ask(30ms).code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(total(), 2u);
  EXPECT_GE(waits.sum() - before, 30ms);
  server_.Kill();
  EXPECT_TRUE(store_->AwaitThat([&](const RedisCounters&) { return !store_->health().up; }));
  EXPECT_FALSE(Ask().ok());
  EXPECT_EQ(total(), 2u) << "who was refused did not wait";
}

TEST_F(RedisStoreOutageTest, AServerThatIsKilledIsFoundAgain) {
  Start();
  ASSERT_TRUE(Ask().ok());
  server_.Kill();
  EXPECT_TRUE(store_->AwaitThat([&](const RedisCounters&) { return !store_->health().up; }));
  ExpectUnavailable("redis");
  EXPECT_EQ(store_->counters().refused.value(), 1u) << "at once, not when the next attempt fails";
  EXPECT_THAT(store_->health().why, HasSubstr("redis"));
  server_.Start();
  ExpectRecovery();
  EXPECT_EQ(store_->Healths(3), (net::testing::Lines{"up", "down", "up"}));
}

TEST_F(RedisStoreOutageTest, WhoWaitsWhileItDiesIsToldOnceAndAtOnce) {
  Start();
  ASSERT_TRUE(Ask().ok());
  server_.Pause();
  std::vector<std::unique_ptr<Request>> requests;
  std::vector<Request*> all;
  for (int i = 0; i < 500; ++i) {
    requests.push_back(std::make_unique<Request>(Some()));
    all.push_back(requests.back().get());
  }
  store_->Send(all);
  server_.Kill();
  ASSERT_TRUE(store_->Await(all));
  for (const Request* request : all) {
    EXPECT_EQ(request->status().code(), absl::StatusCode::kUnavailable) << request->status();
  }
  server_.Start();
  ExpectRecovery();
}

TEST_F(RedisStoreOutageTest, AStoreThatWasNeverThereRefusesAndComesUp) {
  server_.Kill();
  Start();
  EXPECT_TRUE(store_->AwaitThat([&](const RedisCounters&) { return store_->healths() == 1; }));
  ExpectUnavailable("redis");
  EXPECT_FALSE(store_->health().up);
  server_.Start();
  ExpectRecovery();
  EXPECT_EQ(store_->Healths(2), (net::testing::Lines{"down", "up"}));
}

TEST_F(RedisStoreOutageTest, WhileAServerStandsStillNobodyWaitsLongerThanAsked) {
  Start();
  ASSERT_TRUE(Ask().ok());
  server_.Pause();
  AskUntilRefused();
  server_.Resume();
  ExpectRecovery();
  EXPECT_EQ(store_->counters().connects.value(), 1u) << "the connection stays";
}

TEST_F(RedisStoreOutageTest, WhereNobodyAsksProbesBringTheStoreBack) {
  RedisStoreOptions options = ToSocket(server_);
  options.breaker.idle = 10ms;
  Start(options);
  ASSERT_TRUE(Ask().ok());
  server_.Pause();
  AskUntilRefused();
  server_.Resume();
  EXPECT_TRUE(store_->AwaitThat([&](const RedisCounters&) { return store_->health().up; }));
  EXPECT_TRUE(Ask().ok());
}

TEST_F(RedisStoreOutageTest, AServerThatStandsStillForLongIsLeftAndFoundAgain) {
  RedisStoreOptions options = ToSocket(server_);
  options.connection.connect_timeout = 50ms;
  Start(options);
  ASSERT_TRUE(Ask().ok());
  server_.Pause();
  AskUntilRefused();
  store_->Pass(30s);
  EXPECT_TRUE(store_->AwaitThat(
      [&](const RedisCounters&) { return store_->health().why.find("redis") == 0; }));
  ExpectUnavailable("redis");
  server_.Resume();
  ExpectRecovery();
  EXPECT_EQ(ClientsOfTheServer(), 1u);
}

// The server reads what was sent on the connection that was left, and what was sent again.
TEST_F(RedisStoreOutageTest, AnUndoThatIsSentTwiceGivesBackOnce) {
  RedisStoreOptions options = ToSocket(server_);
  options.connection.connect_timeout = 50ms;
  options.mark_undos = true;
  store_.emplace(options);
  const Want want{.key = Key("api", "ann"),
                  .limit = store_->Prepare(*fixed_window::MakeLimit(10, 24h)),
                  .cost = 3};
  Request first(want);
  Request second(want);
  store_->AskAll({&first, &second});
  ASSERT_EQ(second.decision().remaining, 4u);
  const auto up = [&](const RedisCounters&) { return store_->health().up; };
  EXPECT_TRUE(store_->AwaitThat(up));
  server_.Pause();
  store_->Undo(second, 3);
  store_->OnLoop([](RedisRemoteStore&) {});  // it is sent
  store_->Pass(30s);                         // and left, unanswered
  EXPECT_TRUE(store_->AwaitThat(
      [&](const RedisCounters&) { return store_->health().why.find("redis") == 0; }));
  server_.Resume();
  EXPECT_TRUE(store_->AwaitThat([&](const RedisCounters& c) {
    store_->Pass(100ms);
    return c.undos.value() == 1;
  }));
  const std::string stats(server_.Ask({"INFO", "commandstats"}).text());
  const std::string_view calls = "cmdstat_evalsha:calls=";
  EXPECT_GE(std::stoi(stats.substr(stats.find(calls) + calls.size())), 3) << stats;
  Request third(want);
  store_->Ask(third);
  EXPECT_EQ(third.decision().remaining, 4u) << "once";
}

// What others met with thousands of connections and the end of their memory.
TEST_F(RedisStoreOutageTest, ASlowServerCostsOneConnectionAndABoundedQueue) {
  RedisStoreOptions options = ToSocket(server_);
  options.connection.max_waiting = 64;
  options.breaker.failures = 1'000'000;
  Start(options);
  ASSERT_TRUE(Ask().ok());
  RawRedis other(server_.unix_socket());
  other.Ask({"CLIENT", "PAUSE", "300000", "WRITE"});
  std::size_t refused = 0;
  for (int i = 0; i < 100; ++i) {
    const absl::Status status = Ask(5ms);
    EXPECT_TRUE(absl::IsDeadlineExceeded(status) || absl::IsResourceExhausted(status)) << status;
    refused += absl::IsResourceExhausted(status) ? 1 : 0;
    EXPECT_LE(store_->counters().waiting.value(), 1u);
  }
  EXPECT_GE(refused, 10u);              // one that was late before it was sent takes no place
  EXPECT_EQ(ClientsOfTheServer(), 2u);  // and `other`
  EXPECT_EQ(store_->counters().connects.value(), 1u);
  other.Ask({"CLIENT", "UNPAUSE"});
  ExpectRecovery();
  EXPECT_EQ(store_->counters().waiting.value(), 0u);
}

TEST_F(RedisStoreOutageTest, WhatWasCountedBeforeAFlushIsForgottenAndNoMore) {
  Start();
  Request request(
      {.key = Key("api", "bob"), .limit = store_->Prepare(*token_bucket::MakeLimit({1, 1h}, 1))});
  store_->Ask(request);
  EXPECT_TRUE(request.allowed()) << request.status();
  store_->Ask(request);
  EXPECT_FALSE(request.allowed());
  server_.Ask({"FLUSHALL"});
  store_->Ask(request);
  EXPECT_TRUE(request.allowed()) << request.status();
  store_->Ask(request);
  EXPECT_FALSE(request.allowed());
  EXPECT_TRUE(request.status().ok());
}

TEST_F(RedisStoreOutageTest, APrimaryThatBecameAReplicaIsLeftUntilItIsOneAgain) {
  Start();
  ASSERT_TRUE(Ask().ok());
  server_.Ask({"REPLICAOF", "127.0.0.1", "1"});
  ExpectUnavailable("READONLY");
  EXPECT_TRUE(store_->AwaitThat([](const RedisCounters& c) { return c.connects.value() >= 2; }));
  EXPECT_FALSE(store_->health().up);
  server_.Ask({"REPLICAOF", "NO", "ONE"});
  ExpectRecovery();
}

TEST_F(RedisStoreOutageTest, AServerWithoutMemoryIsNoDenial) {
  Start();
  ASSERT_TRUE(Ask().ok());
  server_.Ask({"CONFIG", "SET", "maxmemory", "1"});
  ExpectUnavailable("OOM");
  server_.Ask({"CONFIG", "SET", "maxmemory", "0"});
  ExpectRecovery();
}

TEST_F(RedisStoreOutageTest, WhileASomebodysScriptRunsTheServerIsBusy) {
  Start();
  ASSERT_TRUE(Ask().ok());
  server_.Ask({"CONFIG", "SET", "busy-reply-threshold", "1"});
  RawRedis other(server_.unix_socket());
  other.Send("*3\r\n$4\r\nEVAL\r\n$17\r\nwhile true do end\r\n$1\r\n0\r\n");
  EXPECT_TRUE(store_->AwaitThat([&](const RedisCounters&) {
    const absl::Status status = Ask();
    return status.message().find("BUSY") != absl::string_view::npos;
  }));
  server_.Ask({"SCRIPT", "KILL"});
  EXPECT_TRUE(other.Read().is_error());
  ExpectRecovery();
}

TEST_F(RedisStoreOutageTest, WithoutThePasswordItSaysSo) {
  server_.Ask({"CONFIG", "SET", "requirepass", "s3cret"});
  Start();
  EXPECT_TRUE(store_->AwaitThat([&](const RedisCounters&) { return store_->healths() == 1; }));
  ExpectUnavailable("NOAUTH");
  EXPECT_THAT(store_->health().why, HasSubstr("NOAUTH"));
}

TEST_F(RedisStoreOutageTest, AUserWithoutTheRightsIsToldWhichAreMissing) {
  RedisStoreOptions options = ToSocket(server_);
  options.connection.user = "ann";
  options.connection.password = "s3cret";
  options.breaker.failures = 1'000;
  const auto allow = [&](std::string_view right) {
    server_.Ask(
        {"ACL", "SETUSER", "ann", "on", ">s3cret", "resetkeys", "~sluice:*", "+@all", right});
  };
  allow("-script");
  Start(options);
  EXPECT_TRUE(store_->AwaitThat([&](const RedisCounters&) { return store_->healths() == 1; }));
  ExpectUnavailable("NOPERM");
  EXPECT_THAT(store_->health().why, HasSubstr("NOPERM"));
  allow("-evalsha");
  EXPECT_TRUE(store_->AwaitThat([&](const RedisCounters&) { return store_->health().up; }));
  ExpectUnavailable("NOPERM");
  allow("+evalsha");
  ExpectRecovery();
  EXPECT_THAT(store_->health().why, ::testing::Not(HasSubstr("s3cret")));
  // Of what the script calls the server says it in other words.
  const auto& errors = store_->counters().errors;
  const auto& refused = errors[static_cast<std::size_t>(ServerError::kNoPerm)];
  const std::uint64_t before = refused.value();
  allow("-set");
  ExpectUnavailable("can't run this command");
  EXPECT_GT(refused.value(), before);
  allow("+set");
  ExpectRecovery();
  // And where the keys are not ours to write.
  server_.Ask({"ACL", "SETUSER", "ann", "resetkeys", "~other:*"});
  ExpectUnavailable("NOPERM");
}

// Others count on their own meanwhile and add all of it afterwards.
TEST_F(RedisStoreOutageTest, WhatWasAskedInAnOutageIsNotChargedAfterwards) {
  Start();
  const Want want{.key = Key("api", "bob"),
                  .limit = store_->Prepare(*fixed_window::MakeLimit(10, 24h * 365))};
  Request request(want);
  store_->Ask(request);
  ASSERT_EQ(request.decision().remaining, 9u) << request.status();
  server_.Ask({"SAVE"});
  server_.Kill();
  EXPECT_TRUE(store_->AwaitThat([&](const RedisCounters&) { return !store_->health().up; }));
  for (int i = 0; i < 24; ++i) {
    store_->Ask(request);
    EXPECT_EQ(request.status().code(), absl::StatusCode::kUnavailable) << request.status();
  }
  server_.Start();
  EXPECT_TRUE(store_->AwaitThat([&](const RedisCounters&) { return store_->health().up; }));
  store_->Ask(request);
  EXPECT_EQ(request.decision().remaining, 8u) << request.status();
}

TEST_F(RedisStoreOutageTest, AnUndoAfterTheEndOfAWindowMintsNothingAndLeavesNoKey) {
  Start();
  const Want want{
      .key = Key("api", "bob"),
      .limit = store_->Prepare(*fixed_window::MakeLimit(5, 20ms, fixed_window::Align::kFirstHit))};
  Request request(want);
  store_->Ask(request);
  ASSERT_TRUE(request.allowed()) << request.status();
  EXPECT_TRUE(store_->AwaitThat(
      [&](const RedisCounters&) { return server_.Ask({"DBSIZE"}).integer() == 0; }));
  store_->Undo(request, 1);
  EXPECT_TRUE(store_->AwaitThat([](const RedisCounters& c) { return c.undos.value() == 1; }));
  EXPECT_EQ(server_.Ask({"DBSIZE"}).integer(), 0);
}

// What is to be given back waits for the store.
TEST_F(RedisStoreOutageTest, SlotsComeBackAfterAnOutage) {
  Start();
  const Want want{.key = Key("exports", "ann"),
                  .limit = store_->Prepare(*concurrency::MakeLimit(1, 0s))};
  Request held(want);
  store_->Ask(held);
  ASSERT_TRUE(held.allowed()) << held.status();
  server_.Ask({"SAVE"});
  server_.Kill();
  EXPECT_TRUE(store_->AwaitThat([&](const RedisCounters&) { return !store_->health().up; }));
  store_->Undo(held, 1);
  server_.Start();
  EXPECT_TRUE(store_->AwaitThat([](const RedisCounters& c) { return c.undos.value() == 1; }));
  Request next(want);
  store_->Ask(next);
  EXPECT_TRUE(next.allowed()) << next.status();
}

}  // namespace
}  // namespace sluice::redis
