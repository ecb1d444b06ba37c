// Active health checks: asks every upstream now and then whether it is well.
//
//   first after a part of a second, then every `every`, give or take a tenth:
//   connect -> GET path -> the head of an answer, all within `timeout`  -> passed | failed
//
//   up ── `failures` failed in a row ──> down        down ── `successes` passed in a row ──> up
//
// An upstream is taken to be up until checks say otherwise. One that is down gets no requests while
// another is up (balancer.h). Checks are no requests: they meet no limit, are not counted among an
// upstream's requests, and take none of the places that requests wait for; each has a connection of
// its own, made in the way in which requests make theirs.
//
// There is one checker in a process, and not one on each loop: what an upstream has to bear does
// not grow with our cores, and all loops go by the same word. It runs on one of the loops and posts
// to the others when something changes. The waits are random to a degree, so that several gateways
// do not ask in step.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "sluice/base/time.h"
#include "sluice/net/event_loops.h"
#include "sluice/transport/gateway/options.h"
#include "sluice/transport/gateway/upstream.h"

namespace sluice::gateway {

// What a row of checks comes to. Pure.
class CheckedHealth {
 public:
  CheckedHealth(int failures, int successes, bool up)
      : failures_(failures), successes_(successes), up_(up) {}

  // What the next check said. True: with this the upstream goes down, or comes up.
  bool Note(bool passed);
  [[nodiscard]] bool up() const { return up_; }

 private:
  const int failures_;
  const int successes_;
  bool up_;
  int row_ = 0;  // of checks that speak against up_
};

// The checks of all upstreams. All functions on the loop's thread.
class HealthChecks {
 public:
  // upstream->up has changed.
  using Tell = std::function<void(const std::shared_ptr<Upstream>&)>;
  // From 0 to 1, evenly.
  using Random = std::function<double()>;

  // `loop` outlives the checks. `upstreams` are those of `options`, in order.
  HealthChecks(net::EventLoop& loop, const GatewayOptions& options, const UpstreamList& upstreams,
               Tell tell, Random random);
  HealthChecks(const HealthChecks&) = delete;
  HealthChecks& operator=(const HealthChecks&) = delete;
  // Breaks off what runs; nothing is told or counted any more.
  ~HealthChecks();

 private:
  class Check;

  std::vector<std::shared_ptr<Check>> checks_;
};

}  // namespace sluice::gateway
