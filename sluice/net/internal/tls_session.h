// One connection's TLS: OpenSSL on a non-blocking socket, a step at a time. It never waits; its
// owner (Stream) does, and calls again.
//
//   bytes <- SSL_read <- recv        only where the socket is readable. What OpenSSL holds itself,
//   bytes -> SSL_write -> send       pending(), no socket tells of, so ask before waiting.
//
// The socket is read and written by a BIO of our own: SSL_set_fd() writes with write(2), which can
// kill the process by SIGPIPE. As nobody tells OpenSSL of the end of input, one without a
// close_notify leaves the other direction as it was.
//
// Cost: one recv a read and one send a record; OpenSSL takes 17 KB for each direction while a
// record is on its way and gives them back (SSL_MODE_RELEASE_BUFFERS). For one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "sluice/net/internal/openssl.h"
#include "sluice/net/readiness.h"
#include "sluice/net/tls_context.h"
#include "sluice/net/tls_peer.h"

namespace sluice::net::internal {

class TlsSession {
 public:
  static constexpr std::size_t kRecordBytes = std::size_t{16} * 1024;  // of content, at most

  enum class Step : std::uint8_t {
    kDone,
    kWantRead,   // again when the socket can be read
    kWantWrite,  // again when it can be written
    kEnded,      // the peer has said that nothing more comes
    kBroken,     // why() tells; nothing will come of it any more
  };
  struct Moved {
    Step step;
    std::size_t size = 0;  // with kDone at least 1
  };

  // The server's end. `context` lives until the handshake is done.
  TlsSession(const TlsServerContext& context, int socket, Readiness& readiness);
  // The client's.
  TlsSession(std::shared_ptr<TlsPeer> peer, int socket, Readiness& readiness);
  TlsSession(const TlsSession&) = delete;
  TlsSession& operator=(const TlsSession&) = delete;
  ~TlsSession();

  [[nodiscard]] Step Handshake();
  [[nodiscard]] bool is_client() const { return peer_ != nullptr; }
  [[nodiscard]] bool established() const { return established_; }
  [[nodiscard]] bool resumed() const { return SSL_session_reused(ssl_.get()) == 1; }

  // Fills `room` (not empty) as far as that needs no waiting. An end comes after all bytes.
  [[nodiscard]] Moved Read(std::span<char> room);
  // Takes at most one record's worth. After kWant... it must be called with the same bytes again.
  [[nodiscard]] Moved Write(std::string_view bytes);
  // Whether Read() has something to say at once. Deals with what is no content: tickets, new keys.
  [[nodiscard]] bool Peek();
  // Says that nothing more will be written; once, however often it is called.
  [[nodiscard]] Step End();
  // Nothing will be written any more, and the peer is not told.
  void Spoil() { writable_ = false; }

  // OpenSSL holds bytes that have come in, or knows of the end.
  [[nodiscard]] bool pending() const;
  // Anything has come from the peer.
  [[nodiscard]] bool begun() const { return begun_; }
  // What has come first begins as a request does that nobody has encrypted.
  [[nodiscard]] bool hears_http() const { return hears_http_; }

  // Why a step was kBroken, in words for the log.
  [[nodiscard]] const std::string& why() const { return why_; }
  // It was because of the server's certificate.
  [[nodiscard]] bool unverified() const { return unverified_; }

  // For the context: a server has given a ticket.
  static int OnTicket(SSL* ssl, SSL_SESSION* ticket);

 private:
  struct Socket;

  void Attach(SSL_CTX* context);
  Step StepOf(int result);
  void Explain(int error);

  SslPtr ssl_;
  const std::shared_ptr<TlsPeer> peer_;  // the server, where we are the client; else null
  std::string why_;
  Step reading_ = Step::kDone;  // kEnded and kBroken stay
  bool writable_ = true;
  bool end_said_ = false;
  const int socket_;
  Readiness& readiness_;
  bool begun_ = false;
  bool hears_http_ = false;
  bool established_ = false;
  bool unverified_ = false;
};

}  // namespace sluice::net::internal
