// What a denied client reads: the status, the body in the form that was chosen, and the header
// fields that go with it. The same for every HTTP door.
//
//   status  error              when
//   429     rate_limited       a limit is reached: come back after retry_after_ms
//   401     missing_identity   no identity to count under: names what is missing
//   403     denied             a rule with `deny: true`
//   422     cost_above_limit   the cost can never be met: the ceiling is max_cost
//
// As application/problem+json (RFC 9457); a 429 is of the type that draft-11 registers:
//
//   {"type":"https://iana.org/assignments/http-problem-types#quota-exceeded",
//    "title":"Quota exceeded","status":429,
//    "detail":"Rule \"api\" allows 100 in 60 s. Try again in 3 s.",
//    "retry_after_ms":2400,"violated-policies":["api"]}
//
// As plain JSON:
//
//   {"error":"rate_limited","message":"Rule \"api\" allows 100 in 60 s. Try again in 3 s.",
//    "rule":"api","retry_after_ms":2400}
//
// `detail` and `message` are the same sentence and say what to do next; a rule's own `message`
// replaces it. `rule` is the one that the sentence is about; violated-policies are all that deny. A
// rule that also counts others' traffic is named without its numbers; one marked `hide` is not
// named. A member of which nothing is known is left out.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/limiter/outcome.h"

namespace sluice::transport {

enum class BodyForm : std::uint8_t { kProblem, kJson };

[[nodiscard]] std::string_view ContentTypeOf(BodyForm form);

// The status for an outcome that is not allowed.
[[nodiscard]] int DenialStatus(const Outcome& outcome);

// Appends the body for such an outcome. Names, messages and labels may hold any bytes.
void AppendDenialBody(const Outcome& outcome, BodyForm form, std::string* out);

// The same for one thread that denies many: what does not change from one denial by a limit to the
// next is written once for each generation of the rules.
class DenialBodies {
 public:
  explicit DenialBodies(BodyForm form) : form_(form) {}

  // As AppendDenialBody(). The outcome is a limiter's own: it knows its rules.
  void Append(const Outcome& outcome, std::string* out);

 private:
  const std::string& UpToWait(const Outcome& outcome, const RuleResult& shown);

  const BodyForm form_;
  std::shared_ptr<const ActiveRules> rules_;     // of these are the texts
  std::vector<std::vector<std::string>> texts_;  // of each rule, of each of its limits
};

// Appends its sentence alone, as plain text: for forms that have no room for more.
void AppendDenialText(const Outcome& outcome, std::string* out);

// Appends the lines that go with it, apart from RateLimit: Retry-After, Cache-Control: no-store,
// and for a 401 the challenge that RFC 9110 (11.6.1) asks for.
void AppendDenialFields(const Outcome& outcome, std::string* out);

}  // namespace sluice::transport
