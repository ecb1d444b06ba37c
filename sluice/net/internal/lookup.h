// Finds what a name stands for without holding the loop up: a thread asks.
//
// A resolver blocks for as long as it likes. Who has no patience gives up; the thread is left
// behind then and ends by itself. For one loop.
#pragma once

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "sluice/net/address.h"
#include "sluice/net/event_loops.h"
#include "sluice/net/task.h"

namespace sluice::net::internal {

class Lookup {
 public:
  explicit Lookup(EventLoop& loop) : loop_(loop) {}

  // One at a time. Errors: as net::Resolve; kCancelled after GiveUp(); kResourceExhausted when
  // there is no thread to be had.
  Task<absl::StatusOr<std::vector<tcp::endpoint>>> Find(HostPort name);
  // Ends Find(), soon.
  void GiveUp();

 private:
  struct Question;

  EventLoop& loop_;
  std::shared_ptr<Question> question_;  // null: nobody waits
};

}  // namespace sluice::net::internal
