// `scope` and `on_store_failure` of a rule: where its counters lie among several nodes, and what it
// says while the shared store does not answer.
#pragma once

#include <cstdint>

#include "sluice/config/fields.h"
#include "sluice/config/limit_reader.h"
#include "sluice/rule/rule.h"

namespace sluice::config {

// What the rest of the file says of it.
struct StoreContext {
  bool has_redis = false;  // `store.redis`
  std::int64_t nodes = 1;  // `node.count`
};

// Takes both fields. Needs `rule.mode`.
Shares ReadSharing(Fields& fields, const StoreContext& store, Rule& rule);

// `1/2`, or 1: more than 0, at most 1, of whole numbers up to 1,000,000. Complains otherwise.
std::optional<Part> ReadPart(const Value& value);

}  // namespace sluice::config
