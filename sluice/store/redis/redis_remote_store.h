// A store in Redis as the operator sees it, be it in one server or in many.
#pragma once

#include "sluice/store/redis/redis_counters.h"
#include "sluice/store/redis/redis_health.h"
#include "sluice/store/remote_store.h"

namespace sluice::redis {

class RedisRemoteStore : public RemoteStore {
 public:
  [[nodiscard]] absl::StatusOr<std::shared_ptr<const RemoteLimit>> Prepare(
      const Limit& limit) const final;

  // From any thread, both.
  [[nodiscard]] virtual const RedisCounters& counters() const = 0;
  [[nodiscard]] virtual RedisHealth health() const = 0;
};

}  // namespace sluice::redis
