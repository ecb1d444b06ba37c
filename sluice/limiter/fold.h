// From what every rule said to the one answer.
//
//   some enforced rule denies outright (deny: true)      kDenied
//   some enforced rule misses a part of its key          kMissingIdentity
//   some binding claim says never                        kNeverPasses
//   some binding claim says limited                      kLimited, retry_after = the longest wait
//   some enforced rule fails closed                      kUnavailable
//   some binding claim says delayed                      kDelayed, delay = the longest
//   else                                                 kAllowed
//
// The decisive result is the one that the client is told of: of those that deny, the one with the
// longest wait; when all pass, the one with the smallest share of its capacity left. Rules that no
// counter answered for are never shown, except one that fails closed.
#pragma once

#include "sluice/limiter/outcome.h"

namespace sluice {

// Sets answer, decisive, delay and retry_after from outcome.results and outcome.claims.
void Fold(Outcome& outcome);

}  // namespace sluice
