#include "sluice/net/tls_peer.h"

#include <utility>

#include "sluice/net/internal/openssl.h"

namespace sluice::net {

TlsPeer::TlsPeer(std::shared_ptr<const TlsClientContext> context, std::string_view host)
    : context_(std::move(context)),
      server_name_(context_->server_name().empty() ? std::string(host) : context_->server_name()) {}

TlsPeer::~TlsPeer() { SSL_SESSION_free(ticket_); }

void TlsPeer::Keep(SSL_SESSION* ticket) { SSL_SESSION_free(std::exchange(ticket_, ticket)); }

}  // namespace sluice::net
