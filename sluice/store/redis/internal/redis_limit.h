// A limit that Prepare() made.
#pragma once

#include <memory>
#include <utility>

#include "sluice/store/redis/script_limit.h"
#include "sluice/store/remote_store.h"

namespace sluice::redis {

class RedisLimit final : public RemoteLimit {
 public:
  explicit RedisLimit(ScriptLimit limit) : script_(std::move(limit)) {}

  [[nodiscard]] const Limit& limit() const override { return script_.limit(); }
  [[nodiscard]] const ScriptLimit& script() const { return script_; }

  // Of what came from a claim: this store was given none but its own.
  static const RedisLimit& Of(const RemoteLimit& limit) {
    return static_cast<const RedisLimit&>(limit);
  }

 private:
  const ScriptLimit script_;
};

}  // namespace sluice::redis
