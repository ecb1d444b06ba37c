// Whether groups are given to the server at all, and what is told of it: the breaker, its probes,
// and the store's health.
//
// A probe is a call of the script with nothing in it. It is sent at once when the breaker has
// opened and when the connection is there again, and then at the breaker's pace.
#pragma once

#include <functional>
#include <mutex>
#include <string>

#include "absl/status/status.h"
#include "sluice/base/time.h"
#include "sluice/net/event_loops.h"
#include "sluice/store/redis/internal/breaker.h"
#include "sluice/store/redis/internal/loop_hooks.h"
#include "sluice/store/redis/internal/store_parts.h"
#include "sluice/store/redis/redis_health.h"

namespace sluice::redis {

class Guard {
 public:
  using OnHealth = std::function<void(const RedisHealth&)>;

  Guard(net::EventLoop& loop, const StoreParts& parts, BreakerOptions breaker, OnHealth on_health);
  Guard(const Guard&) = delete;
  Guard& operator=(const Guard&) = delete;

  // Not OK: Unavailable, and why. OK: the group ends with one of the next three.
  absl::Status Admit(Breaker::Ticket* ticket);
  void Succeeded(Breaker::Ticket ticket);
  void Failed(Breaker::Ticket ticket, const absl::Status& why, bool refused);
  void Neither(Breaker::Ticket ticket) { breaker_.Neither(ticket); }

  void OnUsable();
  void OnGone() { Tell(); }
  void OnWrongServer(std::string_view why);

  // From any thread.
  [[nodiscard]] RedisHealth health() const;

 private:
  void Open(const absl::Status& why);
  void Probe();
  void OnProbe(const absl::StatusOr<net::RedisReply>& reply);
  void Tell();

  const StoreParts parts_;
  const Duration probe_deadline_;
  const OnHealth on_health_;
  Breaker breaker_;
  absl::Status refusal_;  // while it is not closed; ready made
  Wake wake_;
  std::string bytes_;
  int late_ = 0;        // probes in a row that had no answer in time
  bool known_ = false;  // whether it was ever up or down

  mutable std::mutex mutex_;
  RedisHealth health_;
};

}  // namespace sluice::redis
