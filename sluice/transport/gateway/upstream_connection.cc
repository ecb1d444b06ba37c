#include "sluice/transport/gateway/upstream_connection.h"

namespace sluice::gateway {

net::Task<bool> UpstreamConnection::OpenTls() {
  const bool connected = co_await Connect(endpoint_);
  if (!connected) co_return false;
  const absl::Status status = co_await ConnectTls(peer_);
  if (!status.ok()) refusal_ = std::string(status.message());
  co_return status.ok();
}

std::shared_ptr<net::TlsPeer> PeerOf(const UpstreamOptions& upstream) {
  if (!upstream.tls) return nullptr;
  return std::make_shared<net::TlsPeer>(upstream.tls, upstream.address.host);
}

}  // namespace sluice::gateway
