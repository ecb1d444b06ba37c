// The stores in Redis (store.redis), one for each event loop, and what the operator is told of
// them.
//
// They are one store to everybody else: up when each loop's is. A change of that is logged once;
// the metrics and /readyz say what is so now, and since when. With store.redis.sentinel they say
// which server is the primary, too. With store.redis.cluster each of them is of several servers,
// and up when every slot has one that decides.
//
// Thread-safety: Open(), WaitUntilUp() and Close() from one thread that is none of the loops'; the
// rest from any.
#pragma once

#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "sluice/base/clock.h"
#include "sluice/base/hash.h"
#include "sluice/config/config.h"
#include "sluice/limiter/denial_memory.h"
#include "sluice/net/event_loops.h"
#include "sluice/net/timer.h"
#include "sluice/server/node_channel.h"
#include "sluice/store/lease/leases.h"
#include "sluice/store/redis/redis_remote_store.h"
#include "sluice/store/redis/redis_store.h"
#include "sluice/store/split_store.h"

namespace sluice {

class RedisStores {
 public:
  // Before the loops are started, which outlive the result, as does the clock. `config` has
  // store.redis. Errors: as TlsClientContext::Load().
  static absl::StatusOr<std::unique_ptr<RedisStores>> Open(net::EventLoops& loops,
                                                           const Clock& clock,
                                                           const config::Config& config);
  ~RedisStores() { Close(Duration{0}); }
  RedisStores(const RedisStores&) = delete;
  RedisStores& operator=(const RedisStores&) = delete;

  [[nodiscard]] RemoteStore& of(const net::EventLoop& loop) { return *stores_[loop.index()].front; }
  [[nodiscard]] Duration deadline() const { return settings_.deadline; }
  // Null: nothing is to be leased.
  [[nodiscard]] Leases* leases(const net::EventLoop& loop) {
    return loops_leases_.empty() ? nullptr : &loops_leases_[loop.index()]->leases;
  }
  // Null: none is to be remembered.
  [[nodiscard]] DenialMemory* denials() { return denials_ ? &*denials_ : nullptr; }

  // The rules that this node counts by from now on, for the other nodes (node_channel.h).
  void TellOthers(const RuleSet& rules) { channel_->Use(rules); }

  // For at most connect_wait, and not after `stop` is asked for; false: it did not come, which is
  // logged.
  bool WaitUntilUp(const std::stop_token& stop);

  // Gives what is still to be given back so long to leave, then ends all connections. The loops
  // run, and nobody asks any more. Does nothing a second time.
  void Close(Duration patience);

  struct State {
    bool up = false;
    WallTime since;
    std::string server;  // its address; empty: none was found yet
    std::string why;     // not up
  };
  [[nodiscard]] State state() const;
  // As JSON, for /readyz.
  [[nodiscard]] std::string StateJson() const;
  void WriteMetrics(std::string& out) const;  // appends

 private:
  // Of one loop.
  struct LoopStore {
    std::unique_ptr<redis::RedisRemoteStore> redis;
    std::unique_ptr<SplitStore> split;  // of a cluster; null: of one server
    RemoteStore* front = nullptr;       // who is asked
  };

  RedisStores(net::EventLoops& loops, const config::Config& config);
  void OpenOne(net::EventLoop& loop, const Clock& clock, redis::RedisStoreOptions options);
  void Note(std::size_t loop, const redis::RedisHealth& health);
  void Tell(const redis::ServerReport& report);  // on the first loop
  // Undos that wait, or a lease whose answer is on its way, and which goes back then.
  [[nodiscard]] bool OwesAnything() const;
  void WriteWaits(std::string& out) const;
  void WriteLeases(std::string& out) const;
  void WriteCluster(std::string& out) const;

  // What a loop holds of leases, and the timer that gives back what is over.
  struct LoopLeases {
    LoopLeases(net::EventLoop& loop, const Clock& its_clock, RemoteStore& store, std::size_t keys);
    void WakeAt(Time at);

    const Clock& clock;
    net::Timer timer;
    Leases leases;
  };

  net::EventLoops& loops_;
  const config::RedisSettings settings_;
  std::optional<HashKey> hash_key_;
  std::optional<DenialMemory> denials_;
  std::map<std::string, redis::ServerReport> told_of_servers_;  // to the log; by address
  std::vector<LoopStore> stores_;                               // by loop
  std::vector<std::unique_ptr<LoopLeases>> loops_leases_;       // by loop; empty: nothing is leased
  std::unique_ptr<NodeChannel> channel_;                        // on the first loop

  mutable std::mutex mutex_;  // guards what follows
  std::condition_variable_any changed_;
  std::vector<std::optional<redis::RedisHealth>> health_;  // by loop; nothing: not known yet
  State state_;
  bool told_ = false;  // of state_, to the log
};

}  // namespace sluice
