#include "sluice/config/values.h"

#include <fmt/format.h>

#include <span>
#include <utility>

#include "sluice/base/ascii.h"
#include "sluice/base/closest_name.h"
#include "sluice/config/diagnostics.h"

namespace sluice::config {
namespace {

constexpr std::int64_t kMax = INT64_MAX;

struct Unit {
  std::string_view name;
  std::int64_t factor;
};

constexpr Unit kCountUnits[] = {{"k", 1'000}, {"K", 1'000}, {"M", 1'000'000}, {"G", 1'000'000'000}};
constexpr Unit kByteUnits[] = {
    {"B", 1},      {"KiB", 1 << 10}, {"MiB", 1 << 20},  {"GiB", 1 << 30},
    {"kB", 1'000}, {"KB", 1'000},    {"MB", 1'000'000}, {"GB", 1'000'000'000},
};
// Largest first, as they must be written.
constexpr Unit kDurationUnits[] = {
    {"w", 604'800'000'000'000},
    {"d", 86'400'000'000'000},
    {"h", 3'600'000'000'000},
    {"min", 60'000'000'000},
    {"m", 60'000'000'000},
    {"s", 1'000'000'000},
    {"ms", 1'000'000},
    {"us", 1'000},
    {"ns", 1},
};

struct PeriodName {
  std::string_view name;
  PeriodUnit unit;
};
constexpr PeriodName kPeriodNames[] = {
    {"s", PeriodUnit::kSecond},       {"sec", PeriodUnit::kSecond},
    {"second", PeriodUnit::kSecond},  {"seconds", PeriodUnit::kSecond},
    {"min", PeriodUnit::kMinute},     {"minute", PeriodUnit::kMinute},
    {"minutes", PeriodUnit::kMinute}, {"h", PeriodUnit::kHour},
    {"hour", PeriodUnit::kHour},      {"hours", PeriodUnit::kHour},
    {"d", PeriodUnit::kDay},          {"day", PeriodUnit::kDay},
    {"days", PeriodUnit::kDay},       {"week", PeriodUnit::kWeek},
    {"weeks", PeriodUnit::kWeek},     {"month", PeriodUnit::kMonth},
    {"months", PeriodUnit::kMonth},   {"year", PeriodUnit::kYear},
    {"years", PeriodUnit::kYear},
};

// Digits off the front of `text`, with `_` between them; nothing when there is none, or too many.
struct Digits {
  std::string_view text;
  std::optional<std::int64_t> value;  // nothing: above 2^63 - 1
};

Digits TakeDigits(std::string_view& text) {
  std::size_t used = 0;
  std::optional<std::int64_t> value = 0;
  while (used < text.size()) {
    const char c = text[used];
    const bool joined = c == '_' && used > 0 && used + 1 < text.size() && IsDigit(text[used + 1]) &&
                        IsDigit(text[used - 1]);
    if (!IsDigit(c) && !joined) break;
    ++used;
    if (joined) continue;
    const bool fits = value && !__builtin_mul_overflow(*value, 10, &*value) &&
                      !__builtin_add_overflow(*value, c - '0', &*value);
    if (!fits) value.reset();
  }
  const Digits digits{text.substr(0, used), value};
  text.remove_prefix(used);
  return digits;
}

const Unit* FindUnit(std::span<const Unit> units, std::string_view name) {
  for (const Unit& unit : units) {
    if (unit.name == name) return &unit;
  }
  return nullptr;
}

Complaint TooLarge(std::string_view found) {
  return {fmt::format("must be at most {}, got {}", kMax, Quoted(found)), ""};
}

// A number with one unit after it, or none.
Parsed<std::int64_t> ParseScaled(std::string_view text, std::span<const Unit> units,
                                 std::string_view form) {
  std::string_view rest = text;
  const Digits digits = TakeDigits(rest);
  const std::string hint = fmt::format("write {}", form);
  if (digits.text.empty()) {
    if (!text.empty() && text.front() == '-') {
      return Complaint{fmt::format("must not be negative, got {}", Quoted(text)), ""};
    }
    return Complaint{fmt::format("must be a whole number, got {}", Quoted(text)), hint};
  }
  std::int64_t factor = 1;
  if (!rest.empty()) {
    const Unit* unit = FindUnit(units, rest);
    if (unit == nullptr) {
      return Complaint{fmt::format("must be a whole number, got {}", Quoted(text)), hint};
    }
    factor = unit->factor;
  }
  std::int64_t value = 0;
  if (!digits.value || __builtin_mul_overflow(*digits.value, factor, &value)) return TooLarge(text);
  return value;
}

Complaint UnknownPeriod(std::string_view name) {
  if (name == "m") {
    return {"has the period `m`, which may be a minute or a month", "write `min` or `month`"};
  }
  if (name == "ms" || name == "us" || name == "ns") {
    return {fmt::format("has the period {}; the shortest is a second", Quoted(name)),
            "write what passes in a second: `10/s`"};
  }
  std::string_view names[std::size(kPeriodNames)];
  for (std::size_t i = 0; i < std::size(kPeriodNames); ++i) names[i] = kPeriodNames[i].name;
  std::string hint = "write s, min, h, day, week, month or year";
  if (const auto meant = ClosestName(name, names); meant && name.size() > 1) {
    hint = fmt::format("did you mean `{}`?", *meant);
  }
  return {fmt::format("has an unknown period {}", Quoted(name)), std::move(hint)};
}

Parsed<WrittenRate> ParsePeriod(std::string_view text, WrittenRate rate) {
  const bool multiple = !text.empty() && (IsDigit(text.front()) || text.front() == '-');
  if (multiple) {
    const std::string_view written = text;
    const Digits digits = TakeDigits(text);
    if (digits.text.empty() || digits.value == 0) {
      return Complaint{fmt::format("must have a period of at least 1s, got {}", Quoted(written)),
                       ""};
    }
    if (!digits.value) return Complaint{"must have a period of at most 100 years", ""};
    rate.periods = *digits.value;
  }
  if (text.empty()) {
    return Complaint{"must name the unit of its period",
                     "write s, min, h, day, week, month or year after the number"};
  }
  for (const PeriodName& name : kPeriodNames) {
    if (name.name != text) continue;
    rate.unit = name.unit;
    const bool fixed = rate.unit != PeriodUnit::kMonth && rate.unit != PeriodUnit::kYear;
    if (fixed ? !rate.Period() : rate.periods > 1200) {
      return Complaint{"must have a period of at most 100 years", ""};
    }
    return rate;
  }
  return UnknownPeriod(text);
}

}  // namespace

std::optional<Duration> WrittenRate::Period() const {
  constexpr std::int64_t kSeconds[] = {1, 60, 3'600, 86'400, 604'800};
  if (unit == PeriodUnit::kMonth || unit == PeriodUnit::kYear) return std::nullopt;
  const std::int64_t unit_ns = kSeconds[static_cast<std::size_t>(unit)] * 1'000'000'000;
  if (periods > kMaxPeriod.count() / unit_ns) return std::nullopt;
  return Duration{periods * unit_ns};
}

Parsed<WrittenRate> ParseRate(std::string_view text) {
  const Complaint denies_all{
      "must be at least 1, got 0",
      "a limit of 0 denies every request; to deny on purpose write `deny: true`"};
  const std::size_t slash = text.find('/');
  const std::string_view count_text = Trim(text.substr(0, slash), " ");
  if (slash == text.npos) {
    const Parsed<std::int64_t> count = ParseCount(count_text);
    const bool number = count.ok();
    if (number && *count == 0) return denies_all;
    return Complaint{
        fmt::format("must {}, got {}", number ? "say a period" : "be a rate", Quoted(text)),
        number ? fmt::format("write for example `{}/min`", count_text)
               : "write for example `100/min` or `5/30s`"};
  }
  const Parsed<std::int64_t> count = ParseCount(count_text);
  if (!count.ok()) {
    if (count_text.find('.') == count_text.npos) return count.complaint();
    return Complaint{count.complaint().message,
                     "for less than one a period write a longer period: `1/2s` for `0.5/s`"};
  }
  if (*count == 0) return denies_all;
  return ParsePeriod(Trim(text.substr(slash + 1), " "), WrittenRate{.count = *count});
}

Parsed<std::int64_t> ParseCount(std::string_view text) {
  return ParseScaled(text, kCountUnits, "digits, and k, M or G for thousands, millions, billions");
}

Parsed<std::int64_t> ParseBytes(std::string_view text) {
  return ParseScaled(text, kByteUnits, "a number of bytes, such as `65536`, `64KiB` or `1MiB`");
}

Parsed<Duration> ParseDuration(std::string_view text) {
  const Complaint no_duration{fmt::format("must be a length of time, got {}", Quoted(text)),
                              "write for example `30s`, `500ms` or `1h30m`"};
  if (text == "0") return Duration{0};
  std::string_view rest = text;
  std::int64_t total = 0;
  std::int64_t last_factor = kMax;
  while (!rest.empty()) {
    const Digits digits = TakeDigits(rest);
    if (digits.text.empty()) return no_duration;
    std::size_t letters = 0;
    while (letters < rest.size() && rest[letters] >= 'a' && rest[letters] <= 'z') ++letters;
    const std::string_view name = rest.substr(0, letters);
    rest.remove_prefix(letters);
    const Unit* unit = FindUnit(kDurationUnits, name);
    if (unit == nullptr) {
      if (!name.empty() || !rest.empty()) return no_duration;
      return Complaint{fmt::format("must have a unit, got {}", Quoted(text)),
                       fmt::format("write for example `{0}s` or `{0}ms`", text)};
    }
    if (unit->factor >= last_factor) {
      return Complaint{
          fmt::format("must have each unit once, the largest first, got {}", Quoted(text)),
          "write for example `1h30m`"};
    }
    last_factor = unit->factor;
    std::int64_t part = 0;
    const bool fits = digits.value && !__builtin_mul_overflow(*digits.value, unit->factor, &part) &&
                      !__builtin_add_overflow(total, part, &total) && total <= kMaxPeriod.count();
    if (!fits) return Complaint{fmt::format("must be at most 100 years, got {}", Quoted(text)), ""};
  }
  if (text.empty()) return no_duration;
  return Duration{total};
}

}  // namespace sluice::config
