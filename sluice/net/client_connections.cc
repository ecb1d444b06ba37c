#include "sluice/net/client_connections.h"

#include "absl/hash/hash.h"

namespace sluice::net {

ClientConnections::Shard& ClientConnections::ShardOf(const Key& key) {
  return shards_[absl::Hash<Key>()(key) % kShards];
}

std::optional<ClientConnections::Pass> ClientConnections::Enter(IpAddress client) {
  const Key key = client.bytes();
  Shard& shard = ShardOf(key);
  const std::lock_guard lock(shard.mutex);
  std::size_t& open = shard.open[key];
  if (open >= most_each_) return std::nullopt;
  ++open;
  return Pass(*this, client);
}

void ClientConnections::Leave(IpAddress client) {
  const Key key = client.bytes();
  Shard& shard = ShardOf(key);
  const std::lock_guard lock(shard.mutex);
  const auto found = shard.open.find(key);
  if (--found->second == 0) shard.open.erase(found);
}

std::size_t ClientConnections::clients() const {
  std::size_t sum = 0;
  for (const Shard& shard : shards_) {
    const std::lock_guard lock(shard.mutex);
    sum += shard.open.size();
  }
  return sum;
}

}  // namespace sluice::net
