#include "sluice/transport/gateway/gateway.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cassert>
#include <cstddef>
#include <iterator>
#include <utility>

#include "sluice/base/random.h"
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

[[maybe_unused]] bool EachAddressOnce(const std::vector<UpstreamOptions>& upstreams) {
  for (auto one = upstreams.begin(); one != upstreams.end(); ++one) {
    const bool again = std::any_of(std::next(one), upstreams.end(), [one](const auto& other) {
      return other.address == one->address;
    });
    if (again) return false;
  }
  return true;
}

Gateway::UpstreamCounts CountsOf(const Upstream& upstream, bool in_force, bool checked) {
  Gateway::UpstreamCounts counts{.name = upstream.name, .in_force = in_force};
  if (in_force && checked) counts.up = upstream.up.load(std::memory_order_relaxed);
  counts.checks_passed = upstream.checks_passed.load(std::memory_order_relaxed);
  counts.checks_failed = upstream.checks_failed.load(std::memory_order_relaxed);
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
                                                        Resolver resolve, std::stop_token stop) {
  assert(limiters.size() == loops.size());
  auto gateway = std::unique_ptr<Gateway>(new Gateway(loops, std::move(resolve)));
  absl::StatusOr<Settings> settings = gateway->Prepare(options, std::move(stop));
  if (!settings.ok()) return settings.status();
  for (std::size_t i = 0; i < loops.size(); ++i) {
    gateway->parts_.push_back(std::make_unique<LoopParts>(loops[i], *limiters[i], loops.size(),
                                                          options, UpstreamsOf(*settings)));
  }
  gateway->clients_ = std::make_unique<net::ClientConnections>(options.connections_per_client);
  const net::TcpServer::Options bounds = {
      .max_connections = options.connections,
      .doorkeeper = [self = gateway.get()](net::EventLoop& loop, const net::tcp::endpoint& peer) {
        return self->LetIn(loop, peer);
      }};
  auto server =
      net::TcpServer::Start(loops, options.listen, bounds,
                            [self = gateway.get()](net::EventLoop& loop, net::Socket socket) {
                              return std::make_unique<GatewaySession>(loop, std::move(socket),
                                                                      *self->parts_[loop.index()]);
                            });
  if (!server.ok()) return server.status();
  gateway->server_ = *std::move(server);
  gateway->names_ = std::make_unique<NameWatch>(
      gateway->resolve_, [self = gateway.get()](const auto& upstream, const auto& endpoints) {
        self->OnNewAddresses(upstream, endpoints);
      });
  gateway->Remember(*settings);
  gateway->loops_.OnEach([&](net::EventLoop& loop) {
    if (loop.index() == 0) gateway->StartChecks(UpstreamsOf(*settings));
  });
  return gateway;
}

absl::StatusOr<Gateway::Settings> Gateway::Prepare(const GatewayOptions& options,
                                                   std::stop_token stop) const {
  assert(EachAddressOnce(options.upstreams));
  std::vector<net::HostPort> unknown;
  for (const UpstreamOptions& upstream : options.upstreams) {
    if (!Find(in_force_, upstream.address)) unknown.push_back(upstream.address);
  }
  auto found = LookUp(unknown, resolve_, kLookUpWithin, std::move(stop));
  if (!found.ok()) return found.status();
  Settings settings{.options = options, .upstreams = {}};
  auto next = found->begin();
  for (const UpstreamOptions& upstream : options.upstreams) {
    Settings::Chosen& chosen = settings.upstreams.emplace_back();
    chosen.upstream = Find(in_force_, upstream.address);
    if (chosen.upstream) continue;
    chosen.found = std::make_shared<const Endpoints>(std::move(*next++));
    chosen.upstream = Find(removed_, upstream.address);
    if (chosen.upstream) continue;
    chosen.upstream = std::make_shared<Upstream>(upstream.address, loops_.size(), chosen.found);
  }
  return settings;
}

void Gateway::Use(Settings settings) {
  const UpstreamList upstreams = UpstreamsOf(settings);
  const HealthCheckOptions& health_check = settings.options.health_check;
  const bool same_checks =
      health_check == options_.health_check && settings.options.upstreams == options_.upstreams;
  if (!same_checks) StopChecks();
  for (const Settings::Chosen& chosen : settings.upstreams) {
    if (chosen.found || health_check.path.empty()) chosen.upstream->up.store(true);
  }
  loops_.OnEach([&](net::EventLoop& loop) {
    for (const Settings::Chosen& chosen : settings.upstreams) {
      if (chosen.found) chosen.upstream->loops[loop.index()].endpoints = chosen.found;
    }
    parts_[loop.index()]->Replace(settings.options, upstreams);
    parts_[loop.index()]->terms->upstreams->ReadChecks();
  });
  Remember(settings);
  if (same_checks) return;
  loops_.OnEach([&](net::EventLoop& loop) {
    if (loop.index() == 0) StartChecks(upstreams);
  });
}

// The names come last: whatever is found from then on is newer than what the loops have got.
void Gateway::Remember(const Settings& settings) {
  {
    const std::lock_guard lock(mutex_);
    UpstreamList in_force = UpstreamsOf(settings);
    std::erase_if(removed_, [&](const auto& upstream) {
      return Find(in_force, upstream->address) != nullptr;
    });
    for (const std::shared_ptr<Upstream>& upstream : in_force_) {
      if (!Find(in_force, upstream->address)) removed_.push_back(upstream);
    }
    if (removed_.size() > kMaxRemoved) {
      removed_.erase(removed_.begin(), removed_.end() - std::ptrdiff_t{kMaxRemoved});
    }
    in_force_ = std::move(in_force);
    options_ = settings.options;
    options_.tls.reset();  // the loops have it, and let go of it when it is replaced
  }
  std::vector<UpstreamNames::Name> names;
  for (const Settings::Chosen& chosen : settings.upstreams) {
    names.push_back({.upstream = chosen.upstream, .found = chosen.found});
  }
  names_->Replace(names, settings.options.resolve_every);
}

void Gateway::StopChecks() {
  loops_.OnEach([this](net::EventLoop& loop) {
    if (loop.index() == 0) checks_.reset();
  });
}

void Gateway::StartChecks(const UpstreamList& upstreams) {
  const auto random = [] {
    std::array<std::uint8_t, 4> bytes{};
    FillWithRandom(bytes);
    return std::bit_cast<std::uint32_t>(bytes) / 0x1p32;
  };
  const auto tell = [this](const std::shared_ptr<Upstream>&) {
    PostToEach([](LoopParts& parts) { parts.terms->upstreams->ReadChecks(); });
  };
  checks_ = std::make_unique<HealthChecks>(loops_[0], options_, upstreams, tell, random);
}

template <class Work>
void Gateway::PostToEach(Work work) {
  for (const std::unique_ptr<LoopParts>& parts : parts_) {
    parts->loop.Post([work, &to = *parts] { work(to); });
  }
}

void Gateway::OnNewAddresses(const std::shared_ptr<Upstream>& upstream,
                             const std::shared_ptr<const Endpoints>& endpoints) {
  PostToEach([upstream, endpoints](LoopParts& parts) {
    upstream->loops[parts.loop.index()].endpoints = endpoints;
    parts.terms->upstreams->DropGone(*upstream);
  });
}

// A trusted proxy speaks for many clients. Under the rules that this loop has now; a connection
// stays what it was when it came.
std::optional<net::ClientConnections::Pass> Gateway::LetIn(net::EventLoop& loop,
                                                           const net::tcp::endpoint& peer) {
  const RuleSetOptions& options = parts_[loop.index()]->limiter.rules()->rules().options();
  const IpAddress address = net::IpOf(peer.address());
  if (IsTrustedProxy(options.client_address, address)) return net::ClientConnections::Pass();
  return clients_->Enter(address.is_v4() ? address : address.Masked(options.ipv6_prefix));
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
    sum.tls_full += parts->counters.tls_full.load(std::memory_order_relaxed);
    sum.tls_resumed += parts->counters.tls_resumed.load(std::memory_order_relaxed);
    sum.tls_failures += parts->counters.tls_failures.load(std::memory_order_relaxed);
    sum.client_left += parts->counters.client_left.load(std::memory_order_relaxed);
  }
  {
    const std::lock_guard lock(mutex_);
    const bool checked = !options_.health_check.path.empty();
    for (const auto& one : in_force_) sum.upstreams.push_back(CountsOf(*one, true, checked));
    for (const auto& one : removed_) sum.upstreams.push_back(CountsOf(*one, false, checked));
  }
  sum.requests = sum.books.admitted + sum.books.denied;
  if (server_) sum.connections = server_->connections();
  if (server_) sum.connections_refused = server_->refused();
  return sum;
}

void Gateway::ReplaceTls(std::shared_ptr<const net::TlsServerContext> tls) {
  assert(tls);
  loops_.OnEach([&](net::EventLoop& loop) { parts_[loop.index()]->tls = tls; });
}

void Gateway::Leave() {
  loops_.OnEach([this](net::EventLoop& loop) {
    if (loop.index() < parts_.size()) parts_[loop.index()]->leaving = true;
  });
}

void Gateway::Drain(Duration limit) {
  if (server_) server_->Drain(limit);
  names_.reset();
  StopChecks();
  loops_.OnEach([this](net::EventLoop& loop) {
    if (loop.index() < parts_.size()) parts_[loop.index()]->terms->upstreams->Close();
  });
}

}  // namespace sluice::gateway
