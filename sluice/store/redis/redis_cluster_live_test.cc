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
#include "sluice/net/testing/certificates.h"
#include "sluice/net/testing/redis_cluster.h"
#include "sluice/net/tls_context.h"
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

TEST_F(RedisClusterLiveTest, EachServerIsSpokenToByTlsAndShowsWhoItIs) {
  net::testing::TestAuthority authority;
  const net::testing::KeyPair pair = authority.Issue({.names = {"127.0.0.1"}});
  cluster_.emplace(RedisCluster::Options{
      .primaries = 3,
      .listens = net::testing::RedisServer::Listens::kTls,
      .more = {"--tls-cert-file", pair.certificate_file, "--tls-key-file", pair.key_file,
               "--tls-ca-cert-file", authority.ca_file(), "--tls-auth-clients", "no"}});
  RedisClusterOptions options = To(*cluster_);
  options.store.connection.tls =
      net::TlsClientContext::Load({.ca_file = authority.ca_file()}).value();
  store_.emplace(options);
  const LimitPtr limit = store_->Prepare(*token_bucket::MakeLimit({5, 1h}, 5));
  for (int part = 0; part < 20; ++part) {
    EXPECT_EQ(Admitted(*store_, limit, std::to_string(part), 8), 5u);
  }
  EXPECT_EQ(store_->counters().primaries.value(), 3u);
  // A name that none of them proves to have.
  options.store.connection.tls =
      net::TlsClientContext::Load({.ca_file = authority.ca_file(), .server_name = "other.test"})
          .value();
  StoreOnLoop other(options);
  EXPECT_TRUE(other.AwaitThat([&](const RedisCounters&) { return other.healths() > 0; }));
  EXPECT_THAT(other.health().why, HasSubstr("TLS handshake"));
}

// Those of docs/redis.md, but for the ones that the log and the channel need.
TEST_F(RedisClusterLiveTest, AUserNeedsFewPermissions) {
  cluster_.emplace();
  std::vector<std::string> words = {"ACL", "SETUSER", "ann", "on", ">s3cret", "~sluice:*", "-@all"};
  for (const std::string_view right : {"evalsha",
                                       "script|load",
                                       "ping",
                                       "cluster|slots",
                                       "asking",
                                       "time",
                                       "get",
                                       "set",
                                       "del",
                                       "pexpire",
                                       "pttl",
                                       "lindex",
                                       "lpush",
                                       "lrange",
                                       "lrem",
                                       "lset",
                                       "ltrim",
                                       "rpush",
                                       "zadd",
                                       "zrange",
                                       "zrangebyscore",
                                       "zrem",
                                       "zremrangebyscore",
                                       "zscore"}) {
    words.push_back("+" + std::string(right));
  }
  const std::vector<std::string_view> set(words.begin(), words.end());
  for (std::size_t i = 0; i < cluster_->size(); ++i) {
    net::testing::RawRedis node(cluster_->node(i).unix_socket());
    std::string bytes;
    net::AppendRedisCommand(set, &bytes);
    node.Send(bytes);
    EXPECT_EQ(node.Read().text(), "OK");
  }
  RedisClusterOptions options = To(*cluster_);
  options.store.connection.user = "ann";
  options.store.connection.password = "s3cret";
  store_.emplace(options);
  const std::uint16_t slot = SlotOf(Name("ann"));
  const std::size_t from = cluster_->OwnerOf(slot, 0);
  const std::size_t to = (from + 1) % cluster_->size();
  for (const Limit& limit : {Limit(*token_bucket::MakeLimit({1, 1h}, 5)),
                             Limit(*sliding_window_log::MakeLimit(5, 1h, false)),
                             Limit(*concurrency::MakeLimit(5, 1h))}) {
    const LimitPtr prepared = store_->Prepare(limit);
    Request request({.key = Key("api", "ann"), .limit = prepared});
    store_->Ask(request);
    EXPECT_TRUE(request.status().ok()) << request.status();
    store_->Renew(request);
    store_->Undo(request, 1);
    EXPECT_TRUE(store_->AwaitThat(
        [](const RedisCounters& counters) { return counters.undos_waiting.value() == 0; }));
  }
  cluster_->Begin(slot, from, to);
  cluster_->MoveKeys(slot, from, to);
  Request asking(
      {.key = Key("api", "ann"), .limit = store_->Prepare(*token_bucket::MakeLimit({1, 1h}, 5))});
  EXPECT_TRUE(store_->AwaitThat([&](const RedisCounters&) {
    store_->Ask(asking);
    return asking.status().ok();
  }));
  EXPECT_GT(store_->counters().redirects[static_cast<int>(Redirect::Kind::kAsk)].value(), 0u);
  EXPECT_EQ(store_->counters().undos_dropped.value(), 0u);
  EXPECT_EQ(store_->counters().errors[static_cast<int>(ServerError::kNoPerm)].value(), 0u);
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

TEST_F(RedisClusterLiveTest, ARequestOfSeveralNewKeysWaitsUntilItsSlotHasMoved) {
  RedisClusterOptions options;
  std::vector<std::string> warnings;  // written on the loop, read when that is gone
  cluster_.emplace();
  options = To(*cluster_);
  options.store.on_report = [&](const ServerReport& report) {
    warnings.insert(warnings.end(), report.warnings.begin(), report.warnings.end());
  };
  store_.emplace(std::move(options));
  const std::uint16_t slot = SlotOf(Name("ann"));
  const std::size_t from = cluster_->OwnerOf(slot, 0);
  const std::size_t to = (from + 1) % cluster_->size();
  const LimitPtr limit = store_->Prepare(*token_bucket::MakeLimit({1, 1h}, 5));
  const auto both = [&](std::string_view rule) {
    return std::vector<Want>{{.key = Key("api", "ann"), .limit = limit},
                             {.key = Key(rule, "ann"), .limit = limit}};
  };
  Request old(both("login"));
  store_->Ask(old);
  EXPECT_TRUE(old.allowed()) << old.status();
  cluster_->Begin(slot, from, to);
  store_->Ask(old);
  EXPECT_TRUE(old.allowed()) << "both keys are there still";
  Request fresh(both("search"));
  store_->Ask(fresh, 30ms);
  EXPECT_TRUE(absl::IsDeadlineExceeded(fresh.status())) << fresh.status();
  cluster_->MoveKeys(slot, from, to);
  cluster_->End(slot, from, to);
  EXPECT_EQ(Admitted(*store_, limit, "ann", 1), 1u);
  store_->Ask(fresh);
  EXPECT_TRUE(fresh.allowed()) << "nothing was charged for it before: " << fresh.status();
  EXPECT_EQ(fresh.decision(0).remaining, 1u);
  EXPECT_EQ(fresh.decision(1).remaining, 4u);
  store_.reset();
  EXPECT_THAT(warnings, ::testing::Each(::testing::Not(HasSubstr("cluster"))));
}

TEST_F(RedisClusterLiveTest, AStateThatIsConvertedWhileItsSlotMovesIsNotForgotten) {
  Start();
  const std::uint16_t slot = SlotOf(Name("ann"));
  const std::size_t from = cluster_->OwnerOf(slot, 0);
  const std::size_t to = (from + 1) % cluster_->size();
  const LimitPtr bucket = store_->Prepare(*token_bucket::MakeLimit({20, 1h}, 20));
  const LimitPtr log = store_->Prepare(*sliding_window_log::MakeLimit(20, 1h, false));
  EXPECT_EQ(Admitted(*store_, bucket, "ann", 15), 15u);
  cluster_->Begin(slot, from, to);
  // To become a list the text has to go first, and could not come back.
  Request early({.key = Key("api", "ann"), .limit = log});
  store_->Ask(early);
  EXPECT_FALSE(early.allowed());
  cluster_->MoveKeys(slot, from, to);
  cluster_->End(slot, from, to);
  EXPECT_TRUE(store_->AwaitThat([&](const RedisCounters&) {
    Request late({.key = Key("api", "ann"), .limit = log});
    store_->Ask(late);
    return late.status().ok();
  }));
  EXPECT_LE(Admitted(*store_, log, "ann", 30), 5u);
}

// Nodes that ask without a pause, each on a thread of its own, until told to end.
class ClusterLoad {
 public:
  ClusterLoad(const RedisCluster& cluster, std::vector<std::string> parts, const Limit& limit,
              std::size_t nodes, Duration deadline)
      : parts_(std::move(parts)), deadline_(deadline) {
    for (std::size_t i = 0; i < nodes; ++i) {
      stores_.push_back(std::make_unique<StoreOnLoop>(To(cluster)));
      limits_.push_back(stores_.back()->Prepare(limit));
    }
    admitted_.resize(nodes, std::vector<std::size_t>(parts_.size()));
    unknown_.resize(nodes, std::vector<std::size_t>(parts_.size()));
    waits_.resize(nodes);
  }
  ~ClusterLoad() { Stop(); }

  void Start() {
    for (std::size_t i = 0; i < stores_.size(); ++i) {
      threads_.emplace_back([this, i] { Run(i); });
    }
  }
  void Stop() {
    ends_ = true;
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
  }

  [[nodiscard]] StoreOnLoop& store(std::size_t node) { return *stores_[node]; }
  [[nodiscard]] std::uint64_t rounds() const { return rounds_; }
  // By all nodes.
  [[nodiscard]] std::size_t Admitted(std::size_t part) const { return Sum(admitted_, part); }
  // Requests whose charge may have been made, nobody knows.
  [[nodiscard]] std::size_t Unknown(std::size_t part) const { return Sum(unknown_, part); }
  [[nodiscard]] std::uint64_t Redirected(Redirect::Kind kind) const {
    std::uint64_t sum = 0;
    for (const auto& store : stores_) {
      sum += store->counters().redirects[static_cast<std::size_t>(kind)].value();
    }
    return sum;
  }
  // What so many of a thousand requests did not exceed. Of all nodes, when they have ended.
  [[nodiscard]] Duration Wait(std::size_t of_a_thousand) const {
    std::vector<Duration> all;
    for (const auto& waits : waits_) all.insert(all.end(), waits.begin(), waits.end());
    std::ranges::sort(all);
    return all[(all.size() - 1) * of_a_thousand / 1000];
  }

 private:
  using PerNodeAndPart = std::vector<std::vector<std::size_t>>;
  static std::size_t Sum(const PerNodeAndPart& counts, std::size_t part) {
    std::size_t sum = 0;
    for (const auto& node : counts) sum += node[part];
    return sum;
  }

  void Run(std::size_t node) {
    while (!ends_) {
      std::vector<std::unique_ptr<Request>> requests;
      std::vector<Request*> all;
      for (const std::string& part : parts_) {
        requests.push_back(
            std::make_unique<Request>(Want{.key = Key("api", part), .limit = limits_[node]}));
        all.push_back(requests.back().get());
      }
      stores_[node]->AskAll(all, deadline_);
      for (std::size_t i = 0; i < all.size(); ++i) {
        if (all[i]->allowed()) ++admitted_[node][i];
        if (!all[i]->status().ok()) ++unknown_[node][i];
        waits_[node].push_back(all[i]->waited());
      }
      ++rounds_;
    }
  }

  const std::vector<std::string> parts_;
  const Duration deadline_;
  std::vector<std::unique_ptr<StoreOnLoop>> stores_;
  std::vector<LimitPtr> limits_;
  PerNodeAndPart admitted_;
  PerNodeAndPart unknown_;
  std::vector<std::vector<Duration>> waits_;
  std::atomic<std::uint64_t> rounds_ = 0;
  std::atomic<bool> ends_ = false;
  std::vector<std::thread> threads_;
};

std::vector<std::string> Parts(std::size_t count) {
  std::vector<std::string> parts;
  for (std::size_t i = 0; i < count; ++i) parts.push_back(std::to_string(i));
  return parts;
}

double Milliseconds(Duration time) { return static_cast<double>(time.count()) / 1e6; }

TEST_F(RedisClusterLiveTest, SlotsThatMoveUnderLoadStayExact) {
  Start();
  constexpr std::size_t kUnits = 3000;
  for (const Limit& limit : {Limit(*token_bucket::MakeLimit({1, 24h}, kUnits)),
                             Limit(*sliding_window_log::MakeLimit(kUnits, 24h, false)),
                             Limit(*concurrency::MakeLimit(kUnits, 24h))}) {
    for (std::size_t i = 0; i < cluster_->size(); ++i) cluster_->node(i).Ask({"FLUSHALL"});
    ClusterLoad load(*cluster_, Parts(6), limit, 2, StoreOnLoop::kLong);
    load.Start();
    const auto begin = load.rounds();
    std::size_t moved = 0;
    // Until every key is full, and the first of them have been around.
    for (std::size_t turn = 0; turn < 6 || load.rounds() - begin < kUnits; ++turn) {
      const std::uint16_t slot = SlotOf(Name(std::to_string(turn % 6)));
      const std::size_t from = cluster_->OwnerOf(slot, 0);
      const std::size_t to = (from + 1) % cluster_->size();
      const auto some = [&load] {
        const std::uint64_t rounds = load.rounds();
        RedisCluster::Await("requests go on", [&] { return load.rounds() > rounds + 4; });
      };
      cluster_->Begin(slot, from, to);
      cluster_->MoveKeys(slot, from, to, some);
      some();
      cluster_->End(slot, from, to);
      some();
      RedisCluster::Await("all know", [&] {
        for (std::size_t i = 0; i < cluster_->size(); ++i) {
          if (cluster_->OwnerOf(slot, i) != to) return false;
        }
        return true;
      });
      ++moved;
    }
    load.Stop();
    for (std::size_t part = 0; part < 6; ++part) {
      EXPECT_EQ(load.Admitted(part), kUnits) << part;
      EXPECT_EQ(load.Unknown(part), 0u) << part;
    }
    EXPECT_GT(load.Redirected(Redirect::Kind::kAsk), 0u);
    EXPECT_GT(load.Redirected(Redirect::Kind::kMoved), 0u);
    std::cout << "moved " << moved << " slots under " << load.rounds() * 6 << " requests, "
              << load.Redirected(Redirect::Kind::kMoved) << " moved, "
              << load.Redirected(Redirect::Kind::kAsk) << " ask, longest wait "
              << Milliseconds(load.Wait(1000)) << " ms\n";
  }
}

TEST_F(RedisClusterLiveTest,
       APrimaryThatIsKilledUnderLoadConcernsItsOwnSlotsUntilItsReplicaHasThem) {
  // Without it all servers refuse while one slot has none.
  Start({.primaries = 3, .replicas = 1, .more = {"--cluster-require-full-coverage", "no"}});
  constexpr std::size_t kUnits = 4000;
  constexpr Duration kDeadline = 50ms;
  const Limit limit = *token_bucket::MakeLimit({1, 24h}, kUnits);
  ClusterLoad load(*cluster_, Parts(12), limit, 2, kDeadline);
  load.Start();
  RedisCluster::Await("requests go on", [&] { return load.rounds() > 400; });
  const std::size_t victim = 0;
  const Time killed = SteadyNow();
  cluster_->node(victim).Kill();
  RedisCluster::Await("the stores know", [&] { return !load.store(0).health().up; });
  EXPECT_THAT(load.store(0).health().why, HasSubstr(" of 16384 slots: redis 127.0.0.1"));
  RedisCluster::Await("its replica is promoted", [&] { return cluster_->OwnerOf(0, 1) == 3; });
  const Time promoted = SteadyNow();
  RedisCluster::Await("all is well again",
                      [&] { return load.store(0).health().up && load.store(1).health().up; });
  const Time up = SteadyNow();
  const auto rounds = load.rounds();
  RedisCluster::Await("all keys are full", [&] { return load.rounds() > rounds + 2 * kUnits; });
  load.Stop();
  std::size_t most = 0;
  for (std::size_t part = 0; part < 12; ++part) {
    const bool of_victim = SlotOf(Name(std::to_string(part))) < 16384 / 3;
    // What was lost with the primary passes again; what nobody knows of may be charged.
    const std::size_t again = of_victim ? kUnits : 0;
    EXPECT_LE(load.Admitted(part), kUnits + again) << part;
    EXPECT_GE(load.Admitted(part) + load.Unknown(part), kUnits) << part;
    EXPECT_EQ(load.Unknown(part) > 0, of_victim) << part << ": those of the others went on";
    most = std::max(most, load.Admitted(part));
  }
  EXPECT_LE(load.Wait(990), kDeadline + 5ms);
  EXPECT_LT(up - promoted, 1s);
  std::cout << "promoted after " << Milliseconds(promoted - killed) << " ms, all is well "
            << Milliseconds(up - promoted) << " ms later; 99 of 100 waited at most "
            << Milliseconds(load.Wait(990)) << " ms, all " << Milliseconds(load.Wait(1000))
            << " ms; most admitted of " << kUnits << ": " << most << "\n";
}

}  // namespace
}  // namespace sluice::redis
