// All that a store has around one server: the connection with the script on it, what is asked and
// given back there, and whether it is asked at all.
//
// The groups belong to the store, which may have several servers (a cluster's). Destroyed, it ends
// what is on its way (Cancelled), and forgets what is still to be given back.
#pragma once

#include <cstddef>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "sluice/base/clock.h"
#include "sluice/net/event_loops.h"
#include "sluice/net/redis_connection.h"
#include "sluice/store/redis/internal/call_queue.h"
#include "sluice/store/redis/internal/give_back.h"
#include "sluice/store/redis/internal/guard.h"
#include "sluice/store/redis/internal/loop_hooks.h"
#include "sluice/store/redis/internal/redirects.h"
#include "sluice/store/redis/internal/script_link.h"
#include "sluice/store/redis/internal/server_questions.h"
#include "sluice/store/redis/internal/store_parts.h"
#include "sluice/store/redis/internal/waiting_groups.h"
#include "sluice/store/redis/redis_health.h"
#include "sluice/store/redis/script_call.h"
#include "sluice/store/redis/server_report.h"

namespace sluice::redis {

// Of the store. All of it outlives its servers.
struct StoreShare {
  const Clock& clock;
  const KeyOptions& keys;
  RedisCounters& counters;
  WaitingGroups& groups;
};

struct OneServerOptions {
  net::RedisConnectionOptions connection;
  BreakerOptions breaker;
  std::function<void(const RedisHealth&)> on_health;   // as RedisStoreOptions has it
  std::function<void(const ServerReport&)> on_report;  // the same
  std::function<void()> on_cluster_down;               // it says so; may be null
  std::size_t max_undos_waiting = 0;
  bool mark_undos = false;
  std::string script;
  Redirects* redirects = nullptr;  // null: it is in no cluster
};

class OneServer final : private ScriptLink::Events {
 public:
  // Begins to connect.
  OneServer(net::EventLoop& loop, const StoreShare& store, OneServerOptions options);
  OneServer(const OneServer&) = delete;
  OneServer& operator=(const OneServer&) = delete;
  ~OneServer() override;

  [[nodiscard]] CallQueue& calls() { return calls_; }
  [[nodiscard]] GiveBack& give_back() { return give_back_; }
  [[nodiscard]] ScriptLink& link() { return link_; }
  // From any thread.
  [[nodiscard]] RedisHealth health() const { return guard_.health(); }

  // Ends the connection; who waits is told this. For the time until it is destroyed.
  void Close(absl::Status why);

 private:
  void OnUsable() override;
  void OnGone(const absl::Status& why) override;
  void OnWrongServer(std::string_view why) override { guard_.OnWrongServer(why); }
  void OnClusterDown() override;
  void OnTurn();

  const std::function<void()> on_cluster_down_;
  ScriptCall script_;
  TurnEnd turn_;
  const StoreParts parts_;
  GiveBack give_back_;
  ServerQuestions questions_;
  Guard guard_;
  CallQueue calls_;
  ScriptLink link_;
};

}  // namespace sluice::redis
