// A limit as the script in Redis is told of it, and as states in Redis name it.
//
// The script knows a limit by the letter of its algorithm, by six numbers, and by its numbers in
// short, with which every state that is written under it begins:
//
//   1t100/6e10/20 60393374075798        version 1, token bucket, 100 units in 6e10 ns, burst 20
//
// In short are only the numbers without which the rest of the text cannot be read: where the others
// change, the state stays good as it is. A text under other numbers is converted by C++ (LimitOf,
// internal/convert.h), since the script can not.
//
// Redis tells the time in whole microseconds. So here a length of time is whole microseconds too,
// rounded up (windows, steps, times to live; not the buckets, which count ticks): limit() is what
// decides, in the script and in C++. A window is so never shorter than it was asked for.
//
// Time in Redis is the server's own, on both of our clocks: `wall` as it is; `steady` since 2025,
// so that it lies within the 30 years that instants have room for, until 2055.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "sluice/algorithm/limit.h"
#include "sluice/base/time.h"

namespace sluice::redis {

// The server's time as the algorithms take it; `wall_us` since 1970.
[[nodiscard]] Now NowOf(std::int64_t wall_us);
// The other way, for instants and windows in states: microseconds since 2025.
[[nodiscard]] std::int64_t SteadyUs(Time at);

class ScriptLimit {
 public:
  // A slot without a time to live of its own comes back after so long: its holder may have died,
  // with nobody left to tell.
  static constexpr Duration kSlotBound = std::chrono::hours{24};
  static constexpr std::size_t kNumbers = 6;

  // InvalidArgument: FitsRemote() says so (algorithm/remote_bounds.h).
  [[nodiscard]] static absl::StatusOr<ScriptLimit> Make(const Limit& limit);

  [[nodiscard]] const Limit& limit() const { return limit_; }
  [[nodiscard]] char letter() const { return prefix_[1]; }
  // With version and letter, and a blank at the end (concurrency: "1n").
  [[nodiscard]] std::string_view prefix() const { return prefix_; }
  // -1: not used. A calendar's edges are not among them; they change with time.
  [[nodiscard]] const std::array<std::int64_t, kNumbers>& numbers() const { return numbers_; }
  // The debt that a forced charge may run up to: one burst beyond the capacity.
  [[nodiscard]] std::uint64_t most_debt() const { return most_debt_; }

  // By how much the windows of a key are shifted (packed.h), in whole microseconds.
  [[nodiscard]] Duration PhaseOf(std::uint32_t bits) const;

 private:
  ScriptLimit(Limit limit, std::string prefix);

  Limit limit_;
  std::string prefix_;
  std::array<std::int64_t, kNumbers> numbers_{-1, -1, -1, -1, -1, -1};
  std::uint64_t most_debt_;
};

// The limit of a prefix with which some text begins, as far as the state behind it depends on it
// (another number of units is as good). Its size is set to that of the prefix.
// DataLoss: it is none of this version's.
[[nodiscard]] absl::StatusOr<Limit> LimitOf(std::string_view text, std::size_t* prefix_size);

}  // namespace sluice::redis
