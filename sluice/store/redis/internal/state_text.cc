#include "sluice/store/redis/internal/state_text.h"

#include <variant>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "sluice/store/redis/internal/text_reader.h"
#include "sluice/store/redis/internal/whole_numbers.h"

namespace sluice::redis {
namespace {

constexpr std::int64_t kNsInUs = 1000;
constexpr std::int64_t kNsInS = 1'000'000'000;

absl::Status Damaged() { return absl::DataLossError("a state that is damaged"); }

std::int64_t TicksInUs(const token_bucket::Limit& pace) { return pace.ticks_per_ns * kNsInUs; }

const token_bucket::Limit* PaceOf(const Limit& limit) {
  if (const auto* queue = std::get_if<leaky_bucket::Limit>(&limit)) return &queue->pace;
  return std::get_if<token_bucket::Limit>(&limit);
}

struct Bucket {
  std::int64_t instant = 0;  // in ticks, all three
  std::uint64_t undone = 0;
  std::int64_t lease_end = 0;
};

absl::StatusOr<Bucket> ReadBucket(const token_bucket::Limit& pace, TextReader& text) {
  const std::int64_t in_us = TicksInUs(pace);
  std::int64_t undone_us = 0;
  std::int64_t undone_ticks = 0;
  std::int64_t ticks = 0;
  std::int64_t lease_us = 0;
  const std::int64_t us = text.Count();
  if (text.Take(" ")) {
    ticks = text.Count();
    undone_us = text.Skip(" ").Count();
    undone_ticks = text.Skip(" ").Count();
    if (text.Take(" ")) lease_us = text.Count();
  }
  const bool below_us = ticks < in_us && undone_ticks < in_us;
  if (!text.done() || !below_us || us > kMaxInt64 / in_us - 1 || lease_us > us ||
      undone_us > (1LL << 50)) {
    return Damaged();
  }
  return Bucket{
      .instant = us * in_us + ticks,
      .undone = static_cast<std::uint64_t>(undone_us) * static_cast<std::uint64_t>(in_us) +
                static_cast<std::uint64_t>(undone_ticks),
      .lease_end = lease_us * in_us};
}

std::string WriteBucket(const token_bucket::Limit& pace, Bucket bucket) {
  const Instant at = InstantOf(pace, static_cast<std::uint64_t>(bucket.instant));
  if (at.ticks == 0 && bucket.undone == 0 && bucket.lease_end == 0) return absl::StrCat(at.us);
  const Instant undone = InstantOf(pace, bucket.undone);
  std::string text = absl::StrCat(at.us, " ", at.ticks, " ", undone.us, " ", undone.ticks);
  if (bucket.lease_end > 0) {
    absl::StrAppend(&text, " ", InstantOf(pace, static_cast<std::uint64_t>(bucket.lease_end)).us);
  }
  return text;
}

// A time of `number` units of `ns` each, where that fits.
absl::StatusOr<std::int64_t> Times(std::int64_t number, std::int64_t ns) {
  if (number > kMaxInt64 / ns) return Damaged();
  return number * ns;
}

absl::StatusOr<SmallState> ReadFixed(const fixed_window::Limit& limit, TextReader& text) {
  absl::StatusOr<std::int64_t> window = text.Count();
  const auto used = static_cast<std::uint64_t>(text.Skip(" ").Count());
  if (!text.done()) return Damaged();
  if (limit.align == fixed_window::Align::kFirstHit) window = Times(*window, kNsInUs);
  if (!window.ok()) return window.status();
  return fixed_window::State{.window = *window, .used = used};
}

absl::StatusOr<SmallState> ReadCounter(TextReader& text) {
  const std::int64_t window = text.Count();
  const auto previous = static_cast<std::uint64_t>(text.Skip(" ").Count());
  const auto current = static_cast<std::uint64_t>(text.Skip(" ").Count());
  if (!text.done()) return Damaged();
  return sliding_window_counter::State{window, previous, current};
}

absl::StatusOr<SmallState> ReadCalendar(TextReader& text) {
  const absl::StatusOr<std::int64_t> start = Times(text.Count(), kNsInS);
  const absl::StatusOr<std::int64_t> end = Times(text.Skip(" ").Count(), kNsInS);
  const auto used = static_cast<std::uint64_t>(text.Skip(" ").Count());
  if (!text.done() || !start.ok() || !end.ok()) return Damaged();
  return calendar::State{.start = *start, .end = *end, .used = used};
}

absl::StatusOr<SmallState> ReadCounted(const Limit& limit, TextReader& text) {
  if (const auto* fixed = std::get_if<fixed_window::Limit>(&limit)) return ReadFixed(*fixed, text);
  if (std::holds_alternative<sliding_window_counter::Limit>(limit)) return ReadCounter(text);
  if (std::holds_alternative<calendar::Limit>(limit)) return ReadCalendar(text);
  return Damaged();
}

std::string Text(const Limit& limit, const SmallText& state) {
  const token_bucket::Limit* const pace = PaceOf(limit);
  if (const auto* s = std::get_if<token_bucket::State>(&state.state)) {
    return WriteBucket(*pace, {s->tat, state.undone, state.lease_end});
  }
  if (const auto* s = std::get_if<leaky_bucket::State>(&state.state)) {
    return WriteBucket(*pace, {s->next_free, 0});
  }
  if (const auto* s = std::get_if<fixed_window::State>(&state.state)) {
    const bool first_hit =
        std::get<fixed_window::Limit>(limit).align == fixed_window::Align::kFirstHit;
    return absl::StrCat(first_hit ? s->window / kNsInUs : s->window, " ", s->used);
  }
  if (const auto* s = std::get_if<sliding_window_counter::State>(&state.state)) {
    return absl::StrCat(s->window, " ", s->previous, " ", s->current);
  }
  const auto& s = std::get<calendar::State>(state.state);
  return absl::StrCat(s.start / kNsInS, " ", s.end / kNsInS, " ", s.used);
}

}  // namespace

Instant InstantOf(const token_bucket::Limit& pace, std::uint64_t ticks) {
  const auto in_us = static_cast<std::uint64_t>(TicksInUs(pace));
  return {static_cast<std::int64_t>(ticks / in_us), static_cast<std::int64_t>(ticks % in_us)};
}

absl::StatusOr<SmallText> ReadSmall(const Limit& limit, std::string_view text) {
  if (text.empty()) return SmallText{};
  TextReader reader(text);
  if (const token_bucket::Limit* const pace = PaceOf(limit)) {
    const absl::StatusOr<Bucket> bucket = ReadBucket(*pace, reader);
    if (!bucket.ok()) return bucket.status();
    if (std::holds_alternative<token_bucket::Limit>(limit)) {
      return SmallText{token_bucket::State{bucket->instant}, bucket->undone, bucket->lease_end};
    }
    return SmallText{leaky_bucket::State{bucket->instant}};
  }
  const absl::StatusOr<SmallState> state = ReadCounted(limit, reader);
  if (!state.ok()) return state.status();
  return SmallText{*state};
}

std::string WriteSmall(const ScriptLimit& limit, const SmallText& state) {
  if (std::holds_alternative<std::monostate>(state.state)) return {};
  return absl::StrCat(std::string(limit.prefix()), Text(limit.limit(), state));
}

absl::StatusOr<StrictText> ReadStrict(const sliding_window_strict::Limit& limit,
                                      std::string_view text) {
  StrictText read;
  if (text.empty()) return read;
  TextReader reader(text);
  read.newest = reader.Count();
  const auto size = static_cast<std::int64_t>(sliding_window_strict::LeasedCounts(limit));
  for (std::int64_t i = 0; reader.Take(" "); ++i) {
    const std::int64_t count = reader.Count();
    if (i >= size || !reader.ok()) return Damaged();
    read.counts[static_cast<std::size_t>(FloorMod(read.newest - i, size))] =
        static_cast<std::uint64_t>(count);
  }
  if (!reader.done()) return Damaged();
  return read;
}

std::string WriteStrict(const ScriptLimit& limit, StrictText state) {
  const auto& strict = std::get<sliding_window_strict::Limit>(limit.limit());
  const sliding_window_strict::View view = state.ViewOf(strict);
  const auto size = static_cast<std::int64_t>(view.counts.size());
  std::string text = absl::StrCat(std::string(limit.prefix()), state.newest);
  std::size_t end = 0;  // behind the last that is not zero
  for (std::int64_t i = 0; i < size; ++i) {
    const std::uint64_t count =
        view.counts[static_cast<std::size_t>(FloorMod(state.newest - i, size))];
    absl::StrAppend(&text, " ", count);
    if (count > 0) end = text.size();
  }
  text.resize(end);
  return text;
}

}  // namespace sluice::redis
