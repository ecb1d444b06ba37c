#include "sluice/store/memory/internal/snapshot_state.h"

#include <algorithm>
#include <limits>

#include "sluice/base/int128.h"
#include "sluice/store/memory/internal/line.h"
#include "sluice/store/memory/internal/snapshot_bytes.h"

namespace sluice::memory {
namespace {

// The number nearest to `value` that 64 bits hold: time ends there.
std::int64_t Narrowed(Int128 value) {
  using Limits = std::numeric_limits<std::int64_t>;
  return static_cast<std::int64_t>(std::clamp(value, Int128{Limits::min()}, Int128{Limits::max()}));
}

std::int64_t Relative(std::int64_t instant_ns, Now now) {
  return Narrowed(Int128{instant_ns} - now.steady.time_since_epoch().count());
}

// The limit by which a word is an instant in ticks; null for the others.
const token_bucket::Limit* PaceOf(const Limit& limit) {
  if (const auto* token = std::get_if<token_bucket::Limit>(&limit)) return token;
  if (const auto* leaky = std::get_if<leaky_bucket::Limit>(&limit)) return &leaky->pace;
  return nullptr;
}

// The number of the step that begins at `ns`, or of the next one to begin.
std::int64_t StepsUp(std::int64_t ns, Duration step) {
  return ns / step.count() + static_cast<std::int64_t>(ns % step.count() > 0);
}

std::int64_t Instant(std::int64_t steps, Duration step) {
  return Narrowed(Int128{steps} * step.count());
}

void PutSmall(std::string& out, const SmallState& state, const Limit& limit, Now now) {
  if (const auto* const window = std::get_if<fixed_window::State>(&state)) {
    const bool steady =
        std::get<fixed_window::Limit>(limit).align == fixed_window::Align::kFirstHit;
    PutI64(out, steady ? Relative(window->window, now) : window->window);
    PutU64(out, window->used);
  } else if (const auto* const counter = std::get_if<sliding_window_counter::State>(&state)) {
    PutI64(out, counter->window);
    PutU64(out, counter->previous);
    PutU64(out, counter->current);
  } else if (const auto* const period = std::get_if<calendar::State>(&state)) {
    PutI64(out, period->start);
    PutI64(out, period->end);
    PutU64(out, period->used);
  }
}

SmallState TakeSmall(SnapshotInput& input, const Limit& limit, const Restored& at) {
  if (const auto* const fixed = std::get_if<fixed_window::Limit>(&limit)) {
    const std::int64_t window = input.I64();
    const bool steady = fixed->align == fixed_window::Align::kFirstHit;
    return fixed_window::State{.window = steady ? at.SteadyNs(window) : window,
                               .used = input.U64()};
  }
  if (std::holds_alternative<sliding_window_counter::Limit>(limit)) {
    const std::int64_t window = input.I64();
    const std::uint64_t previous = input.U64();
    return sliding_window_counter::State{
        .window = window, .previous = previous, .current = input.U64()};
  }
  const std::int64_t start = input.I64();
  const std::int64_t end = input.I64();
  return calendar::State{.start = start, .end = end, .used = input.U64()};
}

// The counters of a strict counter, the oldest first.
template <typename F>
void ForEachCount(const sliding_window_strict::View& state, const F& what) {
  const auto size = static_cast<std::int64_t>(state.counts.size());
  std::int64_t at = (state.newest + 1) % size;  // newest - size + 1, modulo size
  if (at < 0) at += size;
  for (std::int64_t i = 0; i < size; ++i) {
    what(state.counts[static_cast<std::size_t>(at)]);
    if (++at == size) at = 0;
  }
}

void PutStrict(std::string& out, const sliding_window_strict::Limit& limit, StrictImage& image,
               Now now) {
  const sliding_window_strict::View state = image.View(limit);
  PutI64(out, Relative(Instant(state.newest, limit.step), now));
  ForEachCount(state, [&](std::uint64_t count) { PutVarint(out, count); });
}

void TakeStrict(SnapshotInput& input, const sliding_window_strict::Limit& limit, const Restored& at,
                StrictImage& image) {
  const sliding_window_strict::View state = image.View(limit);
  state.newest = StepsUp(at.SteadyNs(input.I64()), limit.step);
  ForEachCount(state, [&](std::uint64_t& count) { count = input.Varint(); });
}

void PutLog(std::string& out, const sliding_window_log::Limit& limit, const LogImage& log,
            Now now) {
  const std::int64_t newest = StepsUp(log.newest.time_since_epoch().count(), limit.tick);
  PutI64(out, Relative(Instant(newest, limit.tick), now));
  PutVarint(out, log.events.size());
  for (const sliding_window_log::Event& event : log.events) {
    PutU32(out, static_cast<std::uint32_t>(newest) - event.stamp);
    if (limit.weighted) PutU32(out, event.cost);
  }
}

void TakeLog(SnapshotInput& input, const sliding_window_log::Limit& limit, const Restored& at,
             LogImage& log) {
  constexpr std::uint64_t kMostUnits = 4 * std::uint64_t{sliding_window_log::kMaxLimit};
  const std::int64_t newest = StepsUp(at.SteadyNs(input.I64()), limit.tick);
  log = {.events = std::move(log.events), .newest = Time{Duration{Instant(newest, limit.tick)}}};
  log.events.clear();
  for (std::uint64_t left = input.Varint(); left > 0 && input.ok(); --left) {
    const std::uint32_t age = input.U32();
    const std::uint32_t cost = limit.weighted ? input.U32() : 1;
    log.units += cost;
    if (cost == 0 || log.units > kMostUnits) return input.Fail("has an impossible log");
    log.events.push_back({.stamp = static_cast<std::uint32_t>(newest) - age, .cost = cost});
  }
}

}  // namespace

Restored::Restored(Now read_at, WallTime written_at)
    : now(read_at),
      passed(std::max<std::int64_t>(0, Narrowed(Int128{read_at.wall.time_since_epoch().count()} -
                                                written_at.time_since_epoch().count()))),
      latest_wall(std::max(read_at.wall, written_at)) {}

std::int64_t Restored::SteadyNs(std::int64_t relative) const {
  constexpr Int128 kEnd = Int128{1} << 62;
  const Int128 ns = Int128{now.steady.time_since_epoch().count()} - passed.count() + relative;
  return static_cast<std::int64_t>(std::clamp(ns, -kEnd, kEnd));
}

void PutWord(std::string& out, const Limit& limit, std::uint64_t word, Now now) {
  if (const auto* const pace = PaceOf(limit)) {
    PutI64(out, Narrowed(Int128{static_cast<std::int64_t>(word)} -
                         token_bucket::TicksAt(*pace, now.steady)));
  } else {
    PutU64(out, word);
  }
}

std::uint64_t TakeWord(SnapshotInput& input, const Limit& limit, const Restored& at) {
  const std::uint64_t written = input.U64();
  if (const auto* const pace = PaceOf(limit)) {
    // Nothing owes more than a forced charge may: the sum below then fits.
    const std::int64_t debt = std::min(static_cast<std::int64_t>(written), 2 * pace->capacity);
    const Int128 left = Int128{debt} - Int128{at.passed.count()} * pace->ticks_per_ns;
    if (left <= 0) return 0;
    return static_cast<std::uint64_t>(token_bucket::TicksAt(*pace, at.now.steady) +
                                      static_cast<std::int64_t>(left));
  }
  if (written == kBusy) input.Fail("has an impossible state");
  return written;
}

void PutImage(std::string& out, const Limit& limit, OutsideImage& image, Now now) {
  if (const auto* const log = std::get_if<sliding_window_log::Limit>(&limit)) {
    PutLog(out, *log, std::get<LogImage>(image), now);
  } else if (const auto* const strict = std::get_if<sliding_window_strict::Limit>(&limit)) {
    PutStrict(out, *strict, std::get<StrictImage>(image), now);
  } else {
    PutSmall(out, std::get<SmallState>(image), limit, now);
  }
}

void TakeImage(SnapshotInput& input, const Limit& limit, const Restored& at, OutsideImage& image) {
  if (const auto* const log = std::get_if<sliding_window_log::Limit>(&limit)) {
    if (!std::holds_alternative<LogImage>(image)) image.emplace<LogImage>();
    TakeLog(input, *log, at, std::get<LogImage>(image));
  } else if (const auto* const strict = std::get_if<sliding_window_strict::Limit>(&limit)) {
    TakeStrict(input, *strict, at, image.emplace<StrictImage>());
  } else {
    image = TakeSmall(input, limit, at);
  }
}

}  // namespace sluice::memory
