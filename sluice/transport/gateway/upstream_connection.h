// A connection to an upstream, and where it leads. Requests and health checks make theirs in the
// same way. Over TLS it is open once the upstream has proved who it is.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "sluice/net/address.h"
#include "sluice/net/event_loops.h"
#include "sluice/net/http1_stream.h"
#include "sluice/net/task.h"
#include "sluice/net/tls_peer.h"
#include "sluice/transport/gateway/options.h"

namespace sluice::gateway {

// Interim answers (1xx) that may come before the answer; an upstream that sends more has failed.
constexpr int kMaxInterimAnswers = 16;

class UpstreamConnection final : public net::Http1Stream {
 public:
  // Not open yet. `upstream`: which one of its group. `peer`: null for plain HTTP.
  UpstreamConnection(net::EventLoop& loop, std::size_t upstream, const net::tcp::endpoint& endpoint,
                     std::shared_ptr<net::TlsPeer> peer)
      : Http1Stream(loop, net::Socket()),
        upstream_(upstream),
        endpoint_(endpoint),
        peer_(std::move(peer)) {}

  // Once, under the deadline that is set. False: as Stream::Connect(), or the handshake failed.
  net::Task<bool> Open() { return peer_ ? OpenTls() : Connect(endpoint_); }

  // What TLS has to say of its end, in words for the log; empty unless TLS was the reason.
  [[nodiscard]] std::string_view error() const {
    return refusal_.empty() ? tls_error() : std::string_view(refusal_);
  }

  [[nodiscard]] std::size_t upstream() const { return upstream_; }
  [[nodiscard]] const net::tcp::endpoint& endpoint() const { return endpoint_; }

 private:
  net::Task<bool> OpenTls();

  const std::size_t upstream_;
  const net::tcp::endpoint endpoint_;
  const std::shared_ptr<net::TlsPeer> peer_;
  std::string refusal_;  // why the handshake failed
};

// For the connections that one loop makes to an upstream. Null: plain HTTP.
[[nodiscard]] std::shared_ptr<net::TlsPeer> PeerOf(const UpstreamOptions& upstream);

}  // namespace sluice::gateway
