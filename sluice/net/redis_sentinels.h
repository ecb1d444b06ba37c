// Sentinels, who know which Redis server is the primary. One object asks all of them.
//
//   auto sentinels = std::make_shared<RedisSentinels>(
//       loop, RedisSentinelsOptions{.master = "mymaster", .nodes = {{"10.0.0.1", 26379}, ...}});
//   RedisConnection redis(loop, {.primary = true, .find_address =
//   RedisSentinels::Finder(sentinels)});
//
// The primary is where most of those say that answer; so one that is stale, or that lies, is
// outvoted by two. It is known as soon as more than half of all agree, or all have answered or
// failed, or the patience is over. Where as many say one thing as another all of it is told: who
// connects finds out (ROLE). One sentinel that answers is enough.
//
// Nothing is remembered: what was true a second ago is asked again. What may go wrong, as the
// message of a status that is Unavailable, with each sentinel's own reason:
//
//   no sentinel says where `mymaster` is: 10.0.0.1:26379: knows no such master; 10.0.0.2:26379: ...
//
// A connection of its own to each sentinel, kept open, opened anew as RedisConnection does: with
// waits that grow and are random. Cost of a question: a small command and reply for each sentinel.
//
// All of it on the loop's thread (or before the loop runs). Destroy it before the loops are
// stopped. Those that wait are told (Unavailable).
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "sluice/base/time.h"
#include "sluice/net/address.h"
#include "sluice/net/event_loops.h"
#include "sluice/net/redis_connection.h"
#include "sluice/net/tls_context.h"

namespace sluice::net {

struct RedisSentinelsOptions {
  std::string master;           // what they call it
  std::vector<HostPort> nodes;  // at least one, none twice
  std::string user;             // of the sentinels, not of the server
  std::string password;
  std::shared_ptr<const TlsClientContext> tls;  // null: no TLS
  Duration connect_timeout = std::chrono::seconds{1};
  std::function<Duration(Duration)> jitter;  // as RedisConnectionOptions has it
};

class RedisSentinels {
 public:
  using Found = absl::AnyInvocable<void(RedisAddresses)>;

  // Begins to connect to all of them.
  RedisSentinels(EventLoop& loop, RedisSentinelsOptions options);
  RedisSentinels(const RedisSentinels&) = delete;
  RedisSentinels& operator=(const RedisSentinels&) = delete;
  ~RedisSentinels();  // NOLINT(bugprone-exception-escape): no callback throws

  // Calls `found` once within `patience`, never from inside of this call.
  void Find(Duration patience, Found found);

  // For RedisConnectionOptions::find_address; owns it as well.
  static std::function<void(Duration, Found)> Finder(std::shared_ptr<RedisSentinels> sentinels);

 private:
  class Round;

  EventLoop& loop_;
  const std::shared_ptr<const RedisSentinelsOptions> options_;
  std::string question_;  // the command
  std::vector<std::unique_ptr<RedisConnection>> sentinels_;
};

}  // namespace sluice::net
