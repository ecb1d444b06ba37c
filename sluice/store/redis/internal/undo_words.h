// What the script is told of a charge that is to be given back, by the limit's algorithm: up to
// eight numbers (script/*.lua say which), or a slot's id before them.
#pragma once

#include <array>
#include <cstdint>

#include "sluice/algorithm/decision.h"
#include "sluice/store/redis/script_limit.h"

namespace sluice::redis {

struct UndoWords {
  static constexpr std::size_t kSize = 8;
  std::array<std::int64_t, kSize> numbers{};
};
// `units` at most those of the receipt. Not for concurrency.
[[nodiscard]] UndoWords UndoWordsOf(const ScriptLimit& limit, const Receipt& receipt,
                                    std::uint64_t units, std::uint32_t phase_bits);

// The id of a slot, in the script.
[[nodiscard]] std::array<char, 16> SlotName(std::uint64_t slot);

}  // namespace sluice::redis
