#include "sluice/net/testing/tls_client.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "sluice/net/internal/openssl.h"

namespace sluice::net::testing {

TlsClient::TlsClient(std::uint16_t port, TlsOptions options)
    : RawClient(port), options_(std::move(options)) {
  Prepare();
}

TlsClient::TlsClient(int connected_socket, TlsOptions options)
    : RawClient(connected_socket), options_(std::move(options)) {
  Prepare();
}

TlsClient::~TlsClient() {
  SSL_SESSION_free(ticket_);
  SSL_set_shutdown(ssl_, SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN);
  SSL_free(ssl_);
  SSL_CTX_free(context_);
}

// OpenSSL writes to memory and reads from there, so that a test has every byte in its hands.
void TlsClient::Prepare() {
  context_ = SSL_CTX_new(options_.server ? TLS_server_method() : TLS_client_method());
  SSL_CTX_set_min_proto_version(context_, options_.min_version);
  SSL_CTX_set_max_proto_version(context_, options_.max_version);
  if (!options_.pair.certificate_file.empty()) {
    EXPECT_EQ(SSL_CTX_use_certificate_chain_file(context_, options_.pair.certificate_file.c_str()),
              1);
    EXPECT_EQ(
        SSL_CTX_use_PrivateKey_file(context_, options_.pair.key_file.c_str(), SSL_FILETYPE_PEM), 1);
  }
  if (!options_.ca_file.empty()) {
    EXPECT_EQ(SSL_CTX_load_verify_file(context_, options_.ca_file.c_str()), 1);
    SSL_CTX_set_verify(context_, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
    const unsigned char id = 1;  // else a server that asks for certificates resumes nothing
    SSL_CTX_set_session_id_context(context_, &id, 1);
  }
  SSL_CTX_set_session_cache_mode(context_,
                                 options_.server ? SSL_SESS_CACHE_OFF : SSL_SESS_CACHE_CLIENT);
  if (options_.server) {
    // The same for all servers, so that each can resume what another began.
    std::array<unsigned char, 80> keys{};
    EXPECT_EQ(SSL_CTX_set_tlsext_ticket_keys(context_, keys.data(), keys.size()), 1);
    if (!options_.tickets) SSL_CTX_set_num_tickets(context_, 0);
  }
  if (!options_.server) SSL_CTX_sess_set_new_cb(context_, &TlsClient::OnTicket);
  ssl_ = SSL_new(context_);
  SSL_set_app_data(ssl_, this);
  SSL_set_bio(ssl_, BIO_new(BIO_s_mem()), BIO_new(BIO_s_mem()));
  SSL_set_msg_callback(ssl_, &TlsClient::OnMessage);
  SSL_set_msg_callback_arg(ssl_, this);
  if (options_.server) return SSL_set_accept_state(ssl_);
  SSL_set_connect_state(ssl_);
  if (!options_.server_name.empty()) {
    SSL_set_tlsext_host_name(ssl_, options_.server_name.c_str());
    if (!options_.ca_file.empty()) SSL_set1_host(ssl_, options_.server_name.c_str());
  }
  if (!options_.protocols.empty()) {
    SSL_set_alpn_protos(ssl_, reinterpret_cast<const unsigned char*>(options_.protocols.data()),
                        static_cast<unsigned int>(options_.protocols.size()));
  }
}

void TlsClient::OnMessage(int write, int /*version*/, int type, const void* bytes, std::size_t size,
                          SSL* /*ssl*/, void* self) {
  if (write != 0 || type != SSL3_RT_HEADER || size == 0) return;
  if (*static_cast<const unsigned char*>(bytes) != SSL3_RT_APPLICATION_DATA) return;
  ++static_cast<TlsClient*>(self)->records_;
}

int TlsClient::OnTicket(SSL* ssl, SSL_SESSION* ticket) {
  auto& self = *static_cast<TlsClient*>(SSL_get_app_data(ssl));
  ++self.tickets_;
  SSL_SESSION_free(std::exchange(self.ticket_, ticket));
  return 1;
}

void TlsClient::Resume(const TlsClient& before) {
  ASSERT_NE(before.ticket_, nullptr);
  SSL_set_session(ssl_, before.ticket_);
}

bool TlsClient::Flush() {
  const std::string bytes = TakeOut();
  return bytes.empty() || SendPlain(bytes);
}

bool TlsClient::Feed() {
  std::array<char, 16384> bytes;
  const ssize_t got = RawClient::Receive(bytes);
  if (got > 0) BIO_write(SSL_get_rbio(ssl_), bytes.data(), static_cast<int>(got));
  if (got == 0) {
    errno = 0;
    why_ = "the connection just ended";
  }
  return got > 0;
}

// After a call that has not gone through: whether it is worth another try.
bool TlsClient::Advance(int result) {
  const int error = SSL_get_error(ssl_, result);
  const std::string reason = error == SSL_ERROR_SSL ? internal::TakeError() : "";
  Flush();
  if (error == SSL_ERROR_WANT_READ) return Feed();
  if (error == SSL_ERROR_ZERO_RETURN) return false;
  why_ = reason.empty() ? "broken" : reason;
  errno = 0;
  return false;
}

bool TlsClient::Handshake() {
  while (true) {
    ERR_clear_error();
    const int result = SSL_do_handshake(ssl_);
    if (result == 1) return Flush();
    if (!Advance(result)) return false;
  }
}

std::string TlsClient::FirstFlight() {
  SSL_do_handshake(ssl_);
  return TakeOut();
}

std::string TlsClient::Sealed(std::string_view content) {
  SSL_write(ssl_, content.data(), static_cast<int>(content.size()));
  return TakeOut();
}

std::string TlsClient::TakeOut() {
  const char* bytes = nullptr;
  const long size = BIO_get_mem_data(SSL_get_wbio(ssl_), &bytes);
  std::string out(bytes, static_cast<std::size_t>(std::max(size, 0L)));
  static_cast<void>(BIO_reset(SSL_get_wbio(ssl_)));
  return out;
}

bool TlsClient::Send(std::string_view content) {
  // The memory takes everything: what the peer does not read blocks in Flush().
  while (!content.empty()) {
    const std::string_view record = content.substr(0, 16384);
    std::size_t sent = 0;
    ERR_clear_error();
    if (SSL_write_ex(ssl_, record.data(), record.size(), &sent) != 1 || !Flush()) return false;
    content.remove_prefix(sent);
  }
  return true;
}

ssize_t TlsClient::Receive(std::span<char> room) {
  while (true) {
    std::size_t got = 0;
    ERR_clear_error();
    const int result = SSL_read_ex(ssl_, room.data(), room.size(), &got);
    if (result == 1) {
      Flush();  // an answer to new keys, say
      return static_cast<ssize_t>(got);
    }
    if (SSL_get_error(ssl_, result) == SSL_ERROR_ZERO_RETURN) return 0;
    if (!Advance(result)) return -1;
  }
}

void TlsClient::EndWriting() {
  SSL_shutdown(ssl_);
  Flush();
}

bool TlsClient::UpdateKeys() {
  return SSL_key_update(ssl_, SSL_KEY_UPDATE_REQUESTED) == 1 && SSL_do_handshake(ssl_) == 1 &&
         Flush();
}

bool TlsClient::Renegotiate() {
  SSL_renegotiate(ssl_);
  return Handshake();
}

std::string TlsClient::peer_name() const {
  X509* certificate = SSL_get0_peer_certificate(ssl_);
  if (certificate == nullptr) return {};
  std::array<char, 256> name{};
  X509_NAME_get_text_by_NID(X509_get_subject_name(certificate), NID_commonName, name.data(),
                            name.size());
  return name.data();
}

std::string TlsClient::protocol() const {
  const unsigned char* name = nullptr;
  unsigned int size = 0;
  SSL_get0_alpn_selected(ssl_, &name, &size);
  return {reinterpret_cast<const char*>(name), size};
}

std::string TlsClient::asked_name() const {
  const char* name = SSL_get_servername(ssl_, TLSEXT_NAMETYPE_host_name);
  return name == nullptr ? "" : name;
}

int TlsClient::version() const { return SSL_version(ssl_); }

bool TlsClient::resumed() const { return SSL_session_reused(ssl_) == 1; }

}  // namespace sluice::net::testing
