// Notices that a peer has left while nobody reads from it: a request that waits in a queue, or for
// an upstream that takes long, should stop costing when its client is gone.
//
// An epoll set of its own, asked only for the end of the peer's sending (EPOLLRDHUP): bytes that
// arrive early stay where they are and wake nobody, and no read is pending that would have to be
// cancelled. A client that shuts down its sending side counts as gone, as it does in nginx.
//
// Cost: two system calls per watched stretch, none while it lasts. For one thread.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/basic_stream_descriptor.hpp>
#include <cstddef>

#include "sluice/net/deadlines.h"

namespace sluice::net {

class HangupWatch {
 public:
  class Watcher {
   public:
    // The peer is gone. Told once; the descriptor is watched no more.
    virtual void OnHangup() = 0;

   protected:
    ~Watcher() = default;
  };

  explicit HangupWatch(asio::io_context& context);
  HangupWatch(const HangupWatch&) = delete;
  HangupWatch& operator=(const HangupWatch&) = delete;

  // `watcher` lives until it was told or taken off. A peer that is gone already is told of soon,
  // never from inside this call. A descriptor that the kernel does not let be watched is never told
  // of.
  void Watch(int descriptor, Watcher& watcher);
  // Does nothing for a descriptor that is not watched.
  void Unwatch(int descriptor);

  // Stops waiting, so that the loop can run out of work.
  void Stop();

 private:
  void Wait();
  void Tell();

  asio::posix::basic_stream_descriptor<Executor> epoll_;
  bool waiting_ = false;
  bool stopped_ = false;
};

}  // namespace sluice::net
