// From what the script tells of a claim (what it did, the state before) to the decision and the
// receipt: by the functions of sluice/algorithm, as if the state lay here.
#pragma once

#include <cstdint>
#include <string_view>

#include "absl/status/statusor.h"
#include "sluice/algorithm/decision.h"
#include "sluice/base/time.h"
#include "sluice/store/redis/script_limit.h"

namespace sluice::redis {

// What the script did with a claim; its numbers for it.
enum class Done : std::uint8_t {
  kLookedNoRoom = 0,
  kLookedRoom = 1,
  kCharged = 2,
  kForced = 3,  // charged beyond the room, or not at all where the debt could not grow
};

struct Told {
  Done done = Done::kLookedNoRoom;
  std::string_view state;  // before; empty: absent
  std::uint64_t cost = 0;
  Now now;                 // the key's own: less its phase
  std::uint64_t slot = 0;  // concurrency
  Duration lease{0};       // as it was sent: whole microseconds
};

struct Answer {
  Decision decision;
  Receipt receipt;
  bool damaged = false;  // the state was impossible, and counted as absent
};

// DataLoss: the state cannot be read. Internal: the script and the algorithm do not agree, which is
// an error in one of them; nothing can be said of the claim then.
[[nodiscard]] absl::StatusOr<Answer> AnswerOf(const ScriptLimit& limit, const Told& told);

}  // namespace sluice::redis
