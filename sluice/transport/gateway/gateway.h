// The gateway: a reverse proxy for HTTP/1.1 that answers 429 itself. All loops together.
//
//   auto gateway = Gateway::Start(loops, limiters, options);   // limiters[i] belongs to loops[i]
//   ...
//   (*gateway)->Drain(10s);                                    // then loops.Stop()
//
// What a request goes through is told in session.h; what it may cost at most in options.h.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "sluice/limiter/limiter.h"
#include "sluice/net/event_loops.h"
#include "sluice/net/tcp_server.h"
#include "sluice/transport/gateway/loop_parts.h"
#include "sluice/transport/gateway/options.h"
#include "sluice/transport/gateway/upstream.h"

namespace sluice::gateway {

class Gateway {
 public:
  struct UpstreamCounts {
    std::string name;            // HOST:PORT
    std::uint64_t requests = 0;  // that were sent there
    std::uint64_t failures =
        0;  // no connection, no answer in time, none that can be read, or one that broke off
    std::uint64_t resting_in = 0;  // loops whose last word of it was that it fails
  };
  struct Counters {
    BookTotals books;
    std::uint64_t requests = 0;  // that were decided on
    std::uint64_t upstream_errors = 0;
    std::uint64_t retries = 0;
    std::uint64_t client_left = 0;
    std::uint64_t connections = 0;  // of clients, open now
    std::vector<UpstreamCounts> upstreams;
  };

  // Resolves the upstreams, once, and listens. `loops` and `limiters`, one for each loop, outlive
  // the gateway. The loops may run already. Errors: as net::Listen and net::Resolve.
  [[nodiscard]] static absl::StatusOr<std::unique_ptr<Gateway>> Start(
      net::EventLoops& loops, std::span<Limiter* const> limiters, const GatewayOptions& options);
  Gateway(const Gateway&) = delete;
  Gateway& operator=(const Gateway&) = delete;
  ~Gateway();  // as Drain(0)

  [[nodiscard]] const net::tcp::endpoint& endpoint() const { return server_->endpoint(); }
  [[nodiscard]] Counters counters() const;  // from any thread

  // Stops accepting, answers what was asked with `Connection: close`, for at most `limit`, then
  // breaks off what is left. Returns when no connection is open. Not from a loop's thread.
  void Drain(Duration limit);

 private:
  explicit Gateway(net::EventLoops& loops) : loops_(loops) {}

  net::EventLoops& loops_;
  std::vector<std::shared_ptr<Upstream>> upstreams_;
  std::vector<std::unique_ptr<LoopParts>> parts_;  // of each loop
  std::unique_ptr<net::TcpServer> server_;
};

}  // namespace sluice::gateway
