// What an answer tells about limits, in header fields: those of the dialects that were chosen
// (dialects.h), and Retry-After (RFC 9110, 10.2.3). In draft-11:
//
//   RateLimit-Policy: "api";q=100;w=60, "exports";q=2;qu="concurrent-requests"
//   RateLimit: "api";r=37;t=23, "exports";r=1
//   Retry-After: 23
//
//   q, w    the limit's quota and window in seconds (CapacityOf, WindowOf); no w for concurrency
//   r       what is left, at most q
//   t       allowed, or a cost that can never be met: until all is there again (reset_after);
//           denied by this rule: until the same request passes (retry_after, and the jitter of
//           told_wait.h); left out where nobody can know it (concurrency without a time to live)
//
// Shown are the rules that count the caller's own traffic, the tightest first, the one that denies
// before all others. Not shown: rules that count others' traffic too (keyed `global`, by route,
// ...), shadow rules, and rules marked `hide`.
//
// The older dialects have numbers for one rule alone: the first that draft-11 would show. They know
// neither names nor slots, so a rule of concurrency stands in draft-11 only. Limit, remaining and
// reset are q, r and t; x-epoch says the second in which the wait is over. What of theirs holds
// windows (RateLimit-Policy, x-ratelimit-limit) names those of all shown rules.
//
// What an upstream says in the same fields:
//   draft-11   follows ours in the same list. A text that is no list of strings is left out: it
//              would make ours unreadable.
//   the others can speak of one rule alone: of ours, unless less remains of the upstream's and it
//              is written in the same dialect; then its fields go on as they came. The two are
//              never mixed.
// Where none of our rules is shown, all that the upstream said goes on as it came.
//
// All times are rounded up to whole seconds and at least 1 where a client has to wait, so that
// whoever waits as told passes. Retry-After is never less than t. Integers are clamped to what a
// structured field may hold, 999,999,999,999,999.
//
// Cost: what does not change with the request is written once for each generation of the rules;
// a request appends bytes to a string that its connection keeps.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/algorithm/limit.h"
#include "sluice/limiter/outcome.h"
#include "sluice/transport/dialects.h"

namespace sluice::transport {

// One item of each field of draft-11.
void AppendPolicyItem(std::string_view name, const Limit& limit, std::string* out);
void AppendLimitItem(std::string_view quoted_name, const Decision& decision, const Limit& limit,
                     std::string* out);

// A string of structured fields (RFC 9651): quotes and backslashes escaped. Other bytes than
// printable ASCII do not occur in names.
[[nodiscard]] std::string QuotedName(std::string_view name);

// Whole seconds, rounded up. Nothing for kUnknown and kNever.
[[nodiscard]] std::optional<std::uint64_t> CeilSeconds(Duration wait);

// What Retry-After says; nothing when the outcome is no denial, or no wait helps or is known.
[[nodiscard]] std::optional<std::uint64_t> RetryAfterSeconds(const Outcome& outcome);

// Writes the fields of outcomes. For one thread.
class RateLimitFields {
 public:
  // Without any dialect nothing is written, and what an upstream says passes untouched.
  explicit RateLimitFields(HeaderDialects dialects) : dialects_(dialects) {}

  // Whether these fields write this one, too. Then the upstream's value is remembered in `*said`,
  // for Append().
  bool Take(std::string_view name, std::string_view value, UpstreamLimits* said) const;

  // Appends the lines, each with its CRLF; nothing when no rule is shown and nothing was said.
  void Append(const Outcome& outcome, const UpstreamLimits& said, std::string* out);
  void Append(const Outcome& outcome, std::string* out);

 private:
  struct Policy {
    std::string named;  // an item of draft-11
    std::string plain;  // of the older dialects; empty: they have no words for it
  };
  struct Texts {
    bool shown = false;
    std::string name;              // quoted
    std::vector<Policy> policies;  // of each limit of the rule
  };
  // The rule of which the older dialects speak.
  struct One {
    std::uint64_t limit = 0;
    std::uint64_t remaining = 0;
    std::uint64_t reset = 0;        // seconds from now
    std::uint64_t reset_epoch = 0;  // the same since 1970
  };

  void Prepare(const Outcome& outcome);
  void Select(const Outcome& outcome);
  [[nodiscard]] const Policy& PolicyOf(const RuleResult& result) const {
    return texts_[result.rule_index].policies[result.limit_index];
  }
  [[nodiscard]] std::optional<One> SelectOne(const Outcome& outcome) const;
  void AppendLists(const Outcome& outcome, const UpstreamLimits& said, std::string* out) const;
  void AppendOlderDrafts(const std::optional<One>& one, const UpstreamLimits& said,
                         std::string* out) const;
  void AppendX(const std::optional<One>& one, const UpstreamLimits& said, std::string* out) const;
  void AppendPlainPolicies(bool first, std::string* out) const;

  const HeaderDialects dialects_;
  std::shared_ptr<const ActiveRules> rules_;  // of these are the texts
  std::vector<Texts> texts_;                  // of each rule
  std::vector<const RuleResult*> selected_;   // of the outcome at hand
};

}  // namespace sluice::transport
