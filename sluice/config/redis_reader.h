// `store.redis`: the server that keeps the counters of all nodes, and how it is spoken to.
#pragma once

#include <string>

#include "sluice/config/config.h"
#include "sluice/config/fields.h"

namespace sluice::config {

// Files are relative to `base_dir`; secrets are read here.
RedisSettings ReadRedis(const Value& value, const std::string& base_dir);

}  // namespace sluice::config
