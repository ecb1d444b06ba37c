// A state that was written under other numbers, as one under a claim's limit: as in memory
// (store/memory/internal/key_claims_convert.cc). Of the same algorithm its own Convert; else, or
// where the key's phase changes, what is owed is owed under the new limit, up to its capacity.
//
// What is leased may be spent until the lease's end, so it is owed as of then: buckets keep the end
// (token_bucket.h); of logs and strict counters all is owed as of the newest event, or the end of
// the newest sub-window, where that is ahead. Only other windows (fixed, calendar, the sliding
// counter) and queues can't have what is ahead: in those it is owed as of now, so that what is
// spent of a lease after such a change may be more than they hold.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "sluice/base/time.h"
#include "sluice/store/redis/script_limit.h"

namespace sluice::redis {

struct Conversion {
  std::string expected;   // what must still be there: the state, or a list's head
  std::string converted;  // to be taken for it; empty: nothing is owed
};

// `there`: the state as the script tells it ("header;units" of a list). `phase_bits`: of the key.
// DataLoss: it is damaged, or of a version that this one does not know; it must not be overwritten.
[[nodiscard]] absl::StatusOr<Conversion> ConvertState(std::string_view there, const ScriptLimit& to,
                                                      Now now, std::uint32_t phase_bits);

}  // namespace sluice::redis
