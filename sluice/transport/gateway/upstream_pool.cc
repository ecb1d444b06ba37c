#include "sluice/transport/gateway/upstream_pool.h"

#include <chrono>
#include <utility>

namespace sluice::gateway {
namespace {

constexpr auto kSweepEvery = std::chrono::seconds(1);

}  // namespace

UpstreamPool::UpstreamPool(net::EventLoop& loop, const UpstreamPlaces& places, Options options)
    : loop_(loop), places_(places), options_(options), sweeper_(*this, loop.deadlines()) {}

UpstreamPool::Connection UpstreamPool::TakeIdle(std::size_t upstream) {
  for (std::size_t i = idle_.size(); i-- > 0;) {
    if (idle_[i].connection->upstream() != upstream) continue;
    Connection connection = std::move(idle_[i].connection);
    idle_.erase(idle_.begin() + static_cast<std::ptrdiff_t>(i));
    if (connection->Quiet()) return connection;
  }
  return nullptr;
}

UpstreamPool::Connection UpstreamPool::Make(std::size_t upstream,
                                            const net::tcp::endpoint& endpoint,
                                            std::shared_ptr<net::TlsPeer> peer) {
  Trim();
  return std::make_unique<UpstreamConnection>(loop_, upstream, endpoint, std::move(peer));
}

void UpstreamPool::Trim() {
  while (!idle_.empty() && places_.in_use() + idle_.size() > places_.max()) {
    idle_.erase(idle_.begin());
  }
}

void UpstreamPool::Keep(Connection connection) {
  if (closed_ || options_.max_idle == 0) return;
  Trim();
  if (places_.in_use() > places_.max()) return;  // there were more when its request came
  if (idle_.size() >= options_.max_idle) idle_.erase(idle_.begin());
  connection->Clear();
  if (idle_.empty()) sweeper_.Set(kSweepEvery);
  idle_.push_back({std::move(connection), sweeps_});
}

void UpstreamPool::Close() {
  closed_ = true;
  idle_.clear();
}

void UpstreamPool::Sweep() {
  ++sweeps_;
  const auto limit = static_cast<std::uint64_t>(options_.idle_timeout / kSweepEvery);
  std::erase_if(idle_, [&](const Kept& kept) {
    return sweeps_ - kept.since > limit || !kept.connection->Quiet();
  });
  if (!idle_.empty()) sweeper_.Set(kSweepEvery);
}

}  // namespace sluice::gateway
