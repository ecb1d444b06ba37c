#include "sluice/server/node_channel.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "sluice/base/log.h"
#include "sluice/config/load.h"
#include "sluice/net/testing/redis_server.h"

namespace sluice {
namespace {

using namespace std::chrono_literals;
using net::testing::RedisServer;
using ::testing::HasSubstr;

std::shared_ptr<const RuleSet> Rules(const std::string& limit, std::uint64_t generation = 1) {
  auto loaded = config::LoadText("test", "rules: [{ name: api, key: ip, limit: " + limit + " }]\n",
                                 ".", generation);
  return loaded.config->rules;
}

TEST(NodeChannelTest, RulesHaveTheSameFingerprintInEveryGenerationAndNoOthers) {
  EXPECT_EQ(FingerprintOf(*Rules("5/s", 1)), FingerprintOf(*Rules("5/s", 9)));
  EXPECT_NE(FingerprintOf(*Rules("5/s")), FingerprintOf(*Rules("6/s")));
}

// A node with a denial that it remembers.
class Node {
 public:
  Node(const RedisServer& server, const std::string& name) {
    loops_.Start();
    loops_.OnEach([&](net::EventLoop& loop) {
      channel_ = std::make_unique<NodeChannel>(
          loop, clock_, &denials_,
          redis::ChannelOptions{.connection = {.unix_socket = server.unix_socket()},
                                .node = name,
                                .beat_every = 50ms});
    });
    denials_.Remember(kName, 1, {.verdict = Verdict::kLimited, .retry_after = 1h}, kSent);
  }
  ~Node() {
    loops_.OnEach([&](net::EventLoop&) { channel_.reset(); });
    loops_.Stop();
  }

  void Use(const std::string& limit) { channel_->Use(*Rules(limit, ++generation_)); }
  [[nodiscard]] std::string Metrics() const {
    std::string out;
    channel_->WriteMetrics(out);
    return out;
  }
  [[nodiscard]] bool Remembers() { return denials_.Recall(kName, 1, kSent).has_value(); }

 private:
  static constexpr DenialMemory::Name kName = {.key = {.lo = 1, .hi = 2}, .limit = 1};
  static constexpr Time kSent{1ns};  // long ago

  SystemClock clock_;
  DenialMemory denials_{16};
  net::EventLoops loops_{1};
  std::unique_ptr<NodeChannel> channel_;
  std::uint64_t generation_ = 0;
};

class NodeChannelLiveTest : public ::testing::Test {
 protected:
  NodeChannelLiveTest() {
    log::SetSink([this](std::string_view line) {
      const std::lock_guard lock(mutex_);
      lines_.append(line).push_back('\n');
    });
  }
  ~NodeChannelLiveTest() override { log::SetSink(nullptr); }

  static bool Await(const std::function<bool()>& holds) {
    const auto end = std::chrono::steady_clock::now() + 20s;
    while (!holds() && std::chrono::steady_clock::now() < end) std::this_thread::yield();
    return holds();
  }
  bool Logged(const std::string& text) {
    return Await([&] {
      const std::lock_guard lock(mutex_);
      return lines_.find(text) != std::string::npos;
    });
  }

  RedisServer server_;

 private:
  std::mutex mutex_;
  std::string lines_;
};

bool Shows(const Node& node, const std::string& series) {
  return ("\n" + node.Metrics()).find("\n" + series + "\n") != std::string::npos;
}

TEST_F(NodeChannelLiveTest, TellsOfNodesThatCountByOtherRulesUntilTheyDoNot) {
  Node ann(server_, "ann");
  Node bob(server_, "bob");
  ann.Use("5/s");
  bob.Use("5/s");
  EXPECT_TRUE(Await([&] { return Shows(ann, "sluice_nodes 2"); }));
  EXPECT_TRUE(Shows(ann, "sluice_nodes_with_other_rules 0"));
  bob.Use("6/s");
  EXPECT_TRUE(Await([&] { return Shows(ann, "sluice_nodes_with_other_rules 1"); }));
  EXPECT_TRUE(Logged("nodes count by other rules than this one which=bob nodes=2"));
  ann.Use("6/s");
  EXPECT_TRUE(Await([&] { return Shows(ann, "sluice_nodes_with_other_rules 0"); }));
  EXPECT_TRUE(Logged("all nodes count by the same rules nodes=2"));
}

TEST_F(NodeChannelLiveTest, WhenOneGetsOtherRulesAllForgetTheDenialsThatTheyRemember) {
  Node ann(server_, "ann");
  Node bob(server_, "bob");
  ann.Use("5/s");
  bob.Use("5/s");
  EXPECT_TRUE(Await([&] { return Shows(ann, "sluice_nodes 2") && Shows(bob, "sluice_nodes 2"); }));
  EXPECT_TRUE(ann.Remembers() && bob.Remembers());
  bob.Use("5/s");  // the same in a new generation
  EXPECT_TRUE(ann.Remembers() && bob.Remembers());
  bob.Use("6/s");
  EXPECT_TRUE(Await([&] { return !ann.Remembers() && !bob.Remembers(); }));
}

}  // namespace
}  // namespace sluice
