// What the gateway is told: where it listens, where it forwards to, and every bound. The defaults
// are those of the configuration. All can be replaced while it runs (gateway.h), but for `listen`,
// `connections` and `connections_per_client`; `tls` by a call of its own.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "sluice/base/time.h"
#include "sluice/net/address.h"
#include "sluice/net/tls_context.h"
#include "sluice/transport/dialects.h"
#include "sluice/transport/gateway/access_log.h"
#include "sluice/transport/gateway/balancer.h"
#include "sluice/transport/gateway/cors.h"
#include "sluice/transport/problem.h"

namespace sluice::gateway {

struct UpstreamOptions {
  net::HostPort address;
  std::uint32_t weight = 1;  // its share among all; at least 1
  // Null: plain HTTP. Another one makes new connections, even if it says the same.
  std::shared_ptr<const net::TlsClientContext> tls;
  friend bool operator==(const UpstreamOptions&, const UpstreamOptions&) = default;
};

// Active checks (health_checks.h).
struct HealthCheckOptions {
  std::string path;  // what is asked for; empty: no checks
  Duration every = std::chrono::seconds(5);
  Duration timeout = std::chrono::seconds(1);  // from the first connection to the answer's head
  int failures = 2;                            // in a row, and it is down; at least 1
  int successes = 1;                           // in a row, and it is up again; at least 1
  int min_status = 200;                        // of an answer that passes
  int max_status = 399;
  friend bool operator==(const HealthCheckOptions&, const HealthCheckOptions&) = default;
};

struct GatewayOptions {
  net::HostPort listen;
  std::shared_ptr<const net::TlsServerContext> tls;  // towards the clients; null: plain HTTP
  // 1 to Balancer::kMaxUpstreams of them, each address once.
  std::vector<UpstreamOptions> upstreams;
  Balancer::Options upstream_health;
  HealthCheckOptions health_check;
  // How often the names of upstreams are looked up again; > 0.
  Duration resolve_every = std::chrono::seconds(30);

  // Requests for this path are answered by the gateway itself: 200, or 503 while it drains. Empty:
  // there is none.
  std::string health_path;

  // Times.
  // To each address of an upstream that is tried; also for a free place.
  Duration connect_timeout = std::chrono::seconds(2);
  // From the request's last byte to the answer's first, then between the answer's parts; also for
  // the upstream to take a part of the request.
  Duration response_timeout = std::chrono::seconds(60);
  Duration idle_timeout = std::chrono::seconds(60);    // of a client's connection between requests
  Duration header_timeout = std::chrono::seconds(10);  // from a head's first byte to its last
  Duration body_timeout = std::chrono::seconds(30);  // for a body's next content; to skip all of it
  Duration write_timeout = std::chrono::seconds(60);          // for a client that reads nothing
  Duration upstream_idle_timeout = std::chrono::seconds(30);  // of a kept upstream connection

  // Of a connection that changed its protocol: nothing passes in either direction. Once one side
  // has said all, response_timeout if that is shorter.
  Duration tunnel_idle_timeout = std::chrono::hours(1);

  // Protocols that a client may change to (upgrade.h): names in lower case, without versions.
  std::vector<std::string> upgrades = {"websocket"};

  // Bounds, of all loops together; each loop has its even share.
  std::size_t connections = 10'000;            // of clients
  std::size_t connections_per_client = 5'000;  // of one address, or IPv6 network
  std::size_t upstream_connections = 1'000;    // in use or kept; a request waits for a free one
  std::size_t idle_upstream_connections = 256;

  // Of the head of a request or an answer.
  std::size_t header_bytes = std::size_t{32} * 1024;
  std::size_t header_fields = 100;

  const AccessLog* access_log = nullptr;  // outlives the gateway; null: there is none
  // Of a request's content; longer ones are answered 413. The most there is: no bound.
  std::uint64_t body_bytes = ~std::uint64_t{0};

  CorsOptions cors;
  transport::BodyForm body = transport::BodyForm::kProblem;  // of denials
  transport::HeaderDialects headers{.draft_11 = true};       // of what every answer tells of limits
};

}  // namespace sluice::gateway
