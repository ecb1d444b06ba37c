// What rules say while the shared store does not answer (OnStoreFailure), in its place.
#pragma once

#include "sluice/limiter/outcome.h"

namespace sluice {

// Goes through the results whose claims count in the remote store, [local_claims, end): an open
// rule passes and a closed one denies, without a claim; the claim of a local one counts in memory
// from now on, under what this node allows by itself, behind those that did so before. It is still
// to be decided on. Returns whether a rule denies so; a shadow rule never does.
bool TakeFailureModes(Outcome& outcome);

}  // namespace sluice
