// Where a cluster's slots are, asked again and again: of the servers that the store is connected to
// anyway, one after another, so that one with an old map is corrected by the next; of the seeds, by
// a connection of its own, while there are none.
//
//   asked ──a map──> again after `look_every`, or `look_soon` while something is wrong
//     `────none────> again, of the next one, after a random 0 .. 10, 20, 40 ms ... look_soon
//
// One question at a time. What says that the map has changed brings the next question forward; but
// two maps are at least half of `look_soon` apart, so that a cluster that is moving its slots is
// not asked for each of them.
//
// For the loop's thread. Destroyed, it calls nobody any more.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "sluice/base/time.h"
#include "sluice/net/event_loops.h"
#include "sluice/net/redis_connection.h"
#include "sluice/store/redis/internal/loop_hooks.h"
#include "sluice/store/redis/internal/script_link.h"
#include "sluice/store/redis/redis_slots.h"

namespace sluice::redis {

struct MapSourceOptions {
  std::vector<net::HostPort> seeds;        // at least one
  net::RedisConnectionOptions connection;  // to a seed; where to is our affair
  Duration look_every = std::chrono::seconds{5};
  Duration look_soon = std::chrono::milliseconds{500};
};

class MapSource {
 public:
  struct Events {
    virtual ~Events() = default;
    virtual void OnMap(const std::vector<SlotRange>& map) = 0;
    virtual void OnNoMap(const absl::Status& why) = 0;
    // The next of the servers that can be asked, each in turn; null: there is none.
    virtual ScriptLink* NextToAsk() = 0;
    // Whether all is well, as far as is known.
    [[nodiscard]] virtual bool Well() const = 0;
  };

  // Asks at once.
  MapSource(net::EventLoop& loop, MapSourceOptions options, Events& events);
  MapSource(const MapSource&) = delete;
  MapSource& operator=(const MapSource&) = delete;
  ~MapSource();

  // Something is not as the map says.
  void LookSoon();

 private:
  void Look();
  void LookAtSeeds();
  void OnSeed(net::RedisState state);
  [[nodiscard]] std::size_t SeedBehind(std::string_view address) const;
  [[nodiscard]] net::RedisConnection::Done Reply(std::string asked);
  void OnReply(const std::string& asked, const absl::StatusOr<net::RedisReply>& reply);
  void OnFailed(const absl::Status& why);
  void LookAt(Time at);

  net::EventLoop& loop_;
  const MapSourceOptions options_;
  Events& events_;
  const std::string question_;
  bool asking_ = false;      // or about to ask a seed
  Time last_ = Time::min();  // of the last map
  Time due_ = Time::max();   // the next question
  Duration backoff_;
  std::size_t first_seed_ = 0;  // to connect to
  Wake wake_;
  // What outlives us knows by it that we are gone.
  const std::shared_ptr<MapSource*> self_ = std::make_shared<MapSource*>(this);
  std::unique_ptr<net::RedisConnection> seed_;  // null: it is not needed
};

}  // namespace sluice::redis
