#include "sluice/transport/gateway/upstream_group.h"

#include <algorithm>
#include <utility>

#include "sluice/base/log.h"

namespace sluice::gateway {
namespace {

std::vector<std::uint32_t> WeightsOf(const std::vector<UpstreamOptions>& upstreams) {
  std::vector<std::uint32_t> weights;
  for (const UpstreamOptions& upstream : upstreams) weights.push_back(upstream.weight);
  return weights;
}

}  // namespace

UpstreamGroup::UpstreamGroup(net::EventLoop& loop, const UpstreamPlaces& places,
                             const GatewayOptions& options, UpstreamList upstreams,
                             const UpstreamGroup* before)
    : loop_(loop.index()),
      balancer_(WeightsOf(options.upstreams), options.upstream_health),
      pool_(loop, places,
            {.max_idle = options.idle_upstream_connections,
             .idle_timeout = options.upstream_idle_timeout}) {
  for (std::shared_ptr<Upstream>& upstream : upstreams) {
    Upstream::OfLoop& of_loop = upstream->loops[loop_];
    members_.push_back({.upstream = std::move(upstream), .of_loop = &of_loop});
  }
  for (std::size_t i = 0; i < members_.size(); ++i) {
    members_[i].peer = PeerOf(options.upstreams[i]);
    bool resting = false;
    for (std::size_t old = 0; before != nullptr && old < before->size(); ++old) {
      if (before->members_[old].upstream != members_[i].upstream) continue;
      resting = balancer_.TakeOver(i, before->balancer_, old);
    }
    members_[i].of_loop->resting.store(resting, std::memory_order_relaxed);
  }
  ReadChecks();
}

bool UpstreamGroup::SameFor(const GatewayOptions& one, const GatewayOptions& other) {
  return one.upstreams == other.upstreams && one.upstream_health == other.upstream_health &&
         one.idle_upstream_connections == other.idle_upstream_connections &&
         one.upstream_idle_timeout == other.upstream_idle_timeout;
}

void UpstreamGroup::CountRequest(std::size_t upstream) {
  members_[upstream].of_loop->requests.fetch_add(1, std::memory_order_relaxed);
}

// What comes of requests that outlive a closed group is no word on how its upstreams are now.
void UpstreamGroup::Failed(std::size_t upstream, Time now, std::string_view why) {
  const Member& member = members_[upstream];
  member.of_loop->failures.fetch_add(1, std::memory_order_relaxed);
  member.upstream->failed_lately.store(true, std::memory_order_relaxed);
  if (pool_.closed() || !balancer_.Failed(upstream, now)) return;
  member.of_loop->resting.store(true, std::memory_order_relaxed);
  if (why.empty()) why = "no connection, or no answer in time that can be read";
  log::Warning("upstream fails",
               {{"upstream", member.upstream->name}, {"loop", loop_}, {"why", why}});
}

void UpstreamGroup::Answered(std::size_t upstream) {
  if (pool_.closed() || !balancer_.Succeeded(upstream)) return;
  const Member& member = members_[upstream];
  member.of_loop->resting.store(false, std::memory_order_relaxed);
  log::Info("upstream answers again", {{"upstream", member.upstream->name}, {"loop", loop_}});
}

bool UpstreamGroup::LeadsThere(const UpstreamConnection& connection) const {
  const Endpoints& endpoints = *members_[connection.upstream()].of_loop->endpoints;
  return std::find(endpoints.begin(), endpoints.end(), connection.endpoint()) != endpoints.end();
}

void UpstreamGroup::Keep(UpstreamPool::Connection connection) {
  if (LeadsThere(*connection)) pool_.Keep(std::move(connection));
}

void UpstreamGroup::DropGone(const Upstream& upstream) {
  pool_.Drop([&](const UpstreamConnection& connection) {
    return members_[connection.upstream()].upstream.get() == &upstream && !LeadsThere(connection);
  });
}

void UpstreamGroup::ReadChecks() {
  for (std::size_t i = 0; i < members_.size(); ++i) {
    balancer_.SetDown(i, !members_[i].upstream->up.load());
  }
}

}  // namespace sluice::gateway
