// A store in Redis as the suite sees a store: each call waits for its answer, and brings its own
// time.
//
// The store runs on a loop of its own against a redis-server of its own, with the script whose
// clock a test can set; or, behind a SplitStore, against a cluster. That one has a single server,
// since the script finds the clock's key on it alone; but each key of a request is asked for by
// itself, since in a cluster of any size it may lie in a slot of its own. A call sets that clock
// and waits until the script has run, one call at a time; so threads of the suite meet in it as
// they would meet on the server. The server has one clock: its wall time, in whole microseconds.
// Before 2025 it knows no time: the suite's is moved on by 56 years, at whose end the days of the
// week and of the month are as they were.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sluice/base/clock.h"
#include "sluice/net/event_loops.h"
#include "sluice/net/testing/redis_server.h"
#include "sluice/store/redis/redis_remote_store.h"
#include "sluice/store/split_store.h"
#include "sluice/store/store.h"

namespace sluice::conformance {

class RemoteAsStore final : public Store {
 public:
  enum class Of : std::uint8_t { kServer, kCluster };
  explicit RemoteAsStore(Of of);
  RemoteAsStore(const RemoteAsStore&) = delete;
  RemoteAsStore& operator=(const RemoteAsStore&) = delete;
  ~RemoteAsStore() override;

  // Whether the server's clock can show it.
  static bool Shows(Now now);

  // The bytes are the key's in Redis; the hash stands for them in a claim.
  Hash128 KeyOf(std::string_view name);

  absl::StatusOr<LimitId> Register(const Limit& limit) override;
  void Release(LimitId id, Now now) override;
  void Apply(std::span<ClaimGroup> groups, Now now) noexcept override;
  void Undo(Claim& claim, std::uint64_t units, Now now) noexcept override;
  // What a remote store does not tell: true whenever there is something to renew.
  bool Renew(const Claim& claim, Now now) noexcept override;

 private:
  using LimitPtr = std::shared_ptr<const RemoteLimit>;
  void SetTime(Now now);
  [[nodiscard]] RemoteClaim RemoteOf(const Claim& claim);
  void AskAndWait(std::vector<RemoteGroup>& groups);
  // `work` on the loop, and waits until all that it asked for has been carried out.
  void DoAndWait(const std::function<void(RemoteStore&)>& work);
  [[nodiscard]] RemoteStore& asked() {
    return split_ ? *split_ : static_cast<RemoteStore&>(*store_);
  }

  const HashKey hash_key_;
  std::mutex keys_mutex_;
  std::map<std::pair<std::uint64_t, std::uint64_t>, std::string> keys_;  // by hash

  std::mutex calls_mutex_;  // one at a time; guards what follows
  std::vector<LimitPtr> limits_;
  LimitPtr any_limit_;
  std::optional<net::testing::RedisServer> server_;
  std::optional<net::testing::RawRedis> clock_connection_;
  SystemClock clock_;
  net::EventLoops loops_{1};
  std::unique_ptr<redis::RedisRemoteStore> store_;
  std::optional<SplitStore> split_;

  std::mutex told_mutex_;
  std::condition_variable told_;
  std::size_t due_ = 0;  // answers
};

}  // namespace sluice::conformance
