#include "sluice/transport/gateway/gateway.h"

#include <cassert>
#include <cstddef>
#include <utility>

#include "sluice/transport/gateway/session.h"

namespace sluice::gateway {
namespace {

// Upstreams that are named no longer and whose counters are still shown.
constexpr std::size_t kMaxRemoved = 256;

UpstreamList UpstreamsOf(const Gateway::Settings& settings) {
  UpstreamList upstreams;
  for (const auto& chosen : settings.upstreams) upstreams.push_back(chosen.upstream);
  return upstreams;
}

std::shared_ptr<Upstream> Find(const UpstreamList& upstreams, const net::HostPort& address) {
  for (const std::shared_ptr<Upstream>& upstream : upstreams) {
    if (upstream->address == address) return upstream;
  }
  return nullptr;
}

Gateway::UpstreamCounts CountsOf(const Upstream& upstream, bool in_force) {
  Gateway::UpstreamCounts counts{.name = upstream.name, .in_force = in_force};
  for (const Upstream::OfLoop& of_loop : upstream.loops) {
    counts.requests += of_loop.requests.load(std::memory_order_relaxed);
    counts.failures += of_loop.failures.load(std::memory_order_relaxed);
    const bool resting = in_force && of_loop.resting.load(std::memory_order_relaxed);
    counts.resting_in += resting ? 1 : 0;
  }
  return counts;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Gateway>> Gateway::Start(net::EventLoops& loops,
                                                        std::span<Limiter* const> limiters,
                                                        const GatewayOptions& options,
                                                        Resolver resolve) {
  assert(limiters.size() == loops.size());
  auto gateway = std::unique_ptr<Gateway>(new Gateway(loops, std::move(resolve)));
  absl::StatusOr<Settings> settings = gateway->Prepare(options);
  if (!settings.ok()) return settings.status();
  gateway->Remember(UpstreamsOf(*settings));
  for (std::size_t i = 0; i < loops.size(); ++i) {
    gateway->parts_.push_back(std::make_unique<LoopParts>(loops[i], *limiters[i], loops.size(),
                                                          options, UpstreamsOf(*settings)));
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

absl::StatusOr<Gateway::Settings> Gateway::Prepare(const GatewayOptions& options) const {
  Settings settings{.options = options, .upstreams = {}};
  for (const UpstreamOptions& upstream : options.upstreams) {
    Settings::Chosen& chosen = settings.upstreams.emplace_back();
    chosen.upstream = Find(in_force_, upstream.address);
    if (chosen.upstream) continue;
    absl::StatusOr<Endpoints> found = resolve_(upstream.address);
    if (!found.ok()) return found.status();
    chosen.found = std::make_shared<const Endpoints>(*std::move(found));
    chosen.upstream = Find(removed_, upstream.address);
    if (chosen.upstream) continue;
    chosen.upstream = std::make_shared<Upstream>(upstream.address, loops_.size(), chosen.found);
  }
  return settings;
}

void Gateway::Use(Settings settings) {
  loops_.OnEach([&](net::EventLoop& loop) {
    for (const Settings::Chosen& chosen : settings.upstreams) {
      if (chosen.found) chosen.upstream->loops[loop.index()].endpoints = chosen.found;
    }
    parts_[loop.index()]->Replace(settings.options, UpstreamsOf(settings));
  });
  Remember(UpstreamsOf(settings));
}

void Gateway::Remember(UpstreamList in_force) {
  const std::lock_guard lock(mutex_);
  std::erase_if(removed_,
                [&](const auto& upstream) { return Find(in_force, upstream->address) != nullptr; });
  for (const std::shared_ptr<Upstream>& upstream : in_force_) {
    if (!Find(in_force, upstream->address)) removed_.push_back(upstream);
  }
  if (removed_.size() > kMaxRemoved) {
    removed_.erase(removed_.begin(), removed_.end() - std::ptrdiff_t{kMaxRemoved});
  }
  in_force_ = std::move(in_force);
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
  {
    const std::lock_guard lock(mutex_);
    for (const auto& upstream : in_force_) sum.upstreams.push_back(CountsOf(*upstream, true));
    for (const auto& upstream : removed_) sum.upstreams.push_back(CountsOf(*upstream, false));
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
