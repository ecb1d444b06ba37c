// The connections of one loop to all upstreams: kept open between requests, bounded in number.
//
//   request -> Enter(): a place  -> TakeIdle(), or connect anew -> Keep() or drop -> Leave()
//                  |                    ^ the one used last: the others can grow cold and be closed
//                  `- all taken: waits in order, for a bounded time
//
// A kept connection may die at any moment, also just after it was looked at; whoever takes one
// must be ready for that. Once a second the pool closes those that were idle for too long or that
// the upstream has closed.
//
// Bound: connections in use and kept together are at most `max_connections`. For one thread.
#pragma once

#include <coroutine>
#include <cstddef>
#include <list>
#include <memory>
#include <vector>

#include "sluice/base/time.h"
#include "sluice/net/address.h"
#include "sluice/net/deadlines.h"
#include "sluice/net/http1_stream.h"

namespace sluice::gateway {

class UpstreamPool {
 public:
  struct Options {
    std::vector<std::vector<net::tcp::endpoint>> endpoints;  // of each upstream, tried in order
    std::size_t max_connections = 1;                         // of this loop, in use and kept
    std::size_t max_idle = 0;                                // of these, kept
    Duration idle_timeout{0};
  };
  using Connection = std::unique_ptr<net::Http1Stream>;

  // One request's claim to a connection.
  class Place;

  UpstreamPool(net::EventLoop& loop, Options options);
  ~UpstreamPool();

  // False: nothing became free within `patience`, or the place was given up.
  net::Task<bool> Enter(Place& place, Duration patience);
  // With this a waiting Enter() ends.
  void GiveUp(Place& place);
  // After an Enter() that succeeded, once the connection was kept or dropped.
  void Leave();

  // A kept connection to this upstream; null if there is none. One that was closed meanwhile is
  // passed over, and so is one on which bytes came that nobody asked for: they are not the next
  // answer.
  Connection TakeIdle(std::size_t upstream);
  // A connection that is not open yet, for one Connect() to one of endpoints().
  Connection Make();
  [[nodiscard]] const std::vector<net::tcp::endpoint>& endpoints(std::size_t upstream) const {
    return options_.endpoints[upstream];
  }
  // For the next request to this upstream. The connection must be between two messages.
  void Keep(Connection connection, std::size_t upstream);

  // Closes what is kept, keeps nothing from now on.
  void Close();

 private:
  struct Kept {
    Connection connection;
    std::size_t upstream;
    std::uint64_t since;  // in sweeps
  };
  class Sweeper final : public net::Deadline {
   public:
    explicit Sweeper(UpstreamPool& pool);
    void OnDeadline() override;

   private:
    UpstreamPool& pool_;
  };

  void Sweep();
  void Resume(Place& place);

  net::EventLoop& loop_;
  const Options options_;
  std::size_t in_use_ = 0;
  std::vector<Kept> idle_;  // the one used last is the last
  std::list<Place*> waiting_;
  std::uint64_t sweeps_ = 0;
  bool closed_ = false;
  Sweeper sweeper_;
};

class UpstreamPool::Place final : public net::Deadline {
 public:
  Place(net::EventLoop& loop, UpstreamPool& pool) : Deadline(loop.deadlines()), pool_(pool) {}
  void OnDeadline() override { pool_.GiveUp(*this); }

 private:
  friend class UpstreamPool;
  struct Turn;  // waits for it

  UpstreamPool& pool_;
  std::list<Place*>::iterator in_line_;
  std::coroutine_handle<> waiter_;
  bool granted_ = false;
};

}  // namespace sluice::gateway
