// One rule of the configuration, compiled: who it meets, whom it counts, and how much it allows.
//
//   - name: api                       name
//     match: { path: /v1/** }         match, exempt
//     key: api_key                    key, on_missing_key
//     limit: 100/min                  limits[0]
//     plans: { pro: ... }             limits[1..], chosen by the caller's plan
//     block_for: 15m                  block_for
//
// Immutable once it is in a RuleSet. What a field means for a user stands in docs/configuration.md.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/algorithm/limit.h"
#include "sluice/base/ip.h"
#include "sluice/base/time.h"
#include "sluice/rule/path_pattern.h"
#include "sluice/rule/source.h"

namespace sluice {

// All of what is given must hold; of several values in one field, one.
struct Match {
  struct Header {
    std::string name;
    // The value must be one of these; empty: the header must be there, with any value.
    std::vector<std::string> values;
  };
  std::vector<std::string> methods;
  std::vector<PathPattern> paths;
  std::vector<std::string> hosts;  // lower case, without port; "*.example.com" matches below it
  std::vector<Header> headers;
  std::vector<IpPrefix> clients;  // the client's address, before any IPv6 prefix is cut

  [[nodiscard]] bool empty() const {
    return methods.empty() && paths.empty() && hosts.empty() && headers.empty() && clients.empty();
  }
};

enum class RuleMode : std::uint8_t {
  kEnforce,
  kShadow,  // decides and records, never denies
};

// What to do with a request in which a part of the key is missing.
enum class OnMissingKey : std::uint8_t {
  kDeny,      // 401; nothing is charged
  kSkip,      // the rule does not meet this request
  kFallback,  // another source in its place, in counters of its own
};

struct Cost {
  std::uint64_t fixed = 1;  // also where the header is missing or no number
  // A request header with a whole number, at most `max`; a larger number counts as `max`.
  std::optional<Source> header;
  std::uint64_t max = 0;
};

// Where a rule's counters lie when there is a shared store.
enum class RuleScope : std::uint8_t {
  kShared,
  kNode,  // each node counts for itself, its share of the limit (node.count)
};

// What a rule whose counters are shared says while the store does not answer.
enum class OnStoreFailure : std::uint8_t {
  kOpen,    // the request passes, as far as this rule is concerned
  kClosed,  // it is denied
  kLocal,   // this node counts for itself meanwhile
};

// As the configuration calls them.
[[nodiscard]] std::string_view ToString(RuleScope scope);
[[nodiscard]] std::string_view ToString(OnStoreFailure failure);

// Units that a node takes from the shared store in bulk, where a key is hot.
struct RuleLease {
  std::uint64_t most = 0;  // of one lease; 0: as many as are wanted
  Duration length{0};      // of one lease; 0: by the limit
};

struct RuleLimit {
  std::string plan;  // empty: the rule's own numbers
  Limit limit;
  // kLocal: what this node allows by itself, where that is a part of the limit. Empty: all of it.
  std::optional<Limit> local;
};

struct Rule {
  std::string name;  // printable ASCII, unique in its RuleSet
  Match match;       // empty: every request
  std::vector<Match> exempt;
  std::vector<Source> key;  // in the order written; { kGlobal } counts everybody together
  OnMissingKey on_missing_key = OnMissingKey::kDeny;
  Source fallback;  // kFallback only
  Cost cost;
  bool deny = false;  // denies every request that it meets; has no limit then
  bool charge_denied = false;
  // Whoever was denied for want of room stays out for so long (limiter/blocks.h). 0: only as long
  // as there is no room.
  Duration block_for{0};
  RuleMode mode = RuleMode::kEnforce;
  RuleScope scope = RuleScope::kShared;
  OnStoreFailure on_store_failure = OnStoreFailure::kLocal;
  std::optional<RuleLease> lease;  // nothing: each request asks the shared store
  bool hide = false;               // clients are not told of it
  std::string message;             // for the denied client; empty: a default
  Duration retry_jitter{0};        // at most so much is added to the wait that it is told
  std::vector<RuleLimit> limits;   // [0] is the rule's own; empty exactly when `deny`

  // A caller sees its own traffic alone: some part of the key names the caller. Rules keyed
  // `global` or by route, method, host or region count others' traffic too and stay out of the
  // RateLimit fields.
  [[nodiscard]] bool KeyedByCaller() const;
};

}  // namespace sluice
