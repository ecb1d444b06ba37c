// What is known of one upstream for as long as the process remembers its name, whatever settings
// come and go: counters, which never start anew, what checks say, and the addresses that the name
// stands for.
//
//   Upstream "orders.internal:80"   loops[0]  requests failures resting | addresses   <- thread 0
//                                   loops[1]  requests failures resting | addresses   <- thread 1
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "sluice/net/address.h"

namespace sluice::gateway {

using Endpoints = std::vector<net::tcp::endpoint>;  // tried in order; never empty

struct Upstream {
  // A cache line of its own: each request counts, and loops must not wait for each other's lines.
  struct alignas(64) OfLoop {
    // Counted by the loop, read by anybody.
    std::atomic<std::uint64_t> requests = 0;
    std::atomic<std::uint64_t> failures = 0;
    std::atomic<bool> resting = false;
    // Read and replaced on the loop's thread only.
    std::shared_ptr<const Endpoints> endpoints;
  };

  Upstream(net::HostPort where, std::size_t loop_count, std::shared_ptr<const Endpoints> endpoints)
      : address(std::move(where)), name(net::ToString(address)), loops(loop_count) {
    for (OfLoop& loop : loops) loop.endpoints = endpoints;
  }

  const net::HostPort address;
  const std::string name;  // HOST:PORT

  // Active checks (health_checks.h), of which there is one for all loops.
  std::atomic<bool> up = true;
  std::atomic<std::uint64_t> checks_passed = 0;
  std::atomic<std::uint64_t> checks_failed = 0;

  // A request to it failed, or a check had no answer: its name is worth another look
  // (upstream_names.h).
  std::atomic<bool> failed_lately = false;

  std::deque<OfLoop> loops;
};

using UpstreamList = std::vector<std::shared_ptr<Upstream>>;

}  // namespace sluice::gateway
