// Where connections come in: one listening socket per loop on the same port, so that the kernel
// spreads connections over the loops (SO_REUSEPORT) and no loop hands sockets to another.
//
// SO_REUSEPORT would also let a second process of the same user take half of the connections
// without anybody noticing; so the port is first tried without it.
//
// Errors: kAlreadyExists for a port that is in use, kPermissionDenied, kUnavailable for others.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "sluice/net/address.h"
#include "sluice/net/event_loops.h"
#include "sluice/net/socket.h"
#include "sluice/net/task.h"

namespace sluice::net {

class Listener {
 public:
  // `listening`: a socket that listens on `endpoint`.
  Listener(EventLoop& loop, Socket listening, const tcp::endpoint& endpoint);
  Listener(Listener&& other) noexcept;
  Listener& operator=(Listener&&) = delete;
  ~Listener();

  [[nodiscard]] EventLoop& loop() { return *loop_; }
  [[nodiscard]] const tcp::endpoint& endpoint() const { return endpoint_; }  // with the real port

  // The next connection, with TCP_NODELAY: heads and bodies leave together anyway. Nothing once
  // Close() was called. Rides out what passes by itself: clients that gave up in the queue at once,
  // a lack of descriptors or memory after a short pause. One call at a time.
  Task<std::optional<Socket>> Accept();

  // From the loop's thread.
  void Close();

 private:
  class Queue;

  EventLoop* loop_;
  std::unique_ptr<Queue> queue_;
  tcp::endpoint endpoint_;
};

// Opens a listener on each loop. Port 0 takes a free one, the same for all.
[[nodiscard]] absl::StatusOr<std::vector<Listener>> Listen(EventLoops& loops,
                                                           const HostPort& where);

}  // namespace sluice::net
