// The values that people write in a configuration: 100/min, 1h30m, 10k, 64KiB.
//
// Whole numbers only, exact or refused: nothing is rounded, and nothing too large wraps around. A
// refusal says what is wrong with what was found and what to write.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "sluice/base/time.h"

namespace sluice::config {

// Why a value was refused. The message continues a sentence that begins with the field's name:
// "`limit` " + "must say a period, got `100`".
struct Complaint {
  std::string message;
  std::string hint;  // may be empty
};

template <typename T>
class Parsed {
 public:
  Parsed(T value) : result_(std::move(value)) {}                  // NOLINT: as absl::StatusOr
  Parsed(Complaint complaint) : result_(std::move(complaint)) {}  // NOLINT
  [[nodiscard]] bool ok() const { return result_.index() == 0; }
  [[nodiscard]] const T& operator*() const { return std::get<0>(result_); }
  [[nodiscard]] const T* operator->() const { return &std::get<0>(result_); }
  [[nodiscard]] const Complaint& complaint() const { return std::get<1>(result_); }

 private:
  std::variant<T, Complaint> result_;
};

enum class PeriodUnit : std::uint8_t { kSecond, kMinute, kHour, kDay, kWeek, kMonth, kYear };

// `count` units every `periods` units of time: 5/30s has count 5, periods 30, unit kSecond.
struct WrittenRate {
  std::int64_t count = 1;    // >= 1
  std::int64_t periods = 1;  // >= 1
  PeriodUnit unit = PeriodUnit::kSecond;

  // Nothing for months and years, which only a calendar can measure. At most kMaxPeriod.
  [[nodiscard]] std::optional<Duration> Period() const;
  friend bool operator==(const WrittenRate&, const WrittenRate&) = default;
};

inline constexpr Duration kMaxPeriod = std::chrono::hours{24} * 36525;  // 100 years

// COUNT/PERIOD. The count as ParseCount, from 1 to 2^63 - 1; the period s, min, h, day, week, month
// or year (also sec, second, minute, hour, d and the plurals), with a number before it for a
// multiple. Blanks around the slash are allowed.
[[nodiscard]] Parsed<WrittenRate> ParseRate(std::string_view text);

// 0 to 2^63 - 1: digits, with `_` between them where it helps, and k, M or G for thousands,
// millions and billions.
[[nodiscard]] Parsed<std::int64_t> ParseCount(std::string_view text);

// 30s, 5ms, 1h30m, 2d: parts of ns, us, ms, s, m (or min), h, d, w, each once, largest first. At
// most 100 years. A number alone is refused, since nobody can see its unit; 0 alone is 0.
[[nodiscard]] Parsed<Duration> ParseDuration(std::string_view text);

// 65536, 64KiB, 1MiB, 1GiB, or 10kB, 10MB, 10GB in powers of 1000.
[[nodiscard]] Parsed<std::int64_t> ParseBytes(std::string_view text);

}  // namespace sluice::config
