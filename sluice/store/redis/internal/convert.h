// A state that was written under other numbers, as one under a claim's limit: as in memory
// (store/memory/internal/key_claims_convert.cc). Of the same algorithm its own Convert; else, or
// where the key's phase changes, what is owed is owed under the new limit, up to its capacity.
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
