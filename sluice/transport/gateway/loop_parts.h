// What the sessions of one loop share.
//
//   LoopParts ── limiter, request ids, counters, places for connections     as long as the gateway
//             `─ Terms ── options, their fields and CORS, UpstreamGroup     until the next reload
//
// A request holds the terms that it met for as long as it lasts; the next request on the same
// connection meets those in force then. So no request sees two of the gateway's settings mixed, and
// terms that were replaced die with their last request.
//
// For one thread, but for the counters.
#pragma once

#include <atomic>
#include <boost/smart_ptr/local_shared_ptr.hpp>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "sluice/limiter/limiter.h"
#include "sluice/net/event_loops.h"
#include "sluice/net/http1_session.h"
#include "sluice/net/tls_context.h"
#include "sluice/transport/gateway/books.h"
#include "sluice/transport/gateway/cors.h"
#include "sluice/transport/gateway/options.h"
#include "sluice/transport/gateway/request_id.h"
#include "sluice/transport/gateway/upstream.h"
#include "sluice/transport/gateway/upstream_group.h"
#include "sluice/transport/gateway/upstream_places.h"
#include "sluice/transport/headers.h"
#include "sluice/transport/problem.h"

namespace sluice::gateway {

// Counted by one loop, read by anybody.
struct LoopCounters {
  Books books;
  std::atomic<std::uint64_t> upstream_errors = 0;  // answered 502, 503 or 504, or broken off
  std::atomic<std::uint64_t> retries = 0;          // on a fresh connection
  std::atomic<std::uint64_t> client_left = 0;      // before its answer ended
  std::atomic<std::uint64_t> tls_full = 0;         // handshakes with a client
  std::atomic<std::uint64_t> tls_resumed = 0;      // handshakes by a ticket
  std::atomic<std::uint64_t> tls_failures = 0;     // handshakes that failed
};

// What a request is served under.
struct Terms {
  // `loop_options`: with this loop's share of the bounds.
  Terms(GatewayOptions loop_options, UpstreamGroupPtr upstream_group);

  const GatewayOptions options;
  const net::Http1Limits limits;
  transport::RateLimitFields fields;
  transport::DenialBodies denials;
  const Cors cors;
  const UpstreamGroupPtr upstreams;
};

using TermsPtr = boost::local_shared_ptr<Terms>;

struct LoopParts {
  // `options`: of all loops together; so many of them share the bounds. `upstreams` are those
  // of `options`, in order.
  LoopParts(net::EventLoop& its_loop, Limiter& limiter_to_ask, std::size_t count_of_loops,
            const GatewayOptions& options, UpstreamList upstreams);

  // From the next request on these are in force. The group of upstreams, with its connections,
  // stays where nothing of it changes.
  void Replace(const GatewayOptions& options, UpstreamList upstreams);

  net::EventLoop& loop;
  const std::size_t loop_count;
  Limiter& limiter;
  UpstreamPlaces places;
  TermsPtr terms;           // in force; never null
  net::Http1Limits limits;  // those of `terms`, for connections that wait for a request
  std::shared_ptr<const net::TlsServerContext> tls;  // for new connections; null: plain
  bool leaving = false;                              // before the drain
  RequestIds request_ids;
  LoopCounters counters;
};

}  // namespace sluice::gateway
