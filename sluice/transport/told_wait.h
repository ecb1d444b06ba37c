// How long a denied client is told to wait: the exact wait, and where the rule says `retry_jitter`
// a part of that on top, so that clients which were denied together do not come back together.
//
//   denied      exact wait       jitter
//     |-------------------------|..........|
//                                   ^ told: anywhere in here, spread evenly
//
// Guarantee: never sooner than the exact wait, never more than the jitter beyond it; and in one
// answer all that is told (Retry-After, t, resets, retry_after_ms) comes from the same draw, with
// no rule's wait beyond that of the answer.
//
// The draw is a function of the request's keys and the instant, not of a generator with a state of
// its own: the same request at the same instant is told the same. The keys are pseudo-random
// already (base/hash.h) and must not leave the process; the draw folds a product of their halves,
// of which they cannot be had back.
//
// Cost: some multiplications, and none where no rule that denies has a jitter.
#pragma once

#include "sluice/limiter/outcome.h"

namespace sluice::transport {

// Until the request passes, as the client is told. kNever and kUnknown stay what they are; 0 when
// the outcome is no denial.
[[nodiscard]] Duration ToldWait(const Outcome& outcome);

// The decision on one of the outcome's claims, with the wait that is told for its rule alone.
[[nodiscard]] Decision ToldDecision(const Outcome& outcome, const RuleResult& result);

}  // namespace sluice::transport
