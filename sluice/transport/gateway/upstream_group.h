// The upstreams of one loop, as the settings in force name them: who gets a request, the
// connections to them, and how they have answered so far.
//
//   session: hold the group -> Choose() -> TakeIdle(), or Make() -> CountRequest()
//                              -> Answered() or Failed() -> Keep() -> let go of the group
//
// A group is replaced as a whole. The old one is closed: its kept connections end at once, it keeps
// no further ones, and it dies with the last request that holds it. What must outlive it is
// elsewhere: counters and addresses (upstream.h), and the bound of connections (upstream_places.h),
// which so holds for old and new together. Who rests, in the old one, does so in the new one.
//
// For one thread.
#pragma once

#include <boost/smart_ptr/local_shared_ptr.hpp>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/base/time.h"
#include "sluice/net/event_loops.h"
#include "sluice/transport/gateway/balancer.h"
#include "sluice/transport/gateway/options.h"
#include "sluice/transport/gateway/upstream.h"
#include "sluice/transport/gateway/upstream_places.h"
#include "sluice/transport/gateway/upstream_pool.h"

namespace sluice::gateway {

class UpstreamGroup {
 public:
  // `upstreams` are those of `options`, in order. `places` outlive the group. `before` is the group
  // that this one takes the place of, or null.
  UpstreamGroup(net::EventLoop& loop, const UpstreamPlaces& places, const GatewayOptions& options,
                UpstreamList upstreams, const UpstreamGroup* before);

  // Whether a group made for the one is as good for the other.
  [[nodiscard]] static bool SameFor(const GatewayOptions& one, const GatewayOptions& other);

  [[nodiscard]] std::size_t size() const { return members_.size(); }
  [[nodiscard]] const std::string& name(std::size_t upstream) const {
    return members_[upstream].upstream->name;
  }
  // For as long as the pointer is held, also when the name means others meanwhile.
  [[nodiscard]] std::shared_ptr<const Endpoints> endpoints(std::size_t upstream) const {
    return members_[upstream].of_loop->endpoints;
  }

  // As Balancer::Choose().
  [[nodiscard]] std::size_t Choose(Time now, Balancer::Tried tried = 0) {
    return balancer_.Choose(now, tried);
  }
  void CountRequest(std::size_t upstream);
  // The log tells of an upstream that goes to rest, or comes back, once for each loop that finds
  // out. `why` is for it: empty unless TLS was the reason.
  void Failed(std::size_t upstream, Time now, std::string_view why = {});
  void Answered(std::size_t upstream);

  // As those of UpstreamPool.
  void Trim() { pool_.Trim(); }
  UpstreamPool::Connection TakeIdle(std::size_t upstream) { return pool_.TakeIdle(upstream); }
  UpstreamPool::Connection Make(std::size_t upstream, const net::tcp::endpoint& endpoint) {
    return pool_.Make(upstream, endpoint, members_[upstream].peer);
  }
  // For the next request, unless the upstream's name no longer stands for that address.
  void Keep(UpstreamPool::Connection connection);

  // The name stands for others now (Upstream::OfLoop::endpoints): what is kept and leads elsewhere
  // ends.
  void DropGone(const Upstream& upstream);
  // Takes over what checks say of the upstreams (Upstream::up).
  void ReadChecks();

  // It was replaced, or the gateway ends.
  void Close() { pool_.Close(); }

 private:
  struct Member {
    std::shared_ptr<Upstream> upstream;
    Upstream::OfLoop* of_loop = nullptr;
    std::shared_ptr<net::TlsPeer> peer;  // null: plain HTTP
  };

  [[nodiscard]] bool LeadsThere(const UpstreamConnection& connection) const;

  const std::size_t loop_;
  std::vector<Member> members_;
  Balancer balancer_;
  UpstreamPool pool_;
};

// Its count is no atomic one, for a group never leaves its loop.
using UpstreamGroupPtr = boost::local_shared_ptr<UpstreamGroup>;

}  // namespace sluice::gateway
