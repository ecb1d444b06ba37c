#include "sluice/net/internal/redis_queue.h"

#include <algorithm>
#include <cassert>
#include <utility>

namespace sluice::net::internal {

RedisQueue::RedisQueue(std::size_t max_waiting, std::size_t max_unsent_bytes)
    : ring_(max_waiting), max_unsent_bytes_(max_unsent_bytes) {
  assert(max_waiting > 0);
}

bool RedisQueue::Push(std::string_view command, std::uint32_t replies, Time deadline, Done& done) {
  assert(replies > 0 && done);
  if (size_ == ring_.size()) return false;
  if (command.size() > max_unsent_bytes_ - unsent_.size()) return false;
  At(size_) = {std::move(done), deadline, command.size(), replies};
  ++size_;
  unsent_.append(command);
  return true;
}

void RedisQueue::TakeUnsent(std::string* bytes) {
  bytes->clear();
  if (unwanted_ == 0) {
    bytes->swap(unsent_);
  } else {
    DropUnwanted(bytes);
    unsent_.clear();
  }
  in_flight_ = size_;
}

// Closes the gaps among those that are unsent.
void RedisQueue::DropUnwanted(std::string* bytes) {
  std::size_t at = 0;
  std::size_t kept = in_flight_;
  for (std::size_t i = in_flight_; i < size_; ++i) {
    Waiting& waiting = At(i);
    const std::string_view command = std::string_view(unsent_).substr(at, waiting.bytes);
    at += waiting.bytes;
    if (!waiting.done) continue;
    bytes->append(command);
    if (kept != i) At(kept) = std::move(waiting);
    ++kept;
  }
  size_ = kept;
  unwanted_ = 0;
}

RedisQueue::Done RedisQueue::Pop() {
  Done done = std::exchange(At(0).done, nullptr);
  head_ = (head_ + 1) % ring_.size();
  --size_;
  if (in_flight_ > 0) --in_flight_;
  return done;
}

bool RedisQueue::Deliver(RedisReply reply) {
  if (in_flight_ == 0) return false;
  if (--At(0).replies > 0) return true;
  Done done = Pop();
  if (done) done(std::move(reply));
  return true;
}

Time RedisQueue::Expire(Time now) {
  Time next = Time::max();
  for (std::size_t i = 0; i < size_; ++i) {
    Waiting& waiting = At(i);
    if (!waiting.done) continue;
    if (waiting.deadline > now) {
      next = std::min(next, waiting.deadline);
      continue;
    }
    if (i >= in_flight_) ++unwanted_;
    Done done = std::exchange(waiting.done, nullptr);
    done(absl::DeadlineExceededError("no answer in time"));
  }
  return next;
}

void RedisQueue::FailAll(const absl::Status& status) {
  unsent_.clear();
  unwanted_ = 0;
  while (size_ > 0) {
    Done done = Pop();
    if (done) done(status);
  }
}

}  // namespace sluice::net::internal
