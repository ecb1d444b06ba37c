// A server that one loop speaks to over TLS: how, by what name, and the last ticket that it gave.
// With a ticket the next connection needs no whole handshake: no certificate is sent and verified
// again, and TLS 1.2 saves a round trip.
//
// How long a ticket is good the server says, a week at most; so long a certificate that has expired
// meanwhile goes unnoticed. Another context makes another peer, and begins with no ticket.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "sluice/net/tls_context.h"

struct ssl_session_st;  // OpenSSL's

namespace sluice::net {

class TlsPeer {
 public:
  // `host` is that of the server's address: a name, or an IP address as text. It is what the
  // server is asked for and must prove to be, where the context names nothing else.
  TlsPeer(std::shared_ptr<const TlsClientContext> context, std::string_view host);
  TlsPeer(const TlsPeer&) = delete;
  TlsPeer& operator=(const TlsPeer&) = delete;
  ~TlsPeer();

  [[nodiscard]] const TlsClientContext& context() const { return *context_; }
  [[nodiscard]] const std::string& server_name() const { return server_name_; }

  // Null if there is none.
  [[nodiscard]] ssl_session_st* ticket() const { return ticket_; }
  // Takes over; null forgets what is there.
  void Keep(ssl_session_st* ticket);

 private:
  const std::shared_ptr<const TlsClientContext> context_;
  const std::string server_name_;
  ssl_session_st* ticket_ = nullptr;
};

}  // namespace sluice::net
