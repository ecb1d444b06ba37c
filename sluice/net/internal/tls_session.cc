#include "sluice/net/internal/tls_session.h"

#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "sluice/base/ascii.h"
#include "sluice/base/ip.h"

namespace sluice::net::internal {

// The BIO between OpenSSL and the socket. Its data is the session.
struct TlsSession::Socket {
  static int Read(BIO* bio, char* out, int size) {
    auto& self = *static_cast<TlsSession*>(BIO_get_data(bio));
    BIO_clear_retry_flags(bio);
    if (!self.readiness_.readable()) {
      BIO_set_retry_read(bio);
      return -1;
    }
    ssize_t got = 0;
    do {
      got = ::recv(self.socket_, out, static_cast<std::size_t>(size), MSG_DONTWAIT);
    } while (got < 0 && errno == EINTR);
    // A record of a handshake begins with a 22, a request with the letters of its method.
    if (got > 0 && !std::exchange(self.begun_, true)) self.hears_http_ = IsLetter(*out);
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
      self.readiness_.NoteEmpty();
      BIO_set_retry_read(bio);
    } else if (got > 0 && got < size) {
      self.readiness_.NoteShortRead();
    }
    return static_cast<int>(got);
  }

  static int Write(BIO* bio, const char* bytes, int size) {
    const auto& self = *static_cast<TlsSession*>(BIO_get_data(bio));
    BIO_clear_retry_flags(bio);
    ssize_t sent = 0;
    do {
      sent =
          ::send(self.socket_, bytes, static_cast<std::size_t>(size), MSG_NOSIGNAL | MSG_DONTWAIT);
    } while (sent < 0 && errno == EINTR);
    if (sent < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) BIO_set_retry_write(bio);
    return static_cast<int>(sent);
  }

  static long Control(BIO* /*bio*/, int command, long /*number*/, void* /*pointer*/) {
    return command == BIO_CTRL_FLUSH ? 1 : 0;  // nothing is held back
  }

  static const BIO_METHOD* Method() {
    static const BIO_METHOD* const kMethod = [] {
      BIO_METHOD* made = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "socket");
      BIO_meth_set_read(made, &Read);
      BIO_meth_set_write(made, &Write);
      BIO_meth_set_ctrl(made, &Control);
      return made;
    }();
    return kMethod;
  }
};

namespace {

// Asks the server for its certificate under `name`, and takes no other's.
bool ExpectName(SSL* ssl, const std::string& name) {
  if (const std::optional<IpAddress> address = IpAddress::Parse(name)) {
    const std::array<std::uint8_t, 16> bytes = address->bytes();
    const std::size_t size = address->is_v4() ? 4 : bytes.size();
    return X509_VERIFY_PARAM_set1_ip(SSL_get0_param(ssl), bytes.data() + bytes.size() - size,
                                     size) == 1;
  }
  SSL_set_hostflags(ssl, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
  return SSL_set_tlsext_host_name(ssl, name.c_str()) == 1 && SSL_set1_host(ssl, name.c_str()) == 1;
}

}  // namespace

TlsSession::TlsSession(const TlsServerContext& context, int socket, Readiness& readiness)
    : socket_(socket), readiness_(readiness) {
  Attach(context.handle());
  SSL_set_accept_state(ssl_.get());
}

TlsSession::TlsSession(std::shared_ptr<TlsPeer> peer, int socket, Readiness& readiness)
    : peer_(std::move(peer)), socket_(socket), readiness_(readiness) {
  Attach(peer_->context().handle());
  SSL* ssl = ssl_.get();
  SSL_set_connect_state(ssl);
  if (!ExpectName(ssl, peer_->server_name())) {
    // Without a name any certificate of an authority would do.
    reading_ = Step::kBroken;
    unverified_ = true;
    why_ = absl::StrCat("no certificate can be checked for the name ", peer_->server_name());
  }
  if (peer_->ticket() != nullptr) SSL_set_session(ssl, peer_->ticket());
}

TlsSession::~TlsSession() {
  // Else OpenSSL takes the session for a broken one, and the ticket of it is worth nothing.
  if (peer_) SSL_set_shutdown(ssl_.get(), SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN);
}

void TlsSession::Attach(SSL_CTX* context) {
  ssl_.reset(SSL_new(context));
  BIO* bio = BIO_new(Socket::Method());
  // Without memory the process ends here, as it does in operator new.
  if (!ssl_ || bio == nullptr) std::abort();
  BIO_set_data(bio, this);
  BIO_set_init(bio, 1);
  SSL_set_bio(ssl_.get(), bio, bio);
  SSL_set_app_data(ssl_.get(), this);
}

int TlsSession::OnTicket(SSL* ssl, SSL_SESSION* ticket) {
  const auto& self = *static_cast<TlsSession*>(SSL_get_app_data(ssl));
  self.peer_->Keep(ticket);
  return 1;  // it is ours now
}

TlsSession::Step TlsSession::Handshake() {
  if (reading_ == Step::kBroken) return reading_;
  ERR_clear_error();
  const int result = SSL_do_handshake(ssl_.get());
  if (result == 1) {
    established_ = true;
    return Step::kDone;
  }
  Step step = StepOf(result);
  if (step == Step::kEnded) step = Step::kBroken;
  if (step == Step::kBroken && peer_) peer_->Keep(nullptr);  // a ticket may have been the reason
  return step;
}

TlsSession::Moved TlsSession::Read(std::span<char> room) {
  std::size_t size = 0;
  while (reading_ == Step::kDone && size < room.size()) {
    if (size > 0 && !readiness_.readable() && SSL_has_pending(ssl_.get()) == 0) break;
    std::size_t got = 0;
    ERR_clear_error();
    const int result = SSL_read_ex(ssl_.get(), room.data() + size, room.size() - size, &got);
    size += got;
    if (result == 1) continue;
    const Step step = StepOf(result);
    if (step == Step::kEnded || step == Step::kBroken) {
      reading_ = step;
    } else if (size == 0) {
      return {step};
    } else {
      break;
    }
  }
  if (size > 0) return {Step::kDone, size};
  return {reading_};
}

TlsSession::Moved TlsSession::Write(std::string_view bytes) {
  if (!writable_) return {Step::kBroken};
  std::size_t sent = 0;
  ERR_clear_error();
  const int result =
      SSL_write_ex(ssl_.get(), bytes.data(), std::min(bytes.size(), kRecordBytes), &sent);
  if (result == 1) return {Step::kDone, sent};
  const Step step = StepOf(result);
  if (step == Step::kBroken) writable_ = false;
  return {step};
}

bool TlsSession::Peek() {
  if (reading_ != Step::kDone) return true;
  char byte = 0;
  std::size_t got = 0;
  ERR_clear_error();
  const int result = SSL_peek_ex(ssl_.get(), &byte, 1, &got);
  if (result == 1) return true;
  const Step step = StepOf(result);
  if (step != Step::kEnded && step != Step::kBroken) return false;
  reading_ = step;
  return true;
}

TlsSession::Step TlsSession::End() {
  if (end_said_) return Step::kDone;  // SSL_shutdown() would read now, past Read()
  if (!established_ || !writable_) return Step::kBroken;
  ERR_clear_error();
  const int result = SSL_shutdown(ssl_.get());
  if (result < 0) return StepOf(result);
  end_said_ = true;  // 0: the peer has not said the same yet
  return Step::kDone;
}

bool TlsSession::pending() const {
  return reading_ != Step::kDone || SSL_has_pending(ssl_.get()) == 1;
}

TlsSession::Step TlsSession::StepOf(int result) {
  const int error = SSL_get_error(ssl_.get(), result);
  switch (error) {
    case SSL_ERROR_WANT_READ:
      return Step::kWantRead;
    case SSL_ERROR_WANT_WRITE:
      return Step::kWantWrite;
    case SSL_ERROR_ZERO_RETURN:
      return Step::kEnded;
    default:
      Explain(error);
      return Step::kBroken;
  }
}

void TlsSession::Explain(int error) {
  // After one of these nothing may be said any more.
  if (error == SSL_ERROR_SSL) writable_ = false;
  if (!why_.empty()) return;
  const long verified = SSL_get_verify_result(ssl_.get());
  const bool asked = peer_ && SSL_get_verify_mode(ssl_.get()) != SSL_VERIFY_NONE;
  if (asked && !established_ && verified != X509_V_OK) {
    unverified_ = true;
    why_ = X509_verify_cert_error_string(verified);
  } else if (error == SSL_ERROR_SSL) {
    why_ = TakeError();
  } else {
    why_ = "the peer ended the connection without TLS's close_notify";
  }
  ERR_clear_error();
}

}  // namespace sluice::net::internal
