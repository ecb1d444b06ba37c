#include "sluice/algorithm/internal/validate.h"

#include "absl/strings/str_cat.h"

namespace sluice::internal {

absl::Status CheckLimit(std::int64_t limit) {
  if (limit >= 0) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("limit must not be negative, got ", limit, "; 0 denies every request"));
}

absl::Status CheckWindow(Duration window) {
  if (window <= Duration{0}) {
    return absl::InvalidArgumentError(
        absl::StrCat("window must be positive, got ", window.count(), " ns"));
  }
  if (window < kShortestWindow) {
    return absl::InvalidArgumentError(absl::StrCat("window must be at least 1 ms, got ",
                                                   window.count(),
                                                   " ns; a token bucket takes shorter periods"));
  }
  if (window > kLongestWindow) {
    return absl::InvalidArgumentError(
        absl::StrCat("window must be at most 100 years, got ", window.count(), " ns"));
  }
  return absl::OkStatus();
}

absl::Status CheckOffset(Duration offset, Duration window) {
  if (offset >= Duration{0} && offset < window) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("offset must be at least 0 and less than the window of ", window.count(),
                   " ns, got ", offset.count(), " ns"));
}

}  // namespace sluice::internal
