// A connection to an upstream, and where it leads. Requests and health checks make theirs in the
// same way.
#pragma once

#include <cstddef>

#include "sluice/net/address.h"
#include "sluice/net/event_loops.h"
#include "sluice/net/http1_stream.h"
#include "sluice/net/task.h"

namespace sluice::gateway {

class UpstreamConnection final : public net::Http1Stream {
 public:
  // Not open yet. `upstream`: which one of its group.
  UpstreamConnection(net::EventLoop& loop, std::size_t upstream, const net::tcp::endpoint& endpoint)
      : Http1Stream(loop, net::Socket(loop.context())), upstream_(upstream), endpoint_(endpoint) {}

  // Once, under the deadline that is set. False: as Stream::Connect().
  net::Task<bool> Open() { return Connect(endpoint_); }

  [[nodiscard]] std::size_t upstream() const { return upstream_; }
  [[nodiscard]] const net::tcp::endpoint& endpoint() const { return endpoint_; }

 private:
  const std::size_t upstream_;
  const net::tcp::endpoint endpoint_;
};

}  // namespace sluice::gateway
