#include "sluice/transport/gateway/gateway.h"

#include <algorithm>
#include <cassert>
#include <utility>

namespace sluice::gateway {

absl::StatusOr<std::unique_ptr<Gateway>> Gateway::Start(net::EventLoops& loops,
                                                        std::span<Limiter* const> limiters,
                                                        const GatewayOptions& options) {
  assert(limiters.size() == loops.size());
  std::vector<std::vector<net::tcp::endpoint>> endpoints;
  for (const UpstreamOptions& upstream : options.upstreams) {
    absl::StatusOr<std::vector<net::tcp::endpoint>> resolved = net::Resolve(upstream.address);
    if (!resolved.ok()) return resolved.status();
    endpoints.push_back(*std::move(resolved));
  }

  auto gateway = std::unique_ptr<Gateway>(new Gateway(loops));
  for (const UpstreamOptions& upstream : options.upstreams) {
    gateway->names_.push_back(net::ToString(upstream.address));
  }
  const auto share = [&](std::size_t all) { return std::max<std::size_t>(1, all / loops.size()); };
  for (std::size_t i = 0; i < loops.size(); ++i) {
    gateway->parts_.push_back(std::make_unique<LoopParts>(
        loops[i], *limiters[i],
        UpstreamPool::Options{.endpoints = endpoints,
                              .max_connections = share(options.upstream_connections),
                              .max_idle = share(options.idle_upstream_connections),
                              .idle_timeout = options.upstream_idle_timeout},
        options));
  }
  auto server =
      net::TcpServer::Start(loops, options.listen, {.max_connections = options.connections},
                            [self = gateway.get()](net::EventLoop& loop, net::Socket socket) {
                              return std::make_unique<GatewaySession>(loop, std::move(socket),
                                                                      *self->parts_[loop.index()]);
                            });
  if (!server.ok()) return server.status();
  gateway->server_ = *std::move(server);
  return gateway;
}

Gateway::~Gateway() {
  Drain(Duration::zero());
  // What has a deadline or a socket ends on the thread that it belongs to.
  loops_.OnEach([this](net::EventLoop& loop) {
    if (loop.index() < parts_.size()) parts_[loop.index()].reset();
  });
}

Gateway::Counters Gateway::counters() const {
  Counters sum;
  sum.upstreams.resize(names_.size());
  for (const std::unique_ptr<LoopParts>& parts : parts_) {
    sum.requests += parts->counters.requests.load(std::memory_order_relaxed);
    sum.upstream_errors += parts->counters.upstream_errors.load(std::memory_order_relaxed);
    sum.retries += parts->counters.retries.load(std::memory_order_relaxed);
    sum.client_left += parts->counters.client_left.load(std::memory_order_relaxed);
    for (std::size_t i = 0; i < names_.size(); ++i) {
      const UpstreamCounters& of_one = parts->upstream_counters[i];
      sum.upstreams[i].name = names_[i];
      sum.upstreams[i].requests += of_one.requests.load(std::memory_order_relaxed);
      sum.upstreams[i].failures += of_one.failures.load(std::memory_order_relaxed);
      sum.upstreams[i].resting_in += of_one.resting.load(std::memory_order_relaxed) ? 1 : 0;
    }
  }
  if (server_) sum.connections = server_->connections();
  return sum;
}

void Gateway::Drain(Duration limit) {
  if (server_) server_->Drain(limit);
  loops_.OnEach([this](net::EventLoop& loop) {
    if (loop.index() < parts_.size()) parts_[loop.index()]->pool.Close();
  });
}

}  // namespace sluice::gateway
