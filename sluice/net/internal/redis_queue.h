// Who waits for what on a connection to Redis: replies come in the order of the commands, so this
// is one queue.
//
//   head                                              tail
//    | sent, not answered (in flight) |    unsent      |   a ring of fixed size
//    ^ Deliver()                      ^ TakeUnsent()   ^ Push()
//
// Somebody whose deadline passes is told at once. If the command was sent, an empty place stays, so
// that the late reply is known when it comes, and dropped; if not, it will not be sent.
//
// Guarantee: each `done` is called exactly once, and never by Push(). It may push more, and may
// even fail all the others: a function that calls it does not rely on anything afterwards.
// Cost: nothing is allocated after the start, as far as `done` is small and the bytes of a turn are
// no more than ever before. For one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/statusor.h"
#include "sluice/base/time.h"
#include "sluice/net/redis_reply.h"

namespace sluice::net::internal {

class RedisQueue {
 public:
  using Done = absl::AnyInvocable<void(absl::StatusOr<RedisReply>)>;

  // `max_waiting` of both kinds, the empty places too; bytes of those that are unsent.
  RedisQueue(std::size_t max_waiting, std::size_t max_unsent_bytes);
  RedisQueue(const RedisQueue&) = delete;
  RedisQueue& operator=(const RedisQueue&) = delete;

  // False: it is full, and `done` was not taken.
  bool Push(std::string_view command, std::uint32_t replies, Time deadline, Done& done);

  [[nodiscard]] bool has_unsent() const { return in_flight_ < size_; }
  [[nodiscard]] std::size_t in_flight() const { return in_flight_; }
  [[nodiscard]] std::size_t size() const { return size_; }

  // Replaces what is in `bytes` by all commands that are unsent and still wanted. They are in
  // flight from then on.
  void TakeUnsent(std::string* bytes);

  // A reply has come. False: no command is in flight that it could be for.
  bool Deliver(RedisReply reply);

  // Tells those whose deadline is not after `now`, in order. The result is the next deadline,
  // Time::max() if there is none.
  Time Expire(Time now);

  // Tells all, in order, and empties the queue.
  void FailAll(const absl::Status& status);

 private:
  struct Waiting {
    Done done;  // null: an empty place
    Time deadline;
    std::size_t bytes = 0;      // of the command, while it is unsent
    std::uint32_t replies = 0;  // that have not come yet
  };

  [[nodiscard]] Waiting& At(std::size_t index) { return ring_[(head_ + index) % ring_.size()]; }
  Done Pop();
  void DropUnwanted(std::string* bytes);

  std::vector<Waiting> ring_;
  const std::size_t max_unsent_bytes_;
  std::size_t head_ = 0;
  std::size_t size_ = 0;
  std::size_t in_flight_ = 0;  // of them
  std::size_t unwanted_ = 0;   // empty places among the unsent
  std::string unsent_;
};

}  // namespace sluice::net::internal
