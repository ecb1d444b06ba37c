// The connections of one loop to all upstreams that are kept open between requests.
//
//   TakeIdle(), or connect anew -> Keep() or drop
//      ^ the one used last: the others can grow cold and be closed
//
// A kept connection may die at any moment, also just after it was looked at; whoever takes one
// must be ready for that. Once a second the pool closes those that were idle for too long or that
// the upstream has closed.
//
// Bound: connections in use (upstream_places.h) and kept together are at most as many as there are
// places. For one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "sluice/base/time.h"
#include "sluice/net/address.h"
#include "sluice/net/deadlines.h"
#include "sluice/net/event_loops.h"
#include "sluice/transport/gateway/upstream_connection.h"
#include "sluice/transport/gateway/upstream_places.h"

namespace sluice::gateway {

class UpstreamPool {
 public:
  struct Options {
    std::size_t max_idle = 0;  // of this loop
    Duration idle_timeout{0};
  };
  using Connection = std::unique_ptr<UpstreamConnection>;

  // `places` outlive the pool.
  UpstreamPool(net::EventLoop& loop, const UpstreamPlaces& places, Options options);

  // A kept connection to this upstream; null if there is none. One that was closed meanwhile is
  // passed over, and so is one on which bytes came that nobody asked for: they are not the next
  // answer.
  Connection TakeIdle(std::size_t upstream);
  // A connection that is not open yet, for whoever has a place.
  Connection Make(std::size_t upstream, const net::tcp::endpoint& endpoint,
                  std::shared_ptr<net::TlsPeer> peer);
  // For the next request to its upstream, if there is a place for it. The connection must be
  // between two messages, and its request must still have its place.
  void Keep(Connection connection);

  // Keeps no more than there are places for: there are fewer places now.
  void Trim();
  // Closes those that are kept and `gone(connection)`.
  template <class Predicate>
  void Drop(const Predicate& gone) {
    std::erase_if(idle_, [&](const Kept& kept) { return gone(*kept.connection); });
  }
  // Closes what is kept, keeps nothing from now on.
  void Close();
  [[nodiscard]] bool closed() const { return closed_; }
  [[nodiscard]] std::size_t idle() const { return idle_.size(); }

 private:
  struct Kept {
    Connection connection;
    std::uint64_t since;  // in sweeps
  };

  void Sweep();

  net::EventLoop& loop_;
  const UpstreamPlaces& places_;
  const Options options_;
  std::vector<Kept> idle_;  // the one used last is the last
  std::uint64_t sweeps_ = 0;
  bool closed_ = false;
  net::Alarm<UpstreamPool, &UpstreamPool::Sweep> sweeper_;
};

}  // namespace sluice::gateway
