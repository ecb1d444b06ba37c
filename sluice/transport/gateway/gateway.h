// The gateway: a reverse proxy for HTTP/1.1 that answers 429 itself. All loops together.
//
//   auto gateway = Gateway::Start(loops, limiters, options);   // limiters[i] belongs to loops[i]
//   ...
//   (*gateway)->Drain(10s);                                    // then loops.Stop()
//
// What a request goes through is told in session.h; what it may cost at most in options.h.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "sluice/limiter/limiter.h"
#include "sluice/net/client_connections.h"
#include "sluice/net/event_loops.h"
#include "sluice/net/tcp_server.h"
#include "sluice/transport/gateway/health_checks.h"
#include "sluice/transport/gateway/loop_parts.h"
#include "sluice/transport/gateway/name_lookup.h"
#include "sluice/transport/gateway/options.h"
#include "sluice/transport/gateway/upstream.h"
#include "sluice/transport/gateway/upstream_names.h"

namespace sluice::gateway {

class Gateway {
 public:
  struct UpstreamCounts {
    std::string name;            // HOST:PORT
    bool in_force = true;        // false: the settings named it before a reload, and no longer do
    std::uint64_t requests = 0;  // that were sent there
    // No connection, no answer in time, none that can be read, or one that broke off.
    std::uint64_t failures = 0;
    std::uint64_t resting_in = 0;  // loops whose last word of it was that it fails
    std::optional<bool> up;        // what active checks say; nothing where there are none
    std::uint64_t checks_passed = 0;
    std::uint64_t checks_failed = 0;
  };
  struct Counters {
    BookTotals books;
    std::uint64_t requests = 0;  // that were decided on
    std::uint64_t upstream_errors = 0;
    std::uint64_t retries = 0;
    std::uint64_t client_left = 0;
    std::uint64_t connections = 0;          // of clients, open now
    std::uint64_t connections_refused = 0;  // beyond connections_per_client
    // Handshakes with clients: whole ones, resumed ones, and those that came to nothing after the
    // client had begun.
    std::uint64_t tls_full = 0;
    std::uint64_t tls_resumed = 0;
    std::uint64_t tls_failures = 0;
    std::vector<UpstreamCounts> upstreams;
  };

  // How long the lookup of names takes at most, at the start and at a reload.
  static constexpr Duration kLookUpWithin = std::chrono::seconds{10};

  // Resolves the upstreams and listens. `loops` and `limiters`, one for each loop, outlive the
  // gateway; what `resolve` uses must do so, too (name_lookup.h). The loops may run already.
  // Errors: as net::Listen and LookUp(), which gives up when `stop` is asked for.
  [[nodiscard]] static absl::StatusOr<std::unique_ptr<Gateway>> Start(
      net::EventLoops& loops, std::span<Limiter* const> limiters, const GatewayOptions& options,
      Resolver resolve = net::Resolve, std::stop_token stop = {});
  Gateway(const Gateway&) = delete;
  Gateway& operator=(const Gateway&) = delete;
  ~Gateway();  // as Drain(0)

  [[nodiscard]] const net::tcp::endpoint& endpoint() const { return server_->endpoint(); }
  [[nodiscard]] Counters counters() const;  // from any thread

  // New settings in two steps, so that a caller can refuse them as a whole together with others.
  // Prepare() looks up the names of upstreams that are not in force, and changes nothing; it gives
  // up when `stop` is asked for; errors: as LookUp(). Use() puts the settings in force, and cannot
  // fail: requests under way end under those that they met, the next on any connection meet the new
  // ones. `listen`, `connections`, `tls` (ReplaceTls() is for that) and the number of loops stay as
  // they are. Not from a loop's thread, one call at a time, not after Drain(); no Use() of another
  // in between.
  struct Settings;
  [[nodiscard]] absl::StatusOr<Settings> Prepare(const GatewayOptions& options,
                                                 std::stop_token stop = {}) const;
  void Use(Settings settings);

  // Clients that connect from now on are shown this; connections that are open keep what they have.
  // Only for a gateway that was started with a context; not from a loop's thread.
  void ReplaceTls(std::shared_ptr<const net::TlsServerContext> tls);

  // From now on the health path says 503, so that load balancers look elsewhere; all else goes on.
  // Not from a loop's thread.
  void Leave();

  // Stops accepting, answers what was asked with `Connection: close`, for at most `limit`, then
  // breaks off what is left. Returns when no connection is open. Not from a loop's thread.
  void Drain(Duration limit);

 private:
  Gateway(net::EventLoops& loops, Resolver resolve) : loops_(loops), resolve_(std::move(resolve)) {}

  std::optional<net::ClientConnections::Pass> LetIn(net::EventLoop& loop,
                                                    const net::tcp::endpoint& peer);
  void Remember(const Settings& settings);
  void StopChecks();
  void StartChecks(const UpstreamList& upstreams);
  // On each loop, later: `work` on its part.
  template <class Work>
  void PostToEach(Work work);
  void OnNewAddresses(const std::shared_ptr<Upstream>& upstream,
                      const std::shared_ptr<const Endpoints>& endpoints);

  net::EventLoops& loops_;
  const Resolver resolve_;
  // Guards the three that follow, which Use() writes and counters() reads.
  mutable std::mutex mutex_;
  GatewayOptions options_;  // in force, but for `tls`
  UpstreamList in_force_;
  UpstreamList removed_;                             // last is the latest; kMaxRemoved at most
  std::vector<std::unique_ptr<LoopParts>> parts_;    // of each loop
  std::unique_ptr<net::ClientConnections> clients_;  // outlives the server
  std::unique_ptr<net::TcpServer> server_;
  // Belongs to the first loop's thread.
  std::unique_ptr<HealthChecks> checks_;
  std::unique_ptr<NameWatch> names_;
};

struct Gateway::Settings {
  struct Chosen {
    std::shared_ptr<Upstream> upstream;
    std::shared_ptr<const Endpoints> found;  // just now; null: it is in force, with its own
  };
  GatewayOptions options;
  std::vector<Chosen> upstreams;
};

}  // namespace sluice::gateway
