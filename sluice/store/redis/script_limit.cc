#include "sluice/store/redis/script_limit.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "sluice/algorithm/packed.h"
#include "sluice/algorithm/remote_bounds.h"
#include "sluice/store/redis/internal/text_reader.h"
#include "sluice/store/redis/internal/whole_numbers.h"

namespace sluice::redis {
namespace {

constexpr Duration kEpoch = std::chrono::seconds{1'735'689'600};  // 2025-01-01 00:00 UTC
constexpr std::int64_t kNsInUs = 1000;

template <typename... Fs>
struct Overloaded : Fs... {
  using Fs::operator()...;
};
template <typename... Fs>
Overloaded(Fs...) -> Overloaded<Fs...>;

std::int64_t UsUp(Duration length) {
  return length.count() / kNsInUs + static_cast<std::int64_t>(length.count() % kNsInUs > 0);
}
std::int64_t UsDown(Duration length) { return length.count() / kNsInUs; }
Duration WholeUp(Duration length) { return Duration{UsUp(length) * kNsInUs}; }

// "6e10" for 60000000000: most of these numbers are round.
std::string Short(std::uint64_t number) {
  int zeros = 0;
  std::uint64_t digits = number;
  while (digits > 0 && digits % 10 == 0) {
    digits /= 10;
    ++zeros;
  }
  return zeros > 2 ? absl::StrCat(digits, "e", zeros) : absl::StrCat(number);
}
std::string Short(std::int64_t number) { return Short(static_cast<std::uint64_t>(number)); }

std::string Pace(const token_bucket::Limit& l) {
  return absl::StrCat(Short(l.rate.count), "/", Short(l.rate.period.count()), "/", Short(l.burst),
                      " ");
}
std::string Edges(Duration window, Duration offset, bool per_key) {
  return absl::StrCat(Short(UsUp(window)), "/", Short(UsDown(offset)), per_key ? "p " : " ");
}
std::int64_t LogTickUs(const sliding_window_log::Limit& l) { return UsUp(l.tick); }
// How long an event counts.
std::int64_t LogLengthUs(const sliding_window_log::Limit& l) {
  const std::int64_t ticks = CeilDiv(l.window.count(), l.tick.count());
  return UsUp(l.tick * ticks);
}

std::string PrefixOf(const Limit& limit) {
  return std::visit(
      Overloaded{
          [](const token_bucket::Limit& l) { return absl::StrCat("1t", Pace(l)); },
          [](const leaky_bucket::Limit& l) { return absl::StrCat("1l", Pace(l.pace)); },
          [](const fixed_window::Limit& l) {
            if (l.align == fixed_window::Align::kFirstHit) {
              return absl::StrCat("1f", Short(UsUp(l.window)), " ");
            }
            return absl::StrCat("1w", Edges(l.window, l.offset, l.per_key_offset));
          },
          [](const sliding_window_counter::Limit& l) {
            return absl::StrCat("1c", Edges(l.window, l.offset, l.per_key_offset));
          },
          [](const calendar::Limit& l) {
            return absl::StrCat("1q", std::string(1, "dwmy"[static_cast<int>(l.period)]), "/",
                                l.zone_name, " ");
          },
          [](const sliding_window_strict::Limit& l) {
            return absl::StrCat("1s", Short(UsUp(l.step)), "/", l.sub_windows, " ");
          },
          // The script reads these itself, so they are plain.
          [](const sliding_window_log::Limit& l) {
            return absl::StrCat("1g", LogLengthUs(l), ",", LogTickUs(l), " ");
          },
          [](const concurrency::Limit&) { return std::string("1n"); },
      },
      limit);
}

// The limit with lengths of whole microseconds.
Limit Whole(const Limit& limit) {
  Limit whole = limit;
  std::visit(
      Overloaded{[](token_bucket::Limit&) {}, [](leaky_bucket::Limit&) {}, [](calendar::Limit&) {},
                 [](fixed_window::Limit& l) {
                   l.window = WholeUp(l.window);
                   l.offset = Duration{UsDown(l.offset) * kNsInUs};
                 },
                 [](sliding_window_counter::Limit& l) {
                   l.window = WholeUp(l.window);
                   l.offset = Duration{UsDown(l.offset) * kNsInUs};
                 },
                 [](sliding_window_strict::Limit& l) { l.step = WholeUp(l.step); },
                 [](sliding_window_log::Limit& l) { l.window = WholeUp(l.window); },
                 [](concurrency::Limit& l) { l.slot_ttl = WholeUp(l.slot_ttl); }},
      whole);
  return whole;
}

void SetBucket(const token_bucket::Limit& pace, std::int64_t room_ticks,
               std::array<std::int64_t, ScriptLimit::kNumbers>& numbers) {
  const std::int64_t in_us = pace.ticks_per_ns * kNsInUs;
  const Int128 most = Int128{pace.capacity} * 2;
  numbers = {room_ticks / in_us,
             room_ticks % in_us,
             in_us,
             static_cast<std::int64_t>(most / in_us),
             static_cast<std::int64_t>(most % in_us),
             -1};
}

}  // namespace

Now NowOf(std::int64_t wall_us) {
  const Duration since_1970{wall_us * kNsInUs};
  return {.steady = Time{since_1970 - kEpoch}, .wall = WallTime{since_1970}};
}

std::int64_t SteadyUs(Time at) { return at.time_since_epoch().count() / kNsInUs; }

ScriptLimit::ScriptLimit(Limit limit, std::string prefix)
    : limit_(std::move(limit)), prefix_(std::move(prefix)) {
  const std::uint64_t capacity = CapacityOf(limit_);
  constexpr std::uint64_t kMost = std::numeric_limits<std::uint64_t>::max();
  most_debt_ = capacity > kMost / 2 ? kMost : 2 * capacity;
  numbers_[0] = static_cast<std::int64_t>(capacity);
  numbers_[1] = static_cast<std::int64_t>(most_debt_);
  std::visit(Overloaded{
                 [this](const token_bucket::Limit& l) { SetBucket(l, l.capacity, numbers_); },
                 [this](const leaky_bucket::Limit& l) { SetBucket(l.pace, l.max_delay, numbers_); },
                 [this](const fixed_window::Limit& l) {
                   numbers_[2] = UsUp(l.window);
                   numbers_[3] = UsDown(l.offset);
                 },
                 [this](const sliding_window_counter::Limit& l) {
                   numbers_[2] = UsUp(l.window);
                   numbers_[3] = UsDown(l.offset);
                 },
                 [](const calendar::Limit&) {},
                 [this](const sliding_window_strict::Limit& l) {
                   numbers_[2] = UsUp(l.step);
                   numbers_[3] = l.sub_windows;
                 },
                 [this](const sliding_window_log::Limit& l) {
                   numbers_[2] = LogLengthUs(l);
                   numbers_[3] = LogTickUs(l);
                 },
                 [this](const concurrency::Limit& l) {
                   numbers_[2] = UsUp(l.slot_ttl);
                   numbers_[3] = UsUp(kSlotBound);
                 },
             },
             limit_);
}

absl::StatusOr<ScriptLimit> ScriptLimit::Make(const Limit& limit) {
  if (absl::Status status = FitsRemote(limit); !status.ok()) return status;
  return ScriptLimit(Whole(limit), PrefixOf(limit));
}

Duration ScriptLimit::PhaseOf(std::uint32_t bits) const {
  return Duration{UsDown(sluice::PhaseOf(limit_, bits)) * kNsInUs};
}

namespace {

// What stands behind version and letter, up to the blank.
absl::StatusOr<Limit> Parse(char letter, TextReader& text) {
  constexpr auto kUnits = static_cast<std::int64_t>(kMostRemoteUnits);
  switch (letter) {
    case 't':
    case 'l': {
      const std::int64_t count = text.ShortNumber();
      const std::int64_t period = text.Skip("/").ShortNumber();
      const std::uint64_t burst = static_cast<std::uint64_t>(text.Skip("/").ShortNumber());
      if (!text.ok()) break;
      auto pace = token_bucket::MakeLimit({.count = count, .period = Duration{period}}, burst);
      if (!pace.ok()) return pace.status();
      if (letter == 't') return *pace;
      return leaky_bucket::Limit{.pace = *pace, .max_delay = 0, .max_cost = burst};
    }
    case 'f': {
      const Duration window{text.ShortUs()};
      if (!text.ok()) break;
      return fixed_window::MakeLimit(kUnits, window, fixed_window::Align::kFirstHit);
    }
    case 'w':
    case 'c': {
      const Duration window{text.ShortUs()};
      const Duration offset{text.Skip("/").ShortUs()};
      const bool per_key = text.Take("p");
      if (!text.ok()) break;
      if (letter == 'w') {
        auto made = fixed_window::MakeLimit(kUnits, window, fixed_window::Align::kClock, offset);
        if (made.ok()) made->per_key_offset = per_key;
        return made;
      }
      auto made = sliding_window_counter::MakeLimit(kUnits, window, offset);
      if (made.ok()) made->per_key_offset = per_key;
      return made;
    }
    case 'q': {
      const std::string_view period = text.Until('/');
      const std::size_t which = std::string_view("dwmy").find(period);
      const std::string_view zone = text.Skip("/").Until(' ');
      if (!text.ok() || period.size() != 1 || which == std::string_view::npos) break;
      return calendar::MakeLimit(kUnits, static_cast<calendar::Period>(which), zone);
    }
    case 's': {
      const Duration step{text.ShortUs()};
      const std::int64_t count = text.Skip("/").ShortNumber();
      if (!text.ok() || count > sliding_window_strict::kMaxSubWindows ||
          step > Duration::max() / 64) {
        break;
      }
      return sliding_window_strict::MakeLimit(kUnits, step * count, static_cast<int>(count));
    }
    case 'g': {
      const Duration length{text.ShortUs()};
      (void)text.Skip(",").ShortNumber();
      if (!text.ok()) break;
      return sliding_window_log::MakeLimit(sliding_window_log::kMaxLimit, length, true);
    }
    default:
      break;
  }
  return absl::DataLossError("a state whose numbers cannot be read");
}

}  // namespace

absl::StatusOr<Limit> LimitOf(std::string_view text, std::size_t* prefix_size) {
  if (text.size() < 2 || text[0] != '1') {
    return absl::DataLossError("a state that this version of Sluice does not know");
  }
  TextReader reader(text.substr(2));
  absl::StatusOr<Limit> limit = Parse(text[1], reader);
  if (!limit.ok()) return absl::DataLossError(limit.status().message());
  if (!reader.Take(" ")) return absl::DataLossError("a state whose numbers cannot be read");
  *prefix_size = text.size() - reader.rest().size();
  return limit;
}

}  // namespace sluice::redis
