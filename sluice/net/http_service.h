// A small HTTP/1.1 server on top of a session: a handler for each request, whose answer is there as
// a whole. For ports that answer by themselves; the gateway streams and has a session of its own.
//
//   auto server = TcpServer::Start(loops, where, {}, HttpService(Handle, {}));
//
//   Task<Answer> Handle(Exchange& exchange) {
//     if (exchange.path() != "/healthz") co_return ProblemAnswer(404, "no such page");
//     co_return Answer{.body = "{}"};
//   }
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "sluice/net/http1_answer.h"
#include "sluice/net/http1_session.h"

namespace sluice::net {

// One request, and its connection.
class Exchange {
 public:
  virtual ~Exchange() = default;

  [[nodiscard]] const RequestHead& head() const { return *head_; }
  [[nodiscard]] std::string_view path() const;   // without the query; as sent, not decoded
  [[nodiscard]] std::string_view query() const;  // without the question mark
  [[nodiscard]] const tcp::endpoint& peer() const { return *peer_; }
  [[nodiscard]] EventLoop& loop() const { return stream_->loop(); }

  // The whole body; head() is not good any more after that. kResourceExhausted: longer than
  // `max_bytes` (answer 413); kDeadlineExceeded: too slow (408); kInvalidArgument: out of form or
  // broken off (400).
  virtual Task<absl::StatusOr<std::string>> ReadBody(std::size_t max_bytes) = 0;

  // For what is no plain answer: the handler writes to the stream by itself, and what it returns is
  // dropped. The connection ends with the handler.
  [[nodiscard]] Http1Stream& TakeOver() {
    taken_over_ = true;
    return *stream_;
  }

 protected:
  Exchange(const RequestHead* head, const tcp::endpoint* peer, Http1Stream* stream)
      : head_(head), peer_(peer), stream_(stream) {}

  const RequestHead* head_;
  const tcp::endpoint* peer_;
  Http1Stream* stream_;
  bool taken_over_ = false;
};

// Runs on the connection's loop; shared by all loops, so what it captures must be safe for that. A
// handler that is a lambda with captures must not be a coroutine itself: let it call one.
using Handler = std::function<Task<Answer>(Exchange&)>;

// The factory of the server's sessions.
[[nodiscard]] TcpServer::Factory HttpService(Handler handler, const Http1Limits& limits);

}  // namespace sluice::net
