// Counters in a Redis Cluster, shared by every node that uses the same cluster, prefix and rules.
//
//   RedisClusterStore store(loop, clock, {.seeds = {{"10.0.0.7", 6379}, {"10.0.0.8", 6379}}});
//
// For each primary what RedisStore has for its one server: a connection, calls of up to 32 groups,
// a breaker, what is to be given back. A group goes to the primary that has the slot of its keys
// (redis_slots.h); all that goes to one primary in a turn of the loop leaves in one write, and a
// call of the script holds groups of one slot.
//
//   MOVED     the group goes to the server named, and so does what comes later for the slot
//   ASK       this group goes there, by itself, once
//   TRYAGAIN  this group tries again, by itself, soon: its keys are on their way
//
// In each of these the server did nothing of it; a group is followed so as long as its deadline
// lasts, and to five servers at most. Of what may have been done nothing is sent again.
//
// What is to be given back follows in the same way, and for longer. Where a primary fell, it waits
// until another has its slots.
//
// A primary that is gone refuses the groups of its slots, those alone, until another has them. The
// map of slots is asked for every few seconds, twice a second while something is wrong, and when a
// server says that it is another one (internal/map_source.h). Before the first map groups wait for
// it, until all seeds have failed.
//
// Apply() takes groups whose claims lie in one slot alone, those of one identity (key_name.h):
// PartOf() tells them apart. Others: InvalidArgument.
//
// Guarantee: as RedisStore, each slot for itself. While a slot moves every group is decided where
// its keys are. What a failover loses says docs/redis.md.
//
// Thread-safety and lifetime: as RedisStore.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "sluice/net/address.h"
#include "sluice/store/redis/redis_remote_store.h"
#include "sluice/store/redis/redis_store.h"

namespace sluice::redis {

struct RedisClusterOptions {
  std::vector<net::HostPort> seeds;  // at least one; those that answer name all others
  // As for one server, for each of them, with what is said of on_health and max_waiting for all
  // together. Of `connection` the place is the cluster's affair.
  RedisStoreOptions store;
  Duration look_every = std::chrono::seconds{5};  // at the map of slots
  Duration look_soon = std::chrono::milliseconds{500};
  // A server without slots after it was named last: keys of a slot that moves to it are asked for
  // there before the map has it, and what is on its way ends well.
  Duration keep_unused = std::chrono::seconds{10};
};

class RedisClusterStore final : public RedisRemoteStore {
 public:
  RedisClusterStore(net::EventLoop& loop, const Clock& clock, RedisClusterOptions options);
  RedisClusterStore(const RedisClusterStore&) = delete;
  RedisClusterStore& operator=(const RedisClusterStore&) = delete;
  ~RedisClusterStore() override;

  // The slot of a claim's key.
  [[nodiscard]] std::uint32_t PartOf(const RemoteClaim& claim) const;

  [[nodiscard]] absl::Status Apply(RemoteGroup& group, Time deadline, Done done) override;
  void Undo(const RemoteClaim& claim, std::uint64_t units) override;
  void Renew(const RemoteClaim& claim) override;

  [[nodiscard]] const RedisCounters& counters() const override;
  // Up: every slot has a primary that decides.
  [[nodiscard]] RedisHealth health() const override;

 private:
  class Core;

  const std::unique_ptr<Core> core_;
};

}  // namespace sluice::redis
