// The channel between nodes, over a real server and over one that says what a test wants.
#include "sluice/store/redis/channel.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <condition_variable>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/str_cat.h"
#include "sluice/net/event_loops.h"
#include "sluice/net/testing/raw_client.h"
#include "sluice/net/testing/redis_server.h"

namespace sluice::redis {
namespace {

using namespace std::chrono_literals;
using net::testing::RawClient;
using net::testing::RawListener;
using net::testing::RedisServer;
using ::testing::ElementsAre;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;
using Table = Channel::Table;

// A node of its own, with what it has heard.
class Node {
 public:
  explicit Node(net::RedisConnectionOptions connection, std::string name = "",
                std::string says = "", std::vector<net::HostPort> seeds = {}) {
    loops_.Start();
    loops_.OnEach([&](net::EventLoop& loop) {
      channel_ = std::make_unique<Channel>(
          loop, ChannelOptions{.connection = std::move(connection),
                               .seeds = std::move(seeds),
                               .node = std::move(name),
                               .says = std::move(says),
                               .beat_every = 100ms,
                               .gone_after = 500ms,
                               .on_table = [this](const Table& table) { Heard(table_, table); },
                               .on_nodes = [this](const auto& nodes) { Heard(nodes_, nodes); },
                               .on_refused = [this](std::string_view why) { OnRefused(why); }});
    });
  }
  ~Node() {
    loops_.OnEach([&](net::EventLoop&) { channel_.reset(); });
    loops_.Stop();
  }

  std::future<absl::Status> Set(std::string_view name, std::string_view value) {
    auto done = std::make_shared<std::promise<absl::Status>>();
    loops_.OnEach([&](net::EventLoop&) {
      const absl::Status asked = channel_->Set(
          name, value, [done](const absl::Status& status) { done->set_value(status); });
      if (!asked.ok()) done->set_value(asked);
    });
    return done->get_future();
  }
  void Say(std::string says) {
    loops_.OnEach([&](net::EventLoop&) { channel_->Say(std::move(says)); });
  }

  // Once the table is like that, within 20 s.
  bool Hears(const Table& table) {
    std::unique_lock lock(mutex_);
    return heard_.wait_for(lock, 20s, [&] { return table_ == table; });
  }
  // Names of the nodes that are there and what they say, in order.
  bool HearsNodes(const std::vector<std::string>& expected) {
    std::unique_lock lock(mutex_);
    return heard_.wait_for(lock, 20s, [&] {
      if (!nodes_) return false;
      std::vector<std::string> told;
      for (const ChannelNode& node : *nodes_) told.push_back(node.name + "=" + node.says);
      std::ranges::sort(told);
      return told == expected;
    });
  }
  bool Refused(std::string_view word) {
    std::unique_lock lock(mutex_);
    return heard_.wait_for(lock, 20s, [&] { return refused_.starts_with(word); });
  }
  int refusals() {
    const std::lock_guard lock(mutex_);
    return refusals_;
  }
  int tables() {
    const std::lock_guard lock(mutex_);
    return tables_;
  }

 private:
  template <typename Told>
  void Heard(std::optional<Told>& what, const Told& told) {
    const std::lock_guard lock(mutex_);
    what = told;
    if constexpr (std::is_same_v<Told, Table>) ++tables_;
    heard_.notify_all();
  }

  void OnRefused(std::string_view why) {
    const std::lock_guard lock(mutex_);
    refused_ = why;
    ++refusals_;
    heard_.notify_all();
  }

  net::EventLoops loops_{1};
  std::unique_ptr<Channel> channel_;
  std::mutex mutex_;  // guards what follows
  std::condition_variable heard_;
  std::optional<Table> table_;
  std::optional<std::vector<ChannelNode>> nodes_;
  int tables_ = 0;
  std::string refused_;
  int refusals_ = 0;
};

net::RedisConnectionOptions To(const RedisServer& server) {
  return {.unix_socket = server.unix_socket(), .max_backoff = 20ms};
}

TEST(ChannelTest, WhatOneNodeSetsAllOfThemHear) {
  RedisServer server;
  Node ann(To(server));
  Node bob(To(server));
  EXPECT_TRUE(ann.Hears({}));
  EXPECT_TRUE(ann.Set("bans", std::string("a\0\r\n", 4)).get().ok());
  EXPECT_TRUE(bob.Hears({{"bans", std::string("a\0\r\n", 4)}}));
  EXPECT_TRUE(ann.Hears({{"bans", std::string("a\0\r\n", 4)}}));
  EXPECT_TRUE(bob.Set("kill", "on").get().ok());
  EXPECT_TRUE(bob.Set("bans", "").get().ok());
  EXPECT_TRUE(ann.Hears({{"kill", "on"}}));
}

TEST(ChannelTest, ANodeThatComesLaterHearsWhatIsThere) {
  RedisServer server;
  Node ann(To(server));
  EXPECT_TRUE(ann.Set("kill", "on").get().ok());
  Node bob(To(server));
  EXPECT_TRUE(bob.Hears({{"kill", "on"}}));
  EXPECT_EQ(bob.tables(), 1);
}

TEST(ChannelTest, OfOneNamesValuesTheLastOneStays) {
  RedisServer server;
  Node ann(To(server));
  std::vector<std::future<absl::Status>> all;
  for (const char* value : {"1", "2", "1", "3", "1"}) all.push_back(ann.Set("n", value));
  EXPECT_TRUE(all.back().get().ok());
  EXPECT_TRUE(ann.Hears({{"n", "1"}}));
  all.pop_back();
  for (auto& before : all) {
    const absl::Status status = before.get();
    EXPECT_TRUE(status.ok() || absl::IsAborted(status)) << status;
  }
}

TEST(ChannelTest, WhatIsSetWhileTheServerIsAwayIsSentWhenItIsBack) {
  RedisServer server;
  Node ann(To(server));
  Node bob(To(server));
  EXPECT_TRUE(ann.Set("old", "1").get().ok());
  EXPECT_TRUE(bob.Hears({{"old", "1"}}));
  server.Kill();
  std::future<absl::Status> set = ann.Set("new", "2");
  server.Start();  // empty
  EXPECT_TRUE(set.get().ok());
  EXPECT_TRUE(bob.Hears({{"new", "2"}})) << "and the old one is gone";
}

TEST(ChannelTest, AServerThatForgotAllAndIsToldAsMuchAgainIsHeard) {
  RedisServer server;
  Node ann(To(server));
  Node bob(To(server));
  EXPECT_TRUE(ann.Set("n", "1").get().ok());
  EXPECT_TRUE(bob.Hears({{"n", "1"}}));
  server.Ask({"FLUSHALL"});
  EXPECT_TRUE(bob.Hears({}));
  EXPECT_TRUE(ann.Set("n", "2").get().ok());
  EXPECT_TRUE(bob.Hears({{"n", "2"}}));
}

TEST(ChannelTest, NothingOfItIsImmortal) {
  RedisServer server;
  Node ann(To(server));
  EXPECT_TRUE(ann.Set("n", "1").get().ok());
  EXPECT_TRUE(ann.HearsNodes({"="}));
  const net::RedisReply keys = server.Ask({"KEYS", "*"});
  ASSERT_EQ(keys.size(), 2u);
  for (std::size_t i = 0; i < keys.size(); ++i) {
    EXPECT_GT(server.Ask({"PTTL", keys[i].text()}).integer(), 0) << keys[i].text();
  }
}

TEST(ChannelTest, TellsWhoIsThereAndWhatTheySay) {
  RedisServer server;
  Node ann(To(server), "ann", "rules 1");
  EXPECT_TRUE(ann.HearsNodes({"ann=rules 1"}));
  auto bob = std::make_unique<Node>(To(server), "bob", "rules 2");
  EXPECT_TRUE(ann.HearsNodes({"ann=rules 1", "bob=rules 2"}));
  bob->Say("rules 1");
  EXPECT_TRUE(ann.HearsNodes({"ann=rules 1", "bob=rules 1"}));
  bob.reset();
  EXPECT_TRUE(ann.HearsNodes({"ann=rules 1"})) << "after a while";
}

TEST(ChannelTest, WhatTheServerRefusesIsToldOnceInItsOwnWords) {
  RedisServer server;
  server.Ask({"ACL", "SETUSER", "default", "-eval"});
  Node ann(To(server));
  EXPECT_TRUE(ann.Refused("NOPERM"));
  EXPECT_TRUE(ann.Hears({})) << "what it may, it goes on to do";
  std::future<absl::Status> set = ann.Set("n", "1");
  EXPECT_EQ(set.wait_for(600ms), std::future_status::timeout);
  EXPECT_EQ(ann.refusals(), 1);
  server.Ask({"ACL", "SETUSER", "default", "+eval"});
  EXPECT_TRUE(set.get().ok());
}

TEST(ChannelTest, BoundsWhatItCarries) {
  RedisServer server;
  Node ann(To(server));
  EXPECT_TRUE(absl::IsInvalidArgument(ann.Set("", "x").get()));
  EXPECT_TRUE(absl::IsInvalidArgument(ann.Set(std::string(257, 'n'), "x").get()));
  EXPECT_TRUE(absl::IsInvalidArgument(ann.Set("n", std::string(4097, 'x')).get()));
  EXPECT_TRUE(ann.Set(std::string(256, 'n'), std::string(4096, 'x')).get().ok());
  const std::string key(server.Ask({"KEYS", "*:table"})[0].text());
  for (std::size_t i = 1; i < Channel::kMostNames; ++i) {
    server.Ask({"HSET", key, absl::StrCat("name ", i), std::string(4096, 'x')});
  }
  EXPECT_TRUE(absl::IsResourceExhausted(ann.Set("one more", "x").get()));
  EXPECT_TRUE(ann.Set("name 1", "y").get().ok()) << "no more than before";
  EXPECT_TRUE(ann.Set("name 2", "").get().ok());
  EXPECT_TRUE(ann.Set("one more", "x").get().ok());
}

// A server that says what the test wants. One that answers PING alone, else `answer`.
class OddServer {
 public:
  [[nodiscard]] net::RedisConnectionOptions Options() const {
    return {.address = {"127.0.0.1", listener_.port()}, .max_backoff = 20ms};
  }
  void Accept() {
    client_.emplace(listener_.Accept());
    client_->ReadUntil("PING\r\n");
    client_->Send("+PONG\r\n");
  }
  // Reads until `command` and a line's end have come.
  void Read(const std::string& command) { client_->ReadUntil(command); }
  void Say(std::string_view text) { client_->Send(text); }
  [[nodiscard]] std::uint16_t port() const { return listener_.port(); }

 private:
  RawListener listener_;
  std::optional<RawClient> client_;
};

TEST(ChannelTest, InAClusterItGoesWhereItsSlotIs) {
  RedisServer owner({.listens = RedisServer::Listens::kTcp});
  OddServer other;
  Node ann(other.Options());
  other.Accept();
  other.Read("HGET\r\n");
  other.Say(absl::StrCat("-MOVED 3999 127.0.0.1:", owner.port(), "\r\n"));
  EXPECT_TRUE(ann.Set("n", "1").get().ok());
  EXPECT_TRUE(ann.Hears({{"n", "1"}}));
}

TEST(ChannelTest, InAClusterItBeginsAnewWhenTheServerOfItsSlotIsGone) {
  RedisServer owner({.listens = RedisServer::Listens::kTcp});
  RedisServer heir({.listens = RedisServer::Listens::kTcp});
  OddServer seed;
  const std::uint16_t gone = RawListener().port();
  Node ann(seed.Options(), "", "", {{"127.0.0.1", gone}, {"127.0.0.1", seed.port()}});
  seed.Accept();
  seed.Read("HGET\r\n");
  seed.Say(absl::StrCat("-MOVED 3999 :", owner.port(), "\r\n"));
  EXPECT_TRUE(ann.Set("n", "1").get().ok());
  EXPECT_TRUE(ann.Hears({{"n", "1"}}));
  owner.Kill();
  seed.Accept();
  seed.Read("HGET\r\n");
  seed.Say(absl::StrCat("-MOVED 3999 127.0.0.1:", heir.port(), "\r\n"));
  EXPECT_TRUE(ann.Set("n", "2").get().ok());
  EXPECT_TRUE(ann.Hears({{"n", "2"}}));
}

TEST(ChannelTest, AnswersThatMeanNothingChangeNothing) {
  const std::string answers[] = {"-MOVED x\r\n", "-MOVED 1 :\r\n", "-MOVED 1 a:70000\r\n",
                                 "-ERR x\r\n",   "-LOADING x\r\n", "*2\r\n$-1\r\n:1\r\n"};
  for (const std::string& answer : answers) {
    SCOPED_TRACE(answer);
    OddServer server;
    Node ann(server.Options());
    server.Accept();
    server.Read("HGET\r\n");
    server.Say("$1\r\n1\r\n");  // the version; then the beat's answer and the table's
    server.Read("HGETALL\r\n");
    server.Say(answer + answer);
    server.Read("HGET\r\n");  // it goes on asking
  }
}

}  // namespace
}  // namespace sluice::redis
