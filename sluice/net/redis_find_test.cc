// A connection whose server has to be found, and may be elsewhere the next time.
#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sluice/net/redis_connection.h"
#include "sluice/net/testing/raw_client.h"
#include "sluice/net/testing/redis_on_loop.h"

namespace sluice::net {
namespace {

using namespace std::chrono_literals;
using testing::LineLog;
using testing::Lines;
using testing::RawClient;
using testing::RawListener;
using testing::RedisOnLoop;

constexpr std::string_view kPing = "*1\r\n$4\r\nPING\r\n";
constexpr std::string_view kRole = "*1\r\n$4\r\nROLE\r\n";
constexpr std::string_view kPrimary = "*3\r\n$6\r\nmaster\r\n:0\r\n*0\r\n";
constexpr std::string_view kReplica =
    "*5\r\n$5\r\nslave\r\n$1\r\na\r\n:1\r\n$9\r\nconnected\r\n:0\r\n";

class RedisFindTest : public ::testing::Test {
 protected:
  RedisConnectionOptions Options() {
    RedisConnectionOptions options;
    options.find_address = [this](Duration patience, auto found) {
      asked_.Add(std::to_string(patience / 1ms));
      const std::lock_guard lock(mutex_);
      if (holds_) {
        held_ = std::move(found);
      } else {
        loop_->Post([answer = answer_, found = std::move(found)]() mutable { found(answer); });
      }
    };
    options.find_every = 50ms;
    options.primary = true;
    options.jitter = [this](Duration at_most) {
      drawn_.Add(std::to_string(at_most / 1ms));
      return Duration::zero();
    };
    options.connect_timeout = 20s;
    options.max_silence = 20s;
    return options;
  }
  void Start() {
    loops_.Start();
    loops_.OnEach([&](EventLoop& loop) {
      loop_ = &loop;
      redis_ = std::make_unique<RedisConnection>(loop, [&] {
        RedisConnectionOptions options = Options();
        options.on_state = [this](RedisState state) {
          states_.Add(state == RedisState::kReady     ? "ready"
                      : state == RedisState::kWaiting ? "waiting"
                                                      : "connecting");
        };
        return options;
      }());
    });
  }
  ~RedisFindTest() override {
    loops_.OnEach([&](EventLoop&) { redis_.reset(); });
    loops_.Stop();
  }

  [[nodiscard]] HostPort Address(std::size_t server) const {
    return {"127.0.0.1", listeners_[server].port()};
  }
  void Say(RedisAddresses answer) {
    const std::lock_guard lock(mutex_);
    answer_ = std::move(answer);
  }
  void SayServer(std::size_t server) { Say({std::vector{Address(server)}}); }
  void Greet(std::size_t server, std::string_view role = kPrimary) {
    client_.emplace(listeners_[server].Accept());
    const std::string greeting = std::string(kPing) + std::string(kRole);
    EXPECT_EQ(client_->ReadExactly(greeting.size()), greeting);
    client_->Send("+PONG\r\n" + std::string(role));
  }
  // As if so much time passed for the questions in between.
  void Pass(Duration time) {
    loops_.OnEach([&](EventLoop& loop) {
      for (auto ticks = time / Deadlines::kTick; ticks > 0; --ticks) loop.deadlines().Tick();
    });
  }
  // Until it has asked once more.
  void LookAgain() {
    (void)asked_.Take(asked_.size());
    Pass(200ms);
    EXPECT_EQ(asked_.Take(1).size(), 1u);
    loops_.OnEach([](EventLoop&) {});  // what was posted was answered
  }
  std::string Error() {
    std::string error;
    loops_.OnEach([&](EventLoop&) { error = std::string(redis_->error().message()); });
    return error;
  }
  std::string Server() {
    std::string server;
    loops_.OnEach([&](EventLoop&) { server = redis_->server(); });
    return server;
  }

  void DestroyAndAnswer() {
    loops_.OnEach([&](EventLoop&) {
      redis_.reset();
      held_({std::vector{Address(0)}});
      held_ = nullptr;
    });
    EXPECT_EQ(states_.size(), 0u);
  }

  std::array<RawListener, 2> listeners_;
  std::mutex mutex_;
  RedisAddresses answer_ = absl::UnavailableError("nobody knows");
  bool holds_ = false;
  absl::AnyInvocable<void(RedisAddresses)> held_;
  LineLog asked_;
  LineLog drawn_;
  LineLog states_;
  std::optional<RawClient> client_;
  EventLoops loops_{1};
  EventLoop* loop_ = nullptr;
  std::unique_ptr<RedisConnection> redis_;
};

TEST_F(RedisFindTest, GoesWhereItIsToldForEachAttemptAnew) {
  SayServer(0);
  Start();
  Greet(0);
  EXPECT_TRUE(states_.TakeUpTo("ready"));
  EXPECT_EQ(Server(), ToString(Address(0)));
  // Before the attempt and after the greeting, for half of connect_timeout.
  EXPECT_EQ(asked_.Take(asked_.size()), (Lines{"10000", "10000"}));
  SayServer(1);
  client_->Close();
  EXPECT_TRUE(states_.TakeUpTo("waiting"));
  EXPECT_EQ(Error().substr(0, Error().find(':', 20)), "redis " + ToString(Address(0)));
  Greet(1);
  EXPECT_TRUE(states_.TakeUpTo("ready"));
  EXPECT_EQ(Server(), ToString(Address(1)));
}

TEST_F(RedisFindTest, WhereNobodyKnowsItWaitsAsAfterEveryFailedAttempt) {
  Start();
  EXPECT_EQ(drawn_.Take(8), (Lines{"10", "20", "40", "80", "160", "320", "500", "500"}));
  EXPECT_EQ(Error(), "redis: nobody knows");
  EXPECT_EQ(Server(), "");
  SayServer(0);
  Greet(0);
  EXPECT_TRUE(states_.TakeUpTo("ready"));
}

TEST_F(RedisFindTest, TriesEachOfSeveralInTurn) {
  listeners_[0].Close();
  Say({std::vector{Address(0), Address(1)}});
  Start();
  Greet(1, kReplica);
  Greet(1);
  EXPECT_TRUE(states_.TakeUpTo("ready"));
  EXPECT_EQ(drawn_.Take(3), (Lines{"10", "20", "40"}));  // the first of them twice
}

TEST_F(RedisFindTest, AReplicaIsNoConnection) {
  SayServer(0);
  Start();
  Greet(0, kReplica);
  EXPECT_TRUE(states_.TakeUpTo("waiting"));
  EXPECT_EQ(Error(), "redis " + ToString(Address(0)) + ": the server is a replica");
  EXPECT_TRUE(client_->Ended());
  Greet(0);
  EXPECT_TRUE(states_.TakeUpTo("ready"));
}

TEST_F(RedisFindTest, LeavesAServerWhoseNameHasGoneToAnother) {
  SayServer(0);
  Start();
  Greet(0);
  EXPECT_TRUE(states_.TakeUpTo("ready"));
  SayServer(1);
  Pass(200ms);
  EXPECT_TRUE(client_->Ended());
  EXPECT_TRUE(states_.TakeUpTo("waiting"));
  EXPECT_EQ(Error(), "redis " + ToString(Address(0)) +
                         ": another server is in its place: " + ToString(Address(1)));
  Greet(1);
  EXPECT_TRUE(states_.TakeUpTo("ready"));
}

TEST_F(RedisFindTest, OneThatWasReplacedWhileItWasGreetedIsNoConnection) {
  SayServer(0);
  Start();
  client_.emplace(listeners_[0].Accept());
  SayServer(1);
  client_->Send("+PONG\r\n" + std::string(kPrimary));
  Greet(1);
  EXPECT_EQ(states_.Take(3), (Lines{"waiting", "connecting", "ready"}));
  EXPECT_EQ(Server(), ToString(Address(1)));
}

TEST_F(RedisFindTest, StaysWhileNobodySaysThatItShouldNot) {
  SayServer(0);
  Start();
  Greet(0);
  EXPECT_TRUE(states_.TakeUpTo("ready"));
  Say(absl::UnavailableError("they are down"));
  LookAgain();
  Say({std::vector{Address(1), Address(0)}});  // they do not agree
  LookAgain();
  EXPECT_TRUE(client_->Silent(0ms));
  EXPECT_EQ(states_.size(), 0u);
  SayServer(1);  // it still looks
  Pass(200ms);
  EXPECT_TRUE(states_.TakeUpTo("waiting"));
}

TEST_F(RedisFindTest, AnAnswerThatComesTooLateIsNone) {
  SayServer(0);
  Start();
  Greet(0);
  EXPECT_TRUE(states_.TakeUpTo("ready"));
  {
    const std::lock_guard lock(mutex_);
    holds_ = true;
  }
  LookAgain();
  absl::AnyInvocable<void(RedisAddresses)> late;
  {
    const std::lock_guard lock(mutex_);
    late = std::move(held_);
    holds_ = false;
  }
  client_->Close();
  Greet(0);
  EXPECT_TRUE(states_.TakeUpTo("waiting"));
  EXPECT_TRUE(states_.TakeUpTo("ready"));
  loops_.OnEach([&](EventLoop&) { late({std::vector{Address(1)}}); });  // of the connection before
  EXPECT_EQ(states_.size(), 0u);
}

TEST_F(RedisFindTest, MayBeDestroyedWhileItIsBeingFound) {
  holds_ = true;
  Start();
  EXPECT_EQ(asked_.Take(1).size(), 1u);
  DestroyAndAnswer();
}

TEST_F(RedisFindTest, MayBeDestroyedWhileTheGreetedOneIsConfirmed) {
  SayServer(0);
  Start();
  client_.emplace(listeners_[0].Accept());
  {
    const std::lock_guard lock(mutex_);
    holds_ = true;
  }
  client_->Send("+PONG\r\n" + std::string(kPrimary));
  EXPECT_EQ(asked_.Take(2).size(), 2u);
  DestroyAndAnswer();
}

}  // namespace
}  // namespace sluice::net
