#include "sluice/algorithm/limit.h"

#include <algorithm>

#include "sluice/algorithm/internal/arithmetic.h"

namespace sluice {
namespace {

template <typename... Fs>
struct Overloaded : Fs... {
  using Fs::operator()...;
};
template <typename... Fs>
Overloaded(Fs...) -> Overloaded<Fs...>;

Duration Times(Duration length, std::uint64_t n) {
  return internal::ToDuration(Uint128{static_cast<std::uint64_t>(length.count())} * n);
}

constexpr Duration kDay = std::chrono::hours{24};

Duration LengthOf(calendar::Period period) {
  switch (period) {
    case calendar::Period::kDay:
      return kDay;
    case calendar::Period::kWeek:
      return 7 * kDay;
    case calendar::Period::kMonth:
      return 30 * kDay;
    case calendar::Period::kYear:
      return 365 * kDay;
  }
  return kDay;
}

}  // namespace

std::string_view AlgorithmName(const Limit& limit) {
  return std::visit(
      Overloaded{
          [](const token_bucket::Limit&) -> std::string_view { return "token-bucket"; },
          [](const leaky_bucket::Limit&) -> std::string_view { return "leaky-bucket"; },
          [](const fixed_window::Limit&) -> std::string_view { return "fixed-window"; },
          [](const sliding_window_counter::Limit&) -> std::string_view {
            return "sliding-window-counter";
          },
          [](const calendar::Limit&) -> std::string_view { return "calendar"; },
          [](const sliding_window_strict::Limit&) -> std::string_view {
            return "sliding-window-strict";
          },
          [](const sliding_window_log::Limit&) -> std::string_view { return "sliding-window-log"; },
          [](const concurrency::Limit&) -> std::string_view { return "concurrency"; },
      },
      limit);
}

std::uint64_t CapacityOf(const Limit& limit) {
  return std::visit(Overloaded{[](const token_bucket::Limit& l) { return l.burst; },
                               [](const leaky_bucket::Limit& l) { return l.max_cost; },
                               [](const auto& l) { return l.limit; }},
                    limit);
}

Duration WindowOf(const Limit& limit) {
  return std::visit(Overloaded{[](const token_bucket::Limit& l) {
                                 return token_bucket::ToDuration(l, l.capacity);
                               },
                               [](const leaky_bucket::Limit& l) {
                                 return token_bucket::ToDuration(l.pace, l.pace.capacity);
                               },
                               [](const calendar::Limit& l) { return LengthOf(l.period); },
                               [](const concurrency::Limit&) { return Duration{0}; },
                               [](const auto& l) { return l.window; }},
                    limit);
}

Duration LifetimeOf(const Limit& limit) {
  return std::visit(
      Overloaded{[](const token_bucket::Limit& l) {
                   return Times(token_bucket::ToDuration(l, l.capacity), 2);
                 },
                 [](const leaky_bucket::Limit& l) {
                   return Times(token_bucket::ToDuration(l.pace, l.pace.capacity), 2);
                 },
                 // Charged while the clock was a window behind, it counts until the next one ends.
                 [](const fixed_window::Limit& l) { return Times(l.window, 2); },
                 [](const sliding_window_counter::Limit& l) { return Times(l.window, 3); },
                 [](const calendar::Limit& l) { return Times(LengthOf(l.period) + 2 * kDay, 2); },
                 [](const sliding_window_strict::Limit& l) {
                   return Times(l.step, static_cast<std::uint64_t>(l.sub_windows) + 1);
                 },
                 [](const sliding_window_log::Limit& l) { return l.window + 2 * l.tick; },
                 [](const concurrency::Limit& l) { return l.slot_ttl; }},
      limit);
}

bool CanLease(const Limit& limit) {
  return std::visit(Overloaded{
                        [](const token_bucket::Limit&) { return true; },
                        [](const leaky_bucket::Limit&) { return false; },
                        [](const fixed_window::Limit&) { return true; },
                        [](const sliding_window_counter::Limit&) { return false; },
                        [](const calendar::Limit&) { return true; },
                        [](const sliding_window_strict::Limit&) { return true; },
                        [](const sliding_window_log::Limit&) { return true; },
                        [](const concurrency::Limit&) { return false; },
                    },
                    limit);
}

Duration LongestLease(const Limit& limit) { return WindowOf(limit) / 2; }

std::uint64_t MostLeased(const Limit& limit, Duration lease) {
  const auto* bucket = std::get_if<token_bucket::Limit>(&limit);
  if (bucket != nullptr) return token_bucket::MostLeased(*bucket, lease);
  return CanLease(limit) ? CapacityOf(limit) : 0;
}

Duration LeaseGoodFor(const Limit& limit, const Decision& granted, Duration lease) {
  const bool in_window = std::holds_alternative<fixed_window::Limit>(limit) ||
                         std::holds_alternative<calendar::Limit>(limit);
  return in_window ? std::min(lease, granted.reset_after) : lease;
}

}  // namespace sluice
