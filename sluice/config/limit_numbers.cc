#include "sluice/config/limit_numbers.h"

#include <limits>
#include <numeric>
#include <utility>

#include "sluice/base/int128.h"

namespace sluice::config {
namespace {

template <typename Kind>
absl::StatusOr<Limit> Wrap(absl::StatusOr<Kind> made) {
  if (!made.ok()) return made.status();
  return Limit(*std::move(made));
}

constexpr Int128 kMost = std::numeric_limits<std::int64_t>::max();

std::int64_t Down(std::int64_t count, Part part) {
  return static_cast<std::int64_t>(Int128{count} * part.of / part.whole);
}

std::optional<Rate> PartOfRate(std::int64_t count, Duration period, Part part) {
  const Int128 units = Int128{count} * part.of;
  if (units % part.whole == 0) {
    return Rate{.count = static_cast<std::int64_t>(units / part.whole), .period = period};
  }
  const auto divisor = std::gcd(static_cast<std::int64_t>(units % part.whole), part.whole);
  const Int128 longer = Int128{period.count()} * (part.whole / divisor);
  if (units / divisor <= kMost && longer <= kMost) {
    return Rate{.count = static_cast<std::int64_t>(units / divisor),
                .period = Duration{static_cast<std::int64_t>(longer)}};
  }
  constexpr std::int64_t kMany = 1'000'000;
  if (const std::int64_t down = Down(count, part); down >= kMany) {
    return Rate{.count = down, .period = period};
  }
  const Int128 whole = Int128{period.count()} * part.whole;
  const Int128 interval = whole / units + static_cast<Int128>(whole % units != 0);
  if (interval > kMost) return std::nullopt;
  return Rate{.count = 1, .period = Duration{static_cast<std::int64_t>(interval)}};
}

}  // namespace

absl::StatusOr<Limit> MakeLimit(const LimitNumbers& numbers, const AlgorithmOptions& options) {
  const Rate rate{.count = numbers.count, .period = numbers.period};
  switch (options.algorithm) {
    case Algorithm::kTokenBucket:
      return Wrap(token_bucket::MakeLimit(rate, static_cast<std::uint64_t>(numbers.burst)));
    case Algorithm::kLeakyBucket:
      return Wrap(
          leaky_bucket::MakeLimit(rate, static_cast<std::uint64_t>(numbers.queue), numbers.wait));
    case Algorithm::kSlidingWindowLog:
      return Wrap(sliding_window_log::MakeLimit(rate.count, rate.period, options.weighted));
    case Algorithm::kSlidingWindowStrict:
      return Wrap(sliding_window_strict::MakeLimit(rate.count, rate.period, options.sub_windows));
    case Algorithm::kSlidingWindowCounter: {
      auto made = sliding_window_counter::MakeLimit(rate.count, rate.period, options.offset);
      if (made.ok()) made->per_key_offset = options.per_key_offset;
      return Wrap(std::move(made));
    }
    case Algorithm::kFixedWindow: {
      auto made = fixed_window::MakeLimit(rate.count, rate.period, options.align, options.offset);
      if (made.ok()) made->per_key_offset = options.per_key_offset;
      return Wrap(std::move(made));
    }
    case Algorithm::kConcurrency:
      return Wrap(concurrency::MakeLimit(numbers.count, options.slot_ttl));
    case Algorithm::kCalendar:
      return Wrap(calendar::MakeLimit(numbers.count, numbers.calendar_period, options.time_zone));
  }
  return absl::InternalError("no algorithm");
}

std::optional<LimitNumbers> PartOf(const LimitNumbers& all, Part part, Algorithm algorithm) {
  LimitNumbers numbers = all;
  if (algorithm != Algorithm::kTokenBucket && algorithm != Algorithm::kLeakyBucket) {
    numbers.count = Down(all.count, part);
    return numbers.count > 0 ? std::optional(numbers) : std::nullopt;
  }
  const auto rate = PartOfRate(all.count, all.period, part);
  if (!rate) return std::nullopt;
  numbers.count = rate->count;
  numbers.period = rate->period;
  numbers.burst = Down(all.burst, part);
  if (all.queue != INT64_MAX) numbers.queue = Down(all.queue, part);
  if (algorithm == Algorithm::kTokenBucket && numbers.burst == 0) return std::nullopt;
  return numbers;
}

}  // namespace sluice::config
