// How many connections each client has open, over all loops, and the bound on that: without one a
// single client can take all of limits.connections and keep everybody else out.
//
//   accept -> Enter(client) -> a Pass, which leaves by itself when the connection has ended
//                           -> nothing: this client has as many as it may
//
// Cost: two short looks into a table under a lock, when a connection begins and when it ends; none
// between. The table holds the clients that have a connection, so it is as bounded as those are.
// Thread-safety: all functions from any thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "sluice/base/ip.h"

namespace sluice::net {

class ClientConnections {
 public:
  // One connection's place. One that was made without a client counts for nobody.
  class Pass {
   public:
    Pass() = default;
    Pass(Pass&& other) noexcept
        : table_(std::exchange(other.table_, nullptr)), client_(other.client_) {}
    Pass& operator=(Pass&&) = delete;
    ~Pass() {
      if (table_ != nullptr) table_->Leave(client_);
    }

   private:
    friend class ClientConnections;
    Pass(ClientConnections& table, IpAddress client) : table_(&table), client_(client) {}

    ClientConnections* table_ = nullptr;
    IpAddress client_;
  };

  // At least 1 for each client. Outlives its passes.
  explicit ClientConnections(std::size_t most_each) : most_each_(most_each) {}
  ClientConnections(const ClientConnections&) = delete;
  ClientConnections& operator=(const ClientConnections&) = delete;

  // `client` is what counts as one: an address, or a network as its first address.
  [[nodiscard]] std::optional<Pass> Enter(IpAddress client);

  // Clients that have a connection.
  [[nodiscard]] std::size_t clients() const;

 private:
  using Key = std::array<std::uint8_t, 16>;
  // Several, so that loops seldom meet; each on cache lines of its own.
  struct alignas(64) Shard {
    mutable std::mutex mutex;
    absl::flat_hash_map<Key, std::size_t> open;
  };
  static constexpr std::size_t kShards = 16;

  Shard& ShardOf(const Key& key);
  void Leave(IpAddress client);

  const std::size_t most_each_;
  std::array<Shard, kShards> shards_;
};

}  // namespace sluice::net
