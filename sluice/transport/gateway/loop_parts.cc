#include "sluice/transport/gateway/loop_parts.h"

#include <algorithm>
#include <boost/smart_ptr/make_local_shared.hpp>
#include <utility>

namespace sluice::gateway {
namespace {

GatewayOptions ShareOf(GatewayOptions options, std::size_t loop_count) {
  const auto share = [loop_count](std::size_t all) {
    return all == 0 ? 0 : std::max<std::size_t>(1, all / loop_count);
  };
  options.upstream_connections = share(options.upstream_connections);
  options.idle_upstream_connections = share(options.idle_upstream_connections);
  options.tls.reset();  // LoopParts has the one in force
  return options;
}

}  // namespace

Terms::Terms(GatewayOptions loop_options, UpstreamGroupPtr upstream_group)
    : options(std::move(loop_options)),
      limits{.head = {.max_bytes = options.header_bytes, .max_fields = options.header_fields},
             .idle_time = options.idle_timeout,
             .head_time = options.header_timeout,
             .body_time = options.body_timeout,
             .write_time = options.write_timeout},
      fields(options.headers),
      denials(options.body),
      cors(options.cors, options.headers),
      upstreams(std::move(upstream_group)) {}

LoopParts::LoopParts(net::EventLoop& its_loop, Limiter& limiter_to_ask, std::size_t count_of_loops,
                     const GatewayOptions& options, UpstreamList upstreams)
    : loop(its_loop),
      loop_count(count_of_loops),
      limiter(limiter_to_ask),
      places(its_loop, ShareOf(options, count_of_loops).upstream_connections),
      tls(options.tls) {
  Replace(options, std::move(upstreams));
}

void LoopParts::Replace(const GatewayOptions& options, UpstreamList upstreams) {
  GatewayOptions share = ShareOf(options, loop_count);
  UpstreamGroupPtr group;
  if (terms && UpstreamGroup::SameFor(terms->options, share)) {
    group = terms->upstreams;
  } else {
    const UpstreamGroup* const before = terms ? terms->upstreams.get() : nullptr;
    group =
        boost::make_local_shared<UpstreamGroup>(loop, places, share, std::move(upstreams), before);
    if (terms) terms->upstreams->Close();
  }
  places.SetMax(share.upstream_connections);
  group->Trim();
  terms = boost::make_local_shared<Terms>(std::move(share), std::move(group));
  limits = terms->limits;
}

}  // namespace sluice::gateway
