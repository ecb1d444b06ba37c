// A Redis Cluster of a test's own, on free ports of this machine: primaries that share the slots
// evenly, each with as many replicas.
//
//   RedisCluster cluster({.primaries = 3, .replicas = 1});
//   cluster.Move(slot, 2);                // all its keys, one after another
//   cluster.node(0).Kill();
//
// Where it does not come about the test fails. Every wait ends after 20 s, with a test failure.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sluice/net/testing/redis_server.h"

namespace sluice::net::testing {

class RedisCluster {
 public:
  struct Options {
    std::size_t primaries = 3;
    std::size_t replicas = 0;  // of each
    // Without a word from a node for so long the others give it up.
    std::chrono::milliseconds node_timeout{1000};
    // kTls: among themselves, too.
    RedisServer::Listens listens = RedisServer::Listens::kTcp;
    std::vector<std::string> more;  // of each server's command line
  };

  RedisCluster() : RedisCluster(Options{}) {}
  explicit RedisCluster(
      const Options& options);  // Comes back when all of them agree that it works.
  RedisCluster(const RedisCluster&) = delete;
  RedisCluster& operator=(const RedisCluster&) = delete;

  // At first the primaries, in the order of their slots, then their replicas, in the same order.
  [[nodiscard]] RedisServer& node(std::size_t index) { return *nodes_[index]; }
  [[nodiscard]] std::size_t size() const { return nodes_.size(); }
  [[nodiscard]] std::string id(std::size_t index) const { return ids_[index]; }
  [[nodiscard]] std::vector<std::uint16_t> ports() const;

  // The node that has the slot, by the word of `asked`; size(): none.
  [[nodiscard]] std::size_t OwnerOf(std::uint16_t slot, std::size_t asked);

  // As redis-cli --cluster reshard does it: the slot is marked on both sides, then its keys move,
  // then all are told. `between` is called before each key moves.
  void Begin(std::uint16_t slot, std::size_t from, std::size_t to);
  void MoveKeys(std::uint16_t slot, std::size_t from, std::size_t to,
                const std::function<void()>& between = nullptr);
  void End(std::uint16_t slot, std::size_t from, std::size_t to);
  void Move(std::uint16_t slot, std::size_t from, std::size_t to) {
    Begin(slot, from, to);
    MoveKeys(slot, from, to);
    End(slot, from, to);
  }

  // Asked again and again. A failure of the test if it does not come true.
  static void Await(std::string_view what, const std::function<bool()>& holds);

 private:
  void Join(const Options& options);

  std::vector<std::unique_ptr<RedisServer>> nodes_;
  std::vector<std::string> ids_;
};

}  // namespace sluice::net::testing
