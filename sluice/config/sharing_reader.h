// `scope`, `on_store_failure` and `lease` of a rule: where its counters lie among several nodes,
// what it says while the shared store does not answer, and whether units are taken from there in
// bulk.
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

// Takes `scope` and `on_store_failure`. Needs `rule.mode`.
Shares ReadSharing(Fields& fields, const StoreContext& store, Rule& rule);

// Takes `lease`. Needs all else of the rule.
void ReadLease(Fields& fields, Rule& rule);

// `1/2`, or 1: more than 0, at most 1, of whole numbers up to 1,000,000. Complains otherwise.
std::optional<Part> ReadPart(const Value& value);

}  // namespace sluice::config
