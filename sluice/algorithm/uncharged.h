// What a claim with room is told when its charge is taken back at once, because another claim of
// the same request was denied: as if it had only been looked at.
//
//   verdict, retry_after, delay   as they were: it had room
//   remaining, reset_after        without the charge
//
// From the decision and the receipt of the charge alone, without the state. Exact, but for one
// field: the reset_after of the log, the strict and the sliding counter, where something else is
// owed. Their receipts do not tell when what was there before leaves; so it stays as with the
// charge: too long, by less than the window (and tick or step), never too short.
#pragma once

#include "sluice/algorithm/limit.h"

namespace sluice {

// Requires: `charged` and `receipt` are of one charge that had room (units > 0), and of no lease.
[[nodiscard]] Decision Uncharged(const Limit& limit, const Decision& charged,
                                 const Receipt& receipt);

}  // namespace sluice
