// Rates, counts, sizes and lengths of time: within their bounds or refused with a message.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "sluice/config/values.h"

namespace {

template <typename T>
bool Accepted(const sluice::config::Parsed<T>& parsed) {
  if (!parsed.ok() && parsed.complaint().message.empty()) std::abort();
  return parsed.ok();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  using namespace sluice::config;
  const std::string_view text(reinterpret_cast<const char*>(bytes), size);
  if (const auto rate = ParseRate(text); Accepted(rate)) {
    if (rate->count < 1 || rate->periods < 1) std::abort();
    const auto period = rate->Period();
    const bool calendar = rate->unit == PeriodUnit::kMonth || rate->unit == PeriodUnit::kYear;
    if (period.has_value() == calendar) std::abort();
    if (period && (period->count() <= 0 || *period > kMaxPeriod)) std::abort();
  }
  if (const auto count = ParseCount(text); Accepted(count) && *count < 0) std::abort();
  if (const auto count = ParseBytes(text); Accepted(count) && *count < 0) std::abort();
  if (const auto length = ParseDuration(text); Accepted(length)) {
    if (length->count() < 0 || *length > kMaxPeriod) std::abort();
  }
  return 0;
}
