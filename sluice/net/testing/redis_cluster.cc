#include "sluice/net/testing/redis_cluster.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <initializer_list>
#include <random>

namespace sluice::net::testing {
namespace {

constexpr std::size_t kSlotCount = 16'384;
constexpr std::chrono::seconds kPatience(20);

// A free one from below those that the system hands out: the server's other port is one of these,
// and is only drawn when it starts.
std::uint16_t BusPort() {
  constexpr int kFirst = 20'000;
  constexpr int kCount = 10'000;
  static std::mt19937 random{std::random_device{}()};
  for (;;) {
    const auto port = static_cast<std::uint16_t>(kFirst + random() % kCount);
    const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(port);
    const bool free = ::bind(socket, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
    ::close(socket);
    if (free) return port;
  }
}

RedisReply MustBeOk(RedisReply reply) {
  EXPECT_FALSE(reply.is_error()) << reply.error();
  return reply;
}

bool Says(RedisServer& node, std::string_view line) {
  return node.Ask({"CLUSTER", "INFO"}).text().find(line) != std::string_view::npos;
}

}  // namespace

RedisCluster::RedisCluster(const Options& options) {
  const std::size_t count = options.primaries * (1 + options.replicas);
  for (std::size_t i = 0; i < count; ++i) {
    // By itself it would be 10,000 above the other, which may be no port.
    const std::string bus = std::to_string(BusPort());
    std::vector<std::string> more = {"--cluster-enabled",
                                     "yes",
                                     "--cluster-port",
                                     bus,
                                     "--cluster-node-timeout",
                                     std::to_string(options.node_timeout.count()),
                                     "--repl-diskless-sync-delay",
                                     "0"};
    if (options.listens == RedisServer::Listens::kTls) {
      more.insert(more.end(), {"--tls-cluster", "yes"});
    }
    more.insert(more.end(), options.more.begin(), options.more.end());
    nodes_.push_back(std::make_unique<RedisServer>(
        RedisServer::Options{.listens = options.listens, .more = std::move(more)}));
    ids_.emplace_back(nodes_[i]->Ask({"CLUSTER", "MYID"}).text());
    const std::string epoch = std::to_string(i + 1);
    MustBeOk(nodes_[i]->Ask({"CLUSTER", "SET-CONFIG-EPOCH", epoch}));
    const std::string port = std::to_string(nodes_[i]->port());
    if (i > 0) MustBeOk(nodes_[0]->Ask({"CLUSTER", "MEET", "127.0.0.1", port, bus}));
  }
  Join(options);
}

void RedisCluster::Join(const Options& options) {
  for (std::size_t i = 0; i < options.primaries; ++i) {
    const std::string first = std::to_string(i * kSlotCount / options.primaries);
    const std::string last = std::to_string((i + 1) * kSlotCount / options.primaries - 1);
    MustBeOk(nodes_[i]->Ask({"CLUSTER", "ADDSLOTSRANGE", first, last}));
  }
  const std::string known = "cluster_known_nodes:" + std::to_string(size());
  for (auto& node : nodes_) Await("nodes know each other", [&] { return Says(*node, known); });
  for (std::size_t i = options.primaries; i < size(); ++i) {
    const std::string& primary = ids_[(i - options.primaries) / options.replicas];
    Await("a replica knows its primary", [&] {
      return !nodes_[i]->Ask({"CLUSTER", "REPLICATE", primary}).is_error();
    });
  }
  for (std::size_t i = 0; i < size(); ++i) {
    Await("all of them say that it works", [&] {
      if (!Says(*nodes_[i], "cluster_state:ok")) return false;
      const RedisReply info = nodes_[i]->Ask({"INFO", "replication"});
      return i < options.primaries ||
             info.text().find("master_link_status:up") != std::string_view::npos;
    });
  }
}

std::vector<std::uint16_t> RedisCluster::ports() const {
  std::vector<std::uint16_t> ports;
  for (const auto& node : nodes_) ports.push_back(node->port());
  return ports;
}

std::size_t RedisCluster::OwnerOf(std::uint16_t slot, std::size_t asked) {
  const RedisReply map = nodes_[asked]->Ask({"CLUSTER", "SLOTS"});
  for (std::size_t i = 0; i < map.size(); ++i) {
    if (slot < map[i][0].integer() || slot > map[i][1].integer()) continue;
    for (std::size_t node = 0; node < size(); ++node) {
      if (nodes_[node]->port() == map[i][2][1].integer()) return node;
    }
  }
  return size();
}

void RedisCluster::Begin(std::uint16_t slot, std::size_t from, std::size_t to) {
  const std::string number = std::to_string(slot);
  MustBeOk(nodes_[to]->Ask({"CLUSTER", "SETSLOT", number, "IMPORTING", ids_[from]}));
  MustBeOk(nodes_[from]->Ask({"CLUSTER", "SETSLOT", number, "MIGRATING", ids_[to]}));
}

void RedisCluster::MoveKeys(std::uint16_t slot, std::size_t from, std::size_t to,
                            const std::function<void()>& between) {
  const std::string number = std::to_string(slot);
  const std::string port = std::to_string(nodes_[to]->port());
  for (;;) {
    if (between) between();
    const RedisReply keys = nodes_[from]->Ask({"CLUSTER", "GETKEYSINSLOT", number, "1"});
    if (keys.size() == 0) return;
    MustBeOk(nodes_[from]->Ask({"MIGRATE", "127.0.0.1", port, keys[0].text(), "0", "5000"}));
  }
}

void RedisCluster::End(std::uint16_t slot, std::size_t from, std::size_t to) {
  const std::string number = std::to_string(slot);
  // Who gets it first: else nobody would have it for a moment.
  for (const std::size_t node : {to, from}) {
    MustBeOk(nodes_[node]->Ask({"CLUSTER", "SETSLOT", number, "NODE", ids_[to]}));
  }
}

void RedisCluster::Await(std::string_view what, const std::function<bool()>& holds) {
  const auto end = std::chrono::steady_clock::now() + kPatience;
  while (!holds()) {
    ASSERT_LT(std::chrono::steady_clock::now(), end) << what;
    ::poll(nullptr, 0, 5);
  }
}

}  // namespace sluice::net::testing
