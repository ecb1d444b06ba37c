// Counters in Redis, shared by every node that uses the same server, prefix and rules.
//
//   RedisStore store(loop, clock, {.connection = {.address = {"10.0.0.7", 6379}}});
//   auto limit = store.Prepare(rule.limit);                    // once for each limit
//   RemoteClaim claim{.key = key, .limit = limit->get()};
//   RemoteGroup group{.claims = {&claim, 1}};
//   store.Apply(group, SteadyNow() + 5ms, [](const absl::Status& status) { ... });
//
// What is asked in one turn of the loop goes out together: up to 32 groups in a call of the script
// (script_call.h), all calls in one write. Each group stands for itself; one that is wrong, such as
// a key under which something else lies, harms no other.
//
// A group ends at its deadline, also when its call was sent; what was charged by it stays charged,
// but slots are released. One whose deadline has passed is not sent. While there is no connection
// groups are refused at once, but for the time until the very first attempt has ended: then they
// wait for it. A group is sent a second time only when the first did nothing (the server had lost
// the script, or the state under a key was one of other numbers).
//
// After some groups in a row that were not answered a breaker opens (redis_health.h): groups are
// refused at once, and probes look whether the server answers again.
//
// What the server answers in place of a decision (READONLY, LOADING, OOM, BUSY, ...) is told as
// Unavailable, with its own words, and never as a denial. A server that says it is the wrong one is
// left for the one that the address leads to then.
//
// Cost of a decision: its bytes, and what hiredis takes for the reply; in steady state nothing else
// is allocated. Of a turn: one call for each 32 groups, one write.
//
// One for each event loop, all of it on that loop's thread but where it says so. Destroy it before
// the loops are stopped, and not from inside of one of its callbacks. Those that wait are told
// (Cancelled), and what was to be given back stays charged.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "sluice/base/clock.h"
#include "sluice/net/event_loops.h"
#include "sluice/net/redis_connection.h"
#include "sluice/store/redis/key_name.h"
#include "sluice/store/redis/redis_counters.h"
#include "sluice/store/redis/redis_health.h"
#include "sluice/store/redis/redis_remote_store.h"
#include "sluice/store/redis/server_report.h"

namespace sluice::redis {

struct RedisStoreOptions {
  net::RedisConnectionOptions connection;  // on_state is the store's
  KeyOptions keys;

  BreakerOptions breaker;
  // Called on the loop once the store is known to be up or down, and then when that changes. May be
  // null.
  std::function<void(const RedisHealth&)> on_health;

  // Called on the loop once for each connection, with what its server is like. May be null.
  std::function<void(const ServerReport&)> on_report;

  // Groups that wait for an answer. Beyond it, and where too many calls wait for a late one
  // (connection.max_waiting): ResourceExhausted.
  std::size_t max_waiting = 4096;
  // What is to be given back while the store is gone; half of it for other than slots. Beyond it
  // what was charged stays so.
  std::size_t max_undos_waiting = 16'384;
  // Whether an undo is marked on the server when it is done, by a key that is deleted when the
  // answer has come, or is over after 80 s. Then one whose answer was lost is tried again, for a
  // minute. Without a mark that could give back what others spent, so what was charged stays so.
  bool mark_undos = false;

  // In place of ScriptSource(), for tests that set its clock. Empty: none.
  std::string script;
};

class RedisStore final : public RedisRemoteStore {
 public:
  // Begins to connect. `clock` tells the wall time that the server's is compared with.
  RedisStore(net::EventLoop& loop, const Clock& clock, RedisStoreOptions options);
  RedisStore(const RedisStore&) = delete;
  RedisStore& operator=(const RedisStore&) = delete;
  ~RedisStore() override;

  [[nodiscard]] absl::Status Apply(RemoteGroup& group, Time deadline, Done done) override;
  void Undo(const RemoteClaim& claim, std::uint64_t units) override;
  void Renew(const RemoteClaim& claim) override;

  [[nodiscard]] const RedisCounters& counters() const override;
  [[nodiscard]] RedisHealth health() const override;

 private:
  class Core;

  const std::unique_ptr<Core> core_;
};

}  // namespace sluice::redis
