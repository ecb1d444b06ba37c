// The server's end of an HTTP/1.1 connection: one request after the other, in order.
//
//   head -> ServeRequest() -> head -> ... -> closed
//     `-- out of form or too slow: problem+json with 400, 408, 417, 431, 501, 505, and closed
//
// A connection is kept when the request allows it, its body was read to the end and the server is
// not draining. A client that sends its head too slowly is told so, one that lies idle is not; for
// a body that is too slow ServeRequest() has the word.
//
// With a TLS context the handshake comes first, within the time of a head. Who asks in plain HTTP
// there is told so (400); a handshake that fails is closed without a word but TLS's own. One that
// is under way when the server begins to drain is finished, and the request behind it answered if
// it comes within the time of a head.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>

#include "sluice/base/spare.h"
#include "sluice/net/http1_answer.h"
#include "sluice/net/http1_stream.h"
#include "sluice/net/tcp_server.h"

namespace sluice::net {

struct Http1Limits {
  HeadLimits head;
  Duration idle_time = std::chrono::seconds(75);   // between requests
  Duration head_time = std::chrono::seconds(10);   // from a head's first byte to its last
  Duration body_time = std::chrono::seconds(30);   // for a body's next content; to skip all of it
  Duration write_time = std::chrono::seconds(60);  // for each wait for a client that reads slowly
  Duration close_time = std::chrono::seconds(2);   // for a client to take the last answer
  // Of a body that nobody asked for: read and dropped to keep the connection; a longer one closes.
  std::size_t skipped_body_bytes = std::size_t{64} * 1024;
};

class Http1Session : public Session {
 public:
  // `limits` outlives the session, or the first UseLimits(). `tls`: how the server shows itself;
  // null: plain HTTP.
  Http1Session(EventLoop& loop, Socket socket, const Http1Limits& limits,
               std::shared_ptr<const TlsServerContext> tls = nullptr);

  Task<void> Run() final;
  void Drain() final;
  void Abort() override { stream_.Abort(); }

 protected:
  // head() is a request, its body can be read from stream(). Answers it and returns whether the
  // connection may be used again.
  virtual Task<bool> ServeRequest() = 0;

  // A handshake has ended: see Stream::AcceptTls(); stream() tells more.
  virtual void OnHandshake(const absl::Status& /*status*/) {}

  // A request that can not be read is answered: appends more fields, each line with its CRLF.
  virtual void AppendRefusalFields(std::string* /*fields*/) {}
  // It was, with this; nothing more comes of the connection.
  virtual void OnRefused(const Answer& /*answer*/) {}

  // Sends a whole answer and gets rid of what is left of the request's body. Returns whether the
  // connection may be used again; says the same to the client.
  Task<bool> Send(const Answer& answer);

  // The client waits for permission to send the body. Once per request.
  Task<bool> SendContinue();

  [[nodiscard]] EventLoop& loop() { return stream_.loop(); }
  [[nodiscard]] Http1Stream& stream() { return stream_; }
  [[nodiscard]] const RequestHead& head() const { return at_hand_->head; }
  // The method is HEAD. Unlike head()'s views this lasts until the request is answered.
  [[nodiscard]] bool to_head() const { return to_head_; }
  [[nodiscard]] const Http1Limits& limits() const { return *limits_; }
  // From here on; they outlive the session, or the next call.
  void UseLimits(const Http1Limits& limits) { limits_ = &limits; }
  [[nodiscard]] const tcp::endpoint& peer() const { return stream_.peer(); }
  [[nodiscard]] bool draining() const { return draining_; }
  // Whether each answer from now on is the last of its connection, and says so.
  [[nodiscard]] virtual bool LastAnswer() const { return draining_; }

 private:
  struct AtHand {
    RequestHead head;
    std::string out;  // an answer of the server's own
  };

  Task<bool> Secure();
  Task<bool> NextRequest();
  Task<void> Refuse(const HeadProblem& problem);

  const Http1Limits* limits_;
  std::shared_ptr<const TlsServerContext> tls_;  // until the handshake is done
  Http1Stream stream_;
  Spare<AtHand> at_hand_;  // from the end of a head to the wait for the next
  bool to_head_ = false;
  bool idle_ = true;
  bool draining_ = false;
  bool request_is_coming_ = false;  // behind a handshake that ended while it drains
};

}  // namespace sluice::net
