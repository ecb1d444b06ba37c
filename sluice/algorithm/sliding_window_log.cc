#include "sluice/algorithm/sliding_window_log.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "sluice/algorithm/internal/validate.h"

namespace sluice::sliding_window_log {
namespace {

constexpr std::int64_t kMostTicks = std::int64_t{1} << 31;

// The smallest 1, 2 or 5 * 10^n ns of which 2^31 are at least the window.
Duration TickFor(Duration window) {
  const std::int64_t least = internal::CeilDiv(window.count(), kMostTicks);
  for (std::int64_t power = 1;; power *= 10) {
    for (const std::int64_t digit : {1, 2, 5}) {
      if (digit * power >= least) return Duration{digit * power};
    }
  }
}

}  // namespace

absl::StatusOr<Limit> MakeLimit(std::int64_t limit, Duration window, bool weighted) {
  if (absl::Status status = internal::CheckLimit(limit); !status.ok()) return status;
  if (absl::Status status = internal::CheckWindow(window); !status.ok()) return status;
  if (limit > kMaxLimit) {
    return absl::InvalidArgumentError(
        absl::StrCat("limit exceeds log capacity: at most ", kMaxLimit, " units are kept, got ",
                     limit, "; sliding-window-strict and sliding-window-counter take more"));
  }
  return Limit{.limit = static_cast<std::uint64_t>(limit),
               .window = window,
               .tick = TickFor(window),
               .weighted = weighted};
}

Time RescaleLatest(const Limit& from, Time latest, const Limit& to) {
  const Time newest = internal_log::TimeOf(from, internal_log::TickUp(from, latest));
  return internal_log::TimeOf(to, internal_log::TickUp(to, newest));
}

Event Rescale(const Limit& from, Time latest, Event event, const Limit& to) {
  const std::int64_t newest = internal_log::TickUp(from, latest);
  const auto age = static_cast<std::uint32_t>(static_cast<std::uint32_t>(newest) - event.stamp);
  const Time at = internal_log::TimeOf(from, newest - age);
  return {.stamp = static_cast<std::uint32_t>(internal_log::TickUp(to, at)), .cost = event.cost};
}

}  // namespace sluice::sliding_window_log
