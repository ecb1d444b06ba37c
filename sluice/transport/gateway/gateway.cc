#include "sluice/transport/gateway/gateway.h"

#include <cassert>
#include <utility>

#include "sluice/transport/gateway/session.h"

namespace sluice::gateway {

absl::StatusOr<std::unique_ptr<Gateway>> Gateway::Start(net::EventLoops& loops,
                                                        std::span<Limiter* const> limiters,
                                                        const GatewayOptions& options) {
  assert(limiters.size() == loops.size());
  auto gateway = std::unique_ptr<Gateway>(new Gateway(loops));
  for (const UpstreamOptions& upstream : options.upstreams) {
    absl::StatusOr<Endpoints> resolved = net::Resolve(upstream.address);
    if (!resolved.ok()) return resolved.status();
    gateway->upstreams_.push_back(std::make_shared<Upstream>(
        upstream.address, loops.size(), std::make_shared<const Endpoints>(*std::move(resolved))));
  }
  for (std::size_t i = 0; i < loops.size(); ++i) {
    gateway->parts_.push_back(std::make_unique<LoopParts>(loops[i], *limiters[i], loops.size(),
                                                          options, gateway->upstreams_));
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
  for (const std::unique_ptr<LoopParts>& parts : parts_) {
    parts->counters.books.AddTo(sum.books);
    sum.upstream_errors += parts->counters.upstream_errors.load(std::memory_order_relaxed);
    sum.retries += parts->counters.retries.load(std::memory_order_relaxed);
    sum.client_left += parts->counters.client_left.load(std::memory_order_relaxed);
  }
  for (const std::shared_ptr<Upstream>& upstream : upstreams_) {
    UpstreamCounts& of_one = sum.upstreams.emplace_back();
    of_one.name = upstream->name;
    for (const Upstream::OfLoop& of_loop : upstream->loops) {
      of_one.requests += of_loop.requests.load(std::memory_order_relaxed);
      of_one.failures += of_loop.failures.load(std::memory_order_relaxed);
      of_one.resting_in += of_loop.resting.load(std::memory_order_relaxed) ? 1 : 0;
    }
  }
  sum.requests = sum.books.admitted + sum.books.denied;
  if (server_) sum.connections = server_->connections();
  return sum;
}

void Gateway::Drain(Duration limit) {
  if (server_) server_->Drain(limit);
  loops_.OnEach([this](net::EventLoop& loop) {
    if (loop.index() < parts_.size()) parts_[loop.index()]->terms->upstreams->Close();
  });
}

}  // namespace sluice::gateway
