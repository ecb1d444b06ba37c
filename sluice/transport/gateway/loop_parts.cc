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
      cors(options.cors, options.headers),
      upstreams(std::move(upstream_group)) {}

LoopParts::LoopParts(net::EventLoop& loop, Limiter& limiter_to_ask, std::size_t loop_count,
                     const GatewayOptions& options,
                     std::vector<std::shared_ptr<Upstream>> upstreams)
    : limiter(limiter_to_ask), places(loop, ShareOf(options, loop_count).upstream_connections) {
  GatewayOptions share = ShareOf(options, loop_count);
  auto group = boost::make_local_shared<UpstreamGroup>(loop, places, share, std::move(upstreams),
                                                       /*before=*/nullptr);
  terms = boost::make_local_shared<Terms>(std::move(share), std::move(group));
  limits = terms->limits;
}

}  // namespace sluice::gateway
