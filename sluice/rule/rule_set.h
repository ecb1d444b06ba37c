// All rules of one generation, compiled and immutable: from a request's attributes to the rules
// that it meets and the key under which each of them counts it.
//
//   request ──> client address, normal path, plan (each found once, when a rule first asks)
//           ──> for each rule in order: match? exempt? ──> key parts ──> key bytes, limit, cost
//
// A path with two readings (rule/path.h) is met by a rule in either, and exempt only in both. A
// path that can't be normalised is in the way of every path pattern of a rule and of no exemption.
//
// Key bytes: the rule's name, then for each part a length and its bytes. Lengths come first, so no
// separator inside a value can make two keys equal; the rule's numbers are not in it, so counters
// survive a change of the numbers.
//
// Cost: linear in the number of rules; no allocation once the scratch has grown to its size.
// Thread-safety: any number of threads, each with a scratch of its own.
#pragma once

#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "sluice/base/bytes.h"
#include "sluice/rule/client_address.h"
#include "sluice/rule/plan_table.h"
#include "sluice/rule/request.h"
#include "sluice/rule/rule.h"

namespace sluice {

struct RuleSetOptions {
  ClientAddressOptions client_address;  // trusted proxies and the forwarding header to believe
  int ipv6_prefix = 64;
  std::string region;  // node.region
  PlanTable plans;     // who has which plan
};

enum class MatchOutcome : std::uint8_t {
  kCounts,      // has a key, a limit and a cost
  kMissingKey,  // a key part is missing and on_missing_key is deny
  kDenies,      // a rule with `deny: true`
};

// Who answered for a rule that counts.
enum class AnsweredBy : std::uint8_t {
  kStore,
  kNobody,  // not asked: another rule had denied the request before
  kLease,   // what this node had leased of the shared store (store/lease/leases.h)
  kMemory,  // this node remembers that the shared store has denied it (limiter/denial_memory.h)
  // The shared store did not answer, so what the rule says then (OnStoreFailure) did.
  kOpen,
  kClosed,
  kLocal,
};

// Where a key's bytes lie in the scratch: Scratch::BytesOf.
struct KeySpan {
  std::size_t begin = 0;
  std::size_t size = 0;
};

// A rule that met a request, and what came of it.
struct RuleResult {
  const Rule* rule = nullptr;
  MatchOutcome match = MatchOutcome::kCounts;
  AnsweredBy answered_by = AnsweredBy::kStore;  // set by the limiter
  std::uint32_t rule_index = 0;
  std::uint32_t limit_index = 0;  // into rule->limits
  // Index into Outcome::claims, set by the limiter; -1 when no counter answered.
  std::int32_t claim = -1;
  const Source* missing = nullptr;  // kMissingKey: the part of the key that is missing
  std::uint64_t cost = 0;
  KeySpan key;  // in the scratch, until its Clear()
};

class RuleSet {
 public:
  // What one request's evaluation needs to keep meanwhile; reuse one for each thread.
  class Scratch;

  // `rules` as the configuration compiled them; names are unique.
  RuleSet(std::vector<Rule> rules, RuleSetOptions options, std::uint64_t generation);
  ~RuleSet();
  RuleSet(const RuleSet&) = delete;
  RuleSet& operator=(const RuleSet&) = delete;

  // Appends the rules that meet `request`, in order; of an exempt one, those with `deny: true`.
  // Their keys gather in the scratch until its Clear().
  void Evaluate(const LimitRequest& request, Scratch& scratch,
                std::vector<RuleResult>& results) const;

  [[nodiscard]] const std::vector<Rule>& rules() const { return rules_; }
  [[nodiscard]] const RuleSetOptions& options() const { return options_; }
  // Counts up with each reload; the first is 1.
  [[nodiscard]] std::uint64_t generation() const { return generation_; }

  // Why a rule meets a request or does not, and with which key: for `sluice explain`.
  struct Explanation {
    const Rule* rule = nullptr;
    bool meets = false;
    // Why not: "path does not match", "exempt by entry 2", "api_key is missing or ambiguous". With
    // `meets`: why it denies without counting. Empty: it counts the request.
    std::string reason;
    std::vector<std::string> key;  // "api_key=ann": label and value, as they were sent
    const RuleLimit* limit = nullptr;
    std::uint64_t cost = 0;
  };
  [[nodiscard]] std::vector<Explanation> Explain(const LimitRequest& request) const;
  // The client's address, the normal path and the plan, as the rules see them.
  struct Caller {
    IpAddress client;
    std::string path;
    std::string plan;
  };
  [[nodiscard]] Caller Identify(const LimitRequest& request) const;

 private:
  class Evaluation;
  static void ExplainKey(const Rule& rule, Evaluation& evaluation, const PathPattern* route,
                         Explanation& told);

  std::vector<Rule> rules_;
  std::vector<std::string> key_prefixes_;  // of each rule: its name with its length
  RuleSetOptions options_;
  std::uint64_t generation_;
};

class RuleSet::Scratch {
 public:
  void Clear() { keys_size_ = 0; }
  // Good until the next Clear; a pointer into it until the next Evaluate.
  [[nodiscard]] std::string_view BytesOf(KeySpan key) const {
    return {keys_.data() + key.begin, key.size};
  }

 private:
  friend class RuleSet;
  friend class Evaluation;

  void AppendKeyBytes(std::string_view bytes) {
    MakeRoom(bytes.size());
    CopyBytes(keys_.data() + keys_size_, bytes);
    keys_size_ += bytes.size();
  }
  // A length, then the bytes. The top bit of the length tells a fallback part from another part of
  // the same bytes.
  void AppendKeyPart(std::string_view bytes, bool fallback) {
    const std::uint32_t length =
        static_cast<std::uint32_t>(bytes.size()) | (fallback ? std::uint32_t{1} << 31 : 0);
    MakeRoom(sizeof length + bytes.size());
    char* const at = keys_.data() + keys_size_;
    std::memcpy(at, &length, sizeof length);
    CopyBytes(at + sizeof length, bytes);
    keys_size_ += sizeof length + bytes.size();
  }
  void MakeRoom(std::size_t size) {
    if (keys_.size() - keys_size_ < size) [[unlikely]] {
      keys_.resize(2 * keys_.size() + size);
    }
  }

  // The key bytes of all matched rules, one after another, in the first keys_size_ bytes. Not a
  // string: its append is most of the cost of a short key.
  std::vector<char> keys_;
  std::size_t keys_size_ = 0;
  std::vector<char> path_;  // the normal path, where it had to be changed
  std::string value_;       // a decoded value
  std::string host_;
};

}  // namespace sluice
