// A blocking client for tests, one socket, no HTTP of its own: what is sent is what the test wrote.
// Every wait ends after 20 s, with a test failure.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <chrono>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace sluice::net::testing {

struct RawResponse {
  int status = 0;         // 0: the connection ended before a whole answer was there
  std::string head;       // with the status line and the empty line
  std::string body;       // without chunks
  bool complete = false;  // the body came to its end

  // The value of the first field with this name, in any case; empty if there is none.
  [[nodiscard]] std::string Field(std::string_view name) const;
  [[nodiscard]] bool Has(std::string_view name) const;
};

class RawClient {
 public:
  explicit RawClient(std::uint16_t port);
  explicit RawClient(int connected_socket) : socket_(connected_socket) { SetTimeout(); }
  RawClient(const RawClient&) = delete;
  RawClient& operator=(const RawClient&) = delete;
  virtual ~RawClient() { Close(); }

  // False when the peer does not take it all any more.
  virtual bool Send(std::string_view bytes);
  // The next answer, interim ones (1xx) too. `to_head`: no body follows.
  RawResponse ReadResponse(bool to_head = false);
  // Send() and ReadResponse().
  RawResponse Ask(std::string_view request);
  // Up to and with the first `mark`, or to the end of the connection. A mark that a head may hold
  // by chance (ids of requests are hexadecimal digits) has to begin with the line before it.
  std::string ReadUntil(std::string_view mark);
  std::string ReadExactly(std::size_t size);
  std::string ReadToEnd() { return ReadUntil({}); }
  // Sends `piece` every few milliseconds until the peer says something or ends the connection.
  // False: it did not within 20 s.
  bool Drip(std::string_view piece);
  // Nothing comes for so long.
  [[nodiscard]] bool Silent(std::chrono::milliseconds time) const;
  // Nothing comes any more, and no reset either.
  bool Ended();

  virtual void EndWriting() { ::shutdown(socket_, SHUT_WR); }
  void Close();
  // Closes so that the peer sees a reset.
  void Reset();
  // Shrinks the receive buffer, for a reader that is slow.
  [[nodiscard]] int socket() const { return socket_; }

 protected:
  // As recv(2).
  virtual ssize_t Receive(std::span<char> room);

 private:
  void SetTimeout() const;
  bool ReadSome();
  bool FillTo(std::size_t size);
  void ReadChunks(RawResponse* response);

  int socket_ = -1;
  std::string unread_;
  bool failed_ = false;  // by a reset or a timeout, not by an orderly end
};

// A listening socket of a test that plays the upstream by hand.
class RawListener {
 public:
  RawListener();
  RawListener(const RawListener&) = delete;
  RawListener& operator=(const RawListener&) = delete;
  ~RawListener() { Close(); }

  [[nodiscard]] std::uint16_t port() const { return port_; }
  [[nodiscard]] int socket() const { return socket_; }
  [[nodiscard]] int Accept() const;  // a connected socket; waits as a RawClient does
  void Close();

 private:
  int socket_ = -1;
  std::uint16_t port_ = 0;
};

}  // namespace sluice::net::testing
