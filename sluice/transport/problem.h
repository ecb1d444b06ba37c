// What a denied client reads: an application/problem+json body (RFC 9457) and the status it goes
// with. The same for every HTTP door.
//
//   429  a limit is reached            type ...#quota-exceeded; retry_after_ms, violated-policies
//   401  no identity to count under    names what is missing
//   403  a rule with `deny: true`
//   422  the cost can never be met     the ceiling in `max_cost`
//
//   {"type":"https://iana.org/assignments/http-problem-types#quota-exceeded",
//    "title":"Quota exceeded","status":429,
//    "detail":"Rule \"api\" allows 100 in 60 s. Try again in 3 s.",
//    "retry_after_ms":2400,"violated-policies":["api"]}
//
// `detail` says what to do next; a rule's own `message` replaces it. A rule that also counts
// others' traffic is named without its numbers; one marked `hide` is not named.
#pragma once

#include <string>

#include "sluice/limiter/outcome.h"

namespace sluice::transport {

// The status for an outcome that is not allowed.
[[nodiscard]] int DenialStatus(const Outcome& outcome);

// Appends the body for such an outcome. Names, messages and labels may hold any bytes.
void AppendDenialBody(const Outcome& outcome, std::string* out);

// Appends the lines that go with it, apart from RateLimit: Retry-After, Cache-Control: no-store,
// and for a 401 the challenge that RFC 9110 (11.6.1) asks for.
void AppendDenialFields(const Outcome& outcome, std::string* out);

}  // namespace sluice::transport
