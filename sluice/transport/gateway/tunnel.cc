// After a 101: the client's and the upstream's connection as one.
#include <algorithm>

#include "sluice/transport/gateway/session.h"

namespace sluice::gateway {

using net::Http1Stream;
using net::Task;

// Nothing is read ahead of what was written: each direction holds one buffer's worth. What came
// behind the request's or the answer's head is in the buffers already, and goes first.
Task<void> GatewaySession::Tunnel() {
  request_->out.clear();
  AppendClientHead(request_->answer, {.request_id = request_->request_id}, terms_->fields,
                   &request_->upstream_limits, &request_->out);
  terms_->fields.Append(request_->outcome, request_->upstream_limits, &request_->out);
  request_->out.append("\r\n");
  // From here on a client that has said all is not one that has left.
  slow_alarm_.Clear();
  UnwatchClient();
  stream().EndHead();
  upstream_->EndHead();
  upstream_->Clear();
  const bool told = co_await WriteToClient(request_->out);
  if (!told) co_return;
  request_->access.status = request_->answer.status;

  upstreams().Answered(chosen_);
  tunnel_patience_ = options().tunnel_idle_timeout;
  tunnel_alarm_.Set(tunnel_patience_);
  Task<void> request = Carry(stream(), *upstream_);
  co_await Carry(*upstream_, stream());
  co_await std::move(request);
  tunnel_alarm_.Clear();
  if (!left_) request_->end = RequestEnd::kForwarded;
}

// One direction, until its sender has said all or either connection is gone.
Task<void> GatewaySession::Carry(Http1Stream& from, Http1Stream& to) {
  net::ReadBuffer& buffer = from.buffer();
  const bool to_client = &to == &stream();
  while (true) {
    if (buffer.empty()) {
      const std::size_t size = co_await from.Read(buffer, Http1Stream::kBodyBytes);
      if (size == 0) break;
    }
    tunnel_alarm_.Set(tunnel_patience_);
    const bool written = co_await to.Write(buffer.view());
    if (!written) {
      // An upstream that takes no more may have said its last word before: that is still read.
      if (to_client) EndTunnel();
      co_return;
    }
    (to_client ? request_->access.sent : request_->received) += buffer.view().size();
    buffer.Clear();
  }
  if (!from.ended()) {
    // Broken off. The client's last bytes from us may still be on their way, so that its
    // connection is closed and not torn down; the other direction must not wait for it.
    if (to_client) to.BreakOff();
    upstream_->Abort();
    stream().CancelWait();
    co_return;
  }
  // First the time: over TLS even the end has to wait for a peer that does not read.
  tunnel_patience_ = std::min(tunnel_patience_, options().response_timeout);
  tunnel_alarm_.Set(tunnel_patience_);
  co_await to.EndWriting();
}

void GatewaySession::EndTunnel() {
  upstream_->Abort();
  stream().Abort();
}

}  // namespace sluice::gateway
