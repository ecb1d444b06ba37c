#include "sluice/transport/gateway/upstream_pool.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace sluice::gateway {
namespace {

constexpr auto kSweepEvery = std::chrono::seconds(1);

}  // namespace

struct UpstreamPool::Place::Turn {
  Place& place;
  bool await_ready() const { return false; }
  void await_suspend(std::coroutine_handle<> waiter) const { place.waiter_ = waiter; }
  bool await_resume() const { return place.granted_; }
};

UpstreamPool::Sweeper::Sweeper(UpstreamPool& pool)
    : Deadline(pool.loop_.deadlines()), pool_(pool) {}

void UpstreamPool::Sweeper::OnDeadline() { pool_.Sweep(); }

UpstreamPool::UpstreamPool(net::EventLoop& loop, Options options)
    : loop_(loop), options_(std::move(options)), sweeper_(*this) {}

UpstreamPool::~UpstreamPool() = default;

net::Task<bool> UpstreamPool::Enter(Place& place, Duration patience) {
  if (in_use_ < options_.max_connections) {
    ++in_use_;
    co_return true;
  }
  place.granted_ = false;
  place.in_line_ = waiting_.insert(waiting_.end(), &place);
  place.Set(patience);
  co_return co_await Place::Turn{place};
}

void UpstreamPool::GiveUp(Place& place) {
  if (!place.waiter_) return;
  waiting_.erase(place.in_line_);
  Resume(place);
}

void UpstreamPool::Resume(Place& place) {
  place.Clear();
  // Not from here: whoever calls is in the midst of its own work.
  loop_.Post([waiter = std::exchange(place.waiter_, nullptr)] { waiter.resume(); });
}

void UpstreamPool::Leave() {
  if (waiting_.empty()) {
    --in_use_;
    return;
  }
  // The place changes hands; it never becomes free in between.
  Place& next = *waiting_.front();
  waiting_.pop_front();
  next.granted_ = true;
  Resume(next);
}

UpstreamPool::Connection UpstreamPool::TakeIdle(std::size_t upstream) {
  for (std::size_t i = idle_.size(); i-- > 0;) {
    if (idle_[i].upstream != upstream) continue;
    Connection connection = std::move(idle_[i].connection);
    idle_.erase(idle_.begin() + static_cast<std::ptrdiff_t>(i));
    if (!connection->Readable()) return connection;
  }
  return nullptr;
}

UpstreamPool::Connection UpstreamPool::Make() {
  if (!idle_.empty() && in_use_ + idle_.size() > options_.max_connections) {
    idle_.erase(idle_.begin());
  }
  return std::make_unique<net::Http1Stream>(loop_, net::Socket(loop_.context()));
}

void UpstreamPool::Keep(Connection connection, std::size_t upstream) {
  if (closed_ || options_.max_idle == 0) return;
  if (idle_.size() >= options_.max_idle) idle_.erase(idle_.begin());
  connection->Clear();
  if (idle_.empty()) sweeper_.Set(kSweepEvery);
  idle_.push_back({std::move(connection), upstream, sweeps_});
}

void UpstreamPool::Close() {
  closed_ = true;
  idle_.clear();
}

void UpstreamPool::Sweep() {
  ++sweeps_;
  const auto limit = static_cast<std::uint64_t>(options_.idle_timeout / kSweepEvery);
  std::erase_if(idle_, [&](const Kept& kept) {
    return sweeps_ - kept.since > limit || kept.connection->Readable();
  });
  if (!idle_.empty()) sweeper_.Set(kSweepEvery);
}

}  // namespace sluice::gateway
