// States of Redis as text, in C++: what script/*.lua describes, behind a limit's prefix
// (script_limit.h).
//
//   token, leaky bucket   "us" or "us ticks undone-us undone-ticks"; since 2025. Behind that, while
//                         a lease may be spent, its end: " us"
//   fixed window          "number used"; from the first hit "start-us used"
//   calendar              "start-s end-s used"
//   sliding counter       "number previous current"
//   strict                "number count count ...", the newest first
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "sluice/algorithm/state.h"
#include "sluice/store/redis/script_limit.h"

namespace sluice::redis {

struct SmallText {
  SmallState state;
  std::uint64_t undone = 0;    // token bucket, in ticks
  std::int64_t lease_end = 0;  // token bucket, in ticks: whole microseconds
};
// Requires HasSmallState(limit). `text` stands behind the prefix. DataLoss: it is damaged.
[[nodiscard]] absl::StatusOr<SmallText> ReadSmall(const Limit& limit, std::string_view text);
// Behind the limit's prefix; empty when absent.
[[nodiscard]] std::string WriteSmall(const ScriptLimit& limit, const SmallText& state);

// Counts as sliding_window_strict::View wants them, with those ahead.
struct StrictText {
  std::int64_t newest = 0;
  std::array<std::uint64_t, 2 * sliding_window_strict::kMaxSubWindows + 1> counts{};

  [[nodiscard]] sliding_window_strict::View ViewOf(const sliding_window_strict::Limit& limit) {
    return {newest, std::span(counts).first(sliding_window_strict::LeasedCounts(limit))};
  }
};
[[nodiscard]] absl::StatusOr<StrictText> ReadStrict(const sliding_window_strict::Limit& limit,
                                                    std::string_view text);
[[nodiscard]] std::string WriteStrict(const ScriptLimit& limit, StrictText state);

// An instant in ticks of a bucket, as the script has it.
struct Instant {
  std::int64_t us;
  std::int64_t ticks;
};
[[nodiscard]] Instant InstantOf(const token_bucket::Limit& pace, std::uint64_t ticks);

}  // namespace sluice::redis
