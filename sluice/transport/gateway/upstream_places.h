// How many requests of one loop may have a connection to an upstream at once.
//
//   request -> Enter(): a place -> ... a connection, kept or new ... -> Leave()
//                 `- all taken: waits in order, for a bounded time
//
// Places belong to the loop and not to a group of upstreams (upstream_group.h): a request that ends
// under the settings before a reload holds one of the same places as those under the new settings,
// so that the bound holds for both together.
//
// For one thread.
#pragma once

#include <coroutine>
#include <cstddef>
#include <list>

#include "sluice/base/time.h"
#include "sluice/net/deadlines.h"
#include "sluice/net/event_loops.h"
#include "sluice/net/task.h"

namespace sluice::gateway {

class UpstreamPlaces {
 public:
  // One request's claim to a place.
  class Place;

  // `max`: at least 1.
  UpstreamPlaces(net::EventLoop& loop, std::size_t max) : loop_(loop), max_(max) {}

  // False: nothing became free within `patience`, or the place was given up.
  net::Task<bool> Enter(Place& place, Duration patience);
  // With this a waiting Enter() ends. Does nothing where none waits.
  void GiveUp(Place& place);
  // After an Enter() that succeeded, once the connection was kept or dropped.
  void Leave();

  // Places that are taken beyond a smaller bound are not given to others; a larger one lets in who
  // waits.
  void SetMax(std::size_t max);
  [[nodiscard]] std::size_t max() const { return max_; }
  [[nodiscard]] std::size_t in_use() const { return in_use_; }

 private:
  void LetIn();
  void Resume(Place& place);

  net::EventLoop& loop_;
  std::size_t max_;
  std::size_t in_use_ = 0;
  std::list<Place*> waiting_;
};

class UpstreamPlaces::Place final : public net::Deadline {
 public:
  Place(net::EventLoop& loop, UpstreamPlaces& places)
      : Deadline(loop.deadlines()), places_(places) {}
  void OnDeadline() override { places_.GiveUp(*this); }

 private:
  friend class UpstreamPlaces;
  struct Turn;  // waits for it

  UpstreamPlaces& places_;
  std::list<Place*>::iterator in_line_;
  std::coroutine_handle<> waiter_;
  bool granted_ = false;
};

}  // namespace sluice::gateway
