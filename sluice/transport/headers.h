// What an answer tells about limits, in header fields: RateLimit-Policy and RateLimit as in
// draft-ietf-httpapi-ratelimit-headers-11, and Retry-After (RFC 9110, 10.2.3).
//
//   RateLimit-Policy: "api";q=100;w=60, "exports";q=2;qu="concurrent-requests"
//   RateLimit: "api";r=37;t=23, "exports";r=1
//   Retry-After: 23
//
//   q, w    the limit's quota and window in seconds (CapacityOf, WindowOf); no w for concurrency
//   r       what is left, at most q
//   t       allowed, or a cost that can never be met: until all is there again (reset_after);
//           denied by this rule: until the same request passes (retry_after); left out where nobody
//           can know it (concurrency without a time to live)
//
// Shown are the rules that count the caller's own traffic, the tightest first, the one that denies
// before all others. Not shown: rules that count others' traffic too (keyed `global`, by route,
// ...), shadow rules, and rules marked `hide`.
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

namespace sluice::transport {

// One item of each field.
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
  // Not `shown` (`headers: [none]`): only what an upstream said in these fields passes.
  explicit RateLimitFields(bool shown = true) : shown_(shown) {}

  // Appends RateLimit-Policy and RateLimit lines, each with its CRLF; nothing when no rule is
  // shown. `more_policies` and `more_limits` are what an upstream said in the same fields; they
  // follow ours in the same line: without them the client would believe that it has more room than
  // it has.
  void Append(const Outcome& outcome, std::string_view more_policies, std::string_view more_limits,
              std::string* out);
  void Append(const Outcome& outcome, std::string* out) { Append(outcome, {}, {}, out); }

 private:
  struct Texts {
    bool shown = false;
    std::string name;                   // quoted
    std::vector<std::string> policies;  // of each limit of the rule
  };

  void Prepare(const Outcome& outcome);
  void Select(const Outcome& outcome);
  void AppendLine(std::string_view field, const Outcome& outcome, bool policy,
                  std::string_view more, std::string* out) const;

  bool shown_;
  std::shared_ptr<const ActiveRules> rules_;  // of these are the texts
  std::vector<Texts> texts_;                  // of each rule
  std::vector<const RuleResult*> selected_;   // of the outcome at hand
};

}  // namespace sluice::transport
