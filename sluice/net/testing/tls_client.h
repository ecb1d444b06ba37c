// A RawClient that speaks TLS, as the client or, for a test that plays an upstream, as the server:
// OpenSSL by itself, with none of our code in between. Blocking; every wait ends after 20 s.
//
//   TlsClient client(port, {.ca_file = authority.ca_file(), .server_name = "site.test"});
//   ASSERT_TRUE(client.Handshake()) << client.why();
//   EXPECT_EQ(client.Ask("GET / HTTP/1.1\r\nHost: a\r\n\r\n").status, 200);
#pragma once

#include <openssl/types.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "sluice/net/testing/certificates.h"
#include "sluice/net/testing/raw_client.h"

struct ssl_session_st;

namespace sluice::net::testing {

struct TlsOptions {
  bool server = false;
  KeyPair pair;             // that it shows; a server must have one
  std::string ca_file;      // whom it believes, and that it asks for a certificate; empty: anybody
  std::string server_name;  // that a client asks for (SNI) and wants to see
  std::string protocols;    // ALPN, as it is written: "\x08http/1.1"; empty: none
  bool tickets = true;      // a server gives some, and all servers take them
  int min_version = 0;      // TLS1_2_VERSION, ...; 0: as OpenSSL thinks best
  int max_version = 0;
};

class TlsClient final : public RawClient {
 public:
  TlsClient(std::uint16_t port, TlsOptions options);
  TlsClient(int connected_socket, TlsOptions options);
  ~TlsClient() override;

  bool Handshake();
  // The bytes that a client begins with, which it does not send by itself.
  std::string FirstFlight();
  bool Send(std::string_view content) override;
  // What Send() would put on the wire, which is not sent.
  std::string Sealed(std::string_view content);
  // As bytes on the wire, past TLS.
  bool SendPlain(std::string_view bytes) { return RawClient::Send(bytes); }
  // Says so by TLS; the connection stays as it is.
  void EndWriting() override;
  // Ends the connection's sending side without a word of TLS.
  void CutWriting() { RawClient::EndWriting(); }
  // TLS 1.3: new keys, for both sides. TLS 1.2: asks for another handshake.
  bool UpdateKeys();
  bool Renegotiate();

  // After a handshake that failed, or when reading did.
  [[nodiscard]] const std::string& why() const { return why_; }
  [[nodiscard]] std::string peer_name() const;   // the common name in its certificate
  [[nodiscard]] std::string protocol() const;    // that was chosen; empty: none
  [[nodiscard]] std::string asked_name() const;  // of a server: what its client asked for
  [[nodiscard]] int version() const;
  [[nodiscard]] bool resumed() const;
  // Records with content that have come so far; in TLS 1.3 also those with tickets.
  [[nodiscard]] int records() const { return records_; }
  // Tickets that have come so far. The next client may begin with the last of them.
  [[nodiscard]] int tickets() const { return tickets_; }
  void Resume(const TlsClient& before);

 protected:
  // 0 only after the peer has said that it ends; -1 when the connection just ended.
  ssize_t Receive(std::span<char> room) override;

 private:
  void Prepare();
  std::string TakeOut();  // of the memory that OpenSSL writes to
  bool Flush();
  bool Feed();
  bool Advance(int result);
  static void OnMessage(int write, int version, int type, const void* bytes, std::size_t size,
                        SSL* ssl, void* self);
  static int OnTicket(SSL* ssl, ssl_session_st* ticket);

  TlsOptions options_;
  SSL_CTX* context_ = nullptr;
  SSL* ssl_ = nullptr;
  ssl_session_st* ticket_ = nullptr;
  int tickets_ = 0;
  int records_ = 0;
  std::string why_;
};

}  // namespace sluice::net::testing
