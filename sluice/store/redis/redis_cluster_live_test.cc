// The store on a real cluster: while all is well, while slots move, and while primaries fall.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "sluice/base/steady_now.h"
#include "sluice/net/testing/redis_cluster.h"
#include "sluice/store/redis/redis_cluster_store.h"
#include "sluice/store/redis/redis_slots.h"
#include "sluice/store/redis/testing/store_on_loop.h"

namespace sluice::redis {
namespace {

using namespace std::chrono_literals;
using net::testing::RedisCluster;
using ::testing::HasSubstr;
using testing::Key;
using testing::LimitPtr;
using testing::Request;
using testing::StoreOnLoop;
using testing::Want;

RedisClusterOptions To(const RedisCluster& cluster) {
  RedisClusterOptions options;
  for (const std::uint16_t port : cluster.ports()) options.seeds.push_back({"127.0.0.1", port});
  options.store.connection.connect_timeout = 300ms;
  return options;
}

std::string Name(std::string_view part) {
  std::string name;
  AppendKeyName({}, KeyKind::kCounter, Key("api", part), &name);
  return name;
}

class RedisClusterLiveTest : public ::testing::Test {
 protected:
  void Start(const RedisCluster::Options& options = {}) {
    cluster_.emplace(options);
    store_.emplace(To(*cluster_));
    ASSERT_TRUE(store_->AwaitThat([&](const RedisCounters&) { return store_->health().up; }))
        << store_->health().why;
  }
  // How many of so many requests of one unit each are allowed; each for itself, all at once.
  static std::size_t Admitted(StoreOnLoop& store, const LimitPtr& limit, std::string_view part,
                              std::size_t count) {
    std::vector<std::unique_ptr<Request>> requests;
    std::vector<Request*> all;
    for (std::size_t i = 0; i < count; ++i) {
      requests.push_back(std::make_unique<Request>(Want{.key = Key("api", part), .limit = limit}));
      all.push_back(requests.back().get());
    }
    store.AskAll(all);
    std::size_t admitted = 0;
    for (const Request* request : all) {
      EXPECT_TRUE(request->status().ok()) << request->status();
      admitted += request->allowed() ? 1 : 0;
    }
    return admitted;
  }

  std::optional<RedisCluster> cluster_;
  std::optional<StoreOnLoop> store_;
};

TEST_F(RedisClusterLiveTest, EachKeyIsCountedWhereItsSlotIs) {
  Start();
  StoreOnLoop other(To(*cluster_));
  const LimitPtr limit = store_->Prepare(*token_bucket::MakeLimit({5, 1h}, 5));
  for (int part = 0; part < 50; ++part) {
    const std::string key = std::to_string(part);
    EXPECT_EQ(Admitted(*store_, limit, key, 4) + Admitted(other, limit, key, 40), 5u) << key;
  }
  for (std::size_t node = 0; node < cluster_->size(); ++node) {
    EXPECT_GT(cluster_->node(node).Ask({"DBSIZE"}).integer(), 5) << node;
  }
  const RedisCounters& counters = store_->counters();
  EXPECT_EQ(counters.primaries.value(), 3u);
  EXPECT_EQ(counters.slots_missing.value(), 0u);
  EXPECT_EQ(counters.redirects[0].value(), 0u);
  EXPECT_EQ(store_->health().server, "a cluster of 3 primaries");
}

TEST_F(RedisClusterLiveTest, WhileASlotMovesKeyByKeyEachUnitPassesOnce) {
  Start();
  std::vector<std::string> parts;
  for (int i = 0; parts.size() < 4; ++i) {
    if (SlotOf(Name(std::to_string(i))) < 300) parts.push_back(std::to_string(i));
  }
  const LimitPtr limit = store_->Prepare(*token_bucket::MakeLimit({20, 1h}, 20));
  for (const std::string& part : parts) {
    const std::uint16_t of = SlotOf(Name(part));
    std::size_t admitted = Admitted(*store_, limit, part, 3);
    cluster_->Begin(of, 0, 1);
    admitted += Admitted(*store_, limit, part, 3);  // the key is here still
    cluster_->MoveKeys(of, 0, 1);
    admitted += Admitted(*store_, limit, part, 3);  // ASK
    cluster_->End(of, 0, 1);
    admitted += Admitted(*store_, limit, part, 30);  // MOVED
    EXPECT_EQ(admitted, 20u) << part;
  }
  const RedisCounters& counters = store_->counters();
  EXPECT_GE(counters.redirects[static_cast<int>(Redirect::Kind::kAsk)].value(), 3u * 4);
  EXPECT_GE(counters.redirects[static_cast<int>(Redirect::Kind::kMoved)].value(), 4u);
  EXPECT_TRUE(store_->health().up);
}

}  // namespace
}  // namespace sluice::redis
