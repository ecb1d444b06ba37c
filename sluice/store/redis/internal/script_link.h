// The connection of a store, together with the script on its server: what is sent here finds it.
//
//   connected ──> SCRIPT LOAD ──> usable ──(lost)──> gone ──> connected ──> ...
//
// The first time the script's name is not known before its reply has come. Later calls go out right
// behind the SCRIPT LOAD, which the server carries out first.
//
// A server that answers that it is the wrong one (READONLY, MASTERDOWN) is left: the address may
// lead to another by now.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "sluice/base/time.h"
#include "sluice/net/deadlines.h"
#include "sluice/net/event_loops.h"
#include "sluice/net/redis_connection.h"
#include "sluice/store/redis/redis_counters.h"

namespace sluice::redis {

class ScriptLink {
 public:
  // Called on the loop, never from inside of Send().
  struct Events {
    virtual ~Events() = default;
    virtual void OnUsable() = 0;
    // Also when the first attempt failed. Before what is on its way is told.
    virtual void OnGone(const absl::Status& why) = 0;
    // It answers, but it is a replica. It will be gone soon.
    virtual void OnWrongServer(std::string_view why) = 0;
    // It is of a cluster that does not work now.
    virtual void OnClusterDown() = 0;
  };

  // `script`: in place of ScriptSource(), unless it is empty.
  ScriptLink(net::EventLoop& loop, net::RedisConnectionOptions options, std::string_view script,
             RedisCounters& counters, Events& events);

  // Tells what is on its way (Cancelled), and why() is `why`. Nothing is sent from then on.
  void Close(absl::Status why);

  // Whether Send() would send. Before the first attempt has ended it is not, nor is it gone.
  [[nodiscard]] bool usable() const { return usable_; }
  [[nodiscard]] bool gone() const { return !usable_ && settled_; }
  // Why it is gone; Unavailable, or as Close() was told.
  [[nodiscard]] const absl::Status& why() const { return why_; }

  // The server's address; empty: none was found yet.
  [[nodiscard]] std::string server() const { return connection_ ? connection_->server() : ""; }

  // For EVALSHA, while it is usable.
  [[nodiscard]] std::string_view sha() const { return sha_; }
  // As RedisConnection::Send().
  [[nodiscard]] absl::Status Send(std::string_view command, Time deadline,
                                  net::RedisConnection::Done done, std::uint32_t replies = 1);

  // The server has lost the script. What is sent after this goes out behind it.
  void LoadAgain();
  // Leaves the connection for a new one.
  void Renew(std::string_view why);
  // What the server says of a call or of a part of it. Counts it; leaves a wrong server.
  void OnError(std::string_view error);

 private:
  void OnState(net::RedisState state);
  void Load();
  void OnLoaded(const absl::StatusOr<net::RedisReply>& reply);
  void BeGone(absl::Status why);

  RedisCounters& counters_;
  Events& events_;
  std::string load_;  // the command
  std::string sha_;
  bool usable_ = false;
  bool settled_ = false;
  bool loading_ = false;
  absl::Status why_;
  net::Alarm<ScriptLink, &ScriptLink::Load> again_;
  std::unique_ptr<net::RedisConnection> connection_;  // last: its callbacks come here
};

}  // namespace sluice::redis
