#include "sluice/config/limit_text.h"

#include <fmt/format.h>

#include <string_view>
#include <utility>
#include <variant>

namespace sluice::config {
namespace {

using UnitName = std::pair<std::string_view, std::int64_t>;
constexpr UnitName kDurationUnits[] = {
    {"d", 86'400'000'000'000},
    {"h", 3'600'000'000'000},
    {"m", 60'000'000'000},
    {"s", 1'000'000'000},
    {"ms", 1'000'000},
    {"us", 1'000},
    {"ns", 1},
};
constexpr UnitName kPeriodUnits[] = {
    {"week", 604'800'000'000'000}, {"day", 86'400'000'000'000}, {"h", 3'600'000'000'000},
    {"min", 60'000'000'000},       {"s", 1'000'000'000},
};

struct Describe {
  std::string operator()(const token_bucket::Limit& limit) const {
    return fmt::format("{}, burst {}",
                       RateText(static_cast<std::uint64_t>(limit.rate.count), limit.rate.period),
                       limit.burst);
  }
  std::string operator()(const leaky_bucket::Limit& limit) const {
    const Rate& rate = limit.pace.rate;
    return fmt::format("{}, up to {} waiting",
                       RateText(static_cast<std::uint64_t>(rate.count), rate.period),
                       limit.max_cost - 1);
  }
  std::string operator()(const fixed_window::Limit& limit) const {
    const bool first_hit = limit.align == fixed_window::Align::kFirstHit;
    return RateText(limit.limit, limit.window) + (first_hit ? ", from the first hit" : "") +
           Offset(limit.offset, limit.per_key_offset);
  }
  std::string operator()(const sliding_window_counter::Limit& limit) const {
    return RateText(limit.limit, limit.window) + Offset(limit.offset, limit.per_key_offset);
  }
  std::string operator()(const sliding_window_log::Limit& limit) const {
    return RateText(limit.limit, limit.window);
  }
  std::string operator()(const sliding_window_strict::Limit& limit) const {
    return fmt::format("{} in {} sub-windows", RateText(limit.limit, limit.window),
                       limit.sub_windows);
  }
  std::string operator()(const calendar::Limit& limit) const {
    constexpr std::string_view kPeriods[] = {"day", "week", "month", "year"};
    return fmt::format("{}/{} of {}", limit.limit, kPeriods[static_cast<std::size_t>(limit.period)],
                       limit.zone_name);
  }
  std::string operator()(const concurrency::Limit& limit) const {
    if (limit.slot_ttl == Duration{0}) return fmt::format("{} in flight", limit.limit);
    return fmt::format("{} in flight, for {} each", limit.limit, DurationText(limit.slot_ttl));
  }

 private:
  static std::string Offset(Duration offset, bool per_key) {
    if (per_key) return ", offset per-key";
    return offset == Duration{0} ? "" : ", offset " + DurationText(offset);
  }
};

}  // namespace

std::string DurationText(Duration duration) {
  if (duration == Duration{0}) return "0";
  std::string text;
  std::int64_t rest = duration.count();
  for (const auto& [name, factor] : kDurationUnits) {
    if (rest / factor > 0) text += fmt::format("{}{}", rest / factor, name);
    rest %= factor;
  }
  return text;
}

std::string RateText(std::uint64_t count, Duration period) {
  for (const auto& [name, factor] : kPeriodUnits) {
    if (period.count() % factor != 0) continue;
    const std::int64_t periods = period.count() / factor;
    return periods == 1 ? fmt::format("{}/{}", count, name)
                        : fmt::format("{}/{}{}", count, periods, name);
  }
  return fmt::format("{}/{}", count, DurationText(period));
}

std::string LimitText(const Limit& limit) {
  return fmt::format("{} {}", AlgorithmName(limit), std::visit(Describe{}, limit));
}

}  // namespace sluice::config
