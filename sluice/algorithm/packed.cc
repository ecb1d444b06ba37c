#include "sluice/algorithm/packed.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <type_traits>

#include "sluice/algorithm/internal/arithmetic.h"

namespace sluice {
namespace {

// Window numbers are kept two higher: an offset and a key's phase may put 1970 two windows below 0.
constexpr std::int64_t kNumberBias = 2;

int CounterBits(std::uint64_t limit) {
  return std::bit_width(std::max(std::uint64_t{1}, internal::SaturatedAdd(limit, limit)));
}

// How many windows there are from 1970 to the end of WallTime.
std::uint64_t LastNumber(Duration window) {
  return static_cast<std::uint64_t>(internal::kMaxInt64 / window.count()) + 2 + kNumberBias;
}

bool Fits(std::uint64_t limit, Duration window, int counters) {
  return counters * CounterBits(limit) + std::bit_width(LastNumber(window)) <= 64;
}

// Where a window's number and its counters lie in a word, the last counter lowest.
struct Layout {
  int bits;  // of one counter
  std::uint64_t most;

  explicit Layout(std::uint64_t limit)
      : bits(CounterBits(limit)), most((std::uint64_t{1} << bits) - 1) {}
};

Now NotBefore1970(Now now, Duration window) {
  return {now.steady, std::max(now.wall, WallTime{-window})};
}

// One algorithm's states as words: Packing<L> has State, Clock, Unpack and Pack.
template <typename L>
struct Packing;

template <>
struct Packing<token_bucket::Limit> {
  using State = token_bucket::State;
  static Time Clock(const token_bucket::Limit&, Now now) { return now.steady; }
  static State Unpack(const token_bucket::Limit&, std::uint64_t word) {
    return {static_cast<std::int64_t>(word)};
  }
  static std::uint64_t Pack(const token_bucket::Limit&, const State& state) {
    return static_cast<std::uint64_t>(state.tat);
  }
  static std::uint64_t Most(const token_bucket::Limit&) { return internal::kMaxUint64; }
};

template <>
struct Packing<leaky_bucket::Limit> {
  using State = leaky_bucket::State;
  static Time Clock(const leaky_bucket::Limit&, Now now) { return now.steady; }
  static State Unpack(const leaky_bucket::Limit&, std::uint64_t word) {
    return {static_cast<std::int64_t>(word)};
  }
  static std::uint64_t Pack(const leaky_bucket::Limit&, const State& state) {
    return static_cast<std::uint64_t>(state.next_free);
  }
  static std::uint64_t Most(const leaky_bucket::Limit&) { return internal::kMaxUint64; }
};

template <>
struct Packing<fixed_window::Limit> {
  using State = fixed_window::State;
  static Now Clock(const fixed_window::Limit& limit, Now now) {
    return NotBefore1970(now, limit.window);
  }
  static State Unpack(const fixed_window::Limit& limit, std::uint64_t word) {
    const Layout layout(limit.limit);
    return {.window = static_cast<std::int64_t>(word >> layout.bits) - kNumberBias,
            .used = word & layout.most};
  }
  static std::uint64_t Pack(const fixed_window::Limit& limit, const State& state) {
    const Layout layout(limit.limit);
    if (state.used == 0) return 0;
    return static_cast<std::uint64_t>(state.window + kNumberBias) << layout.bits |
           std::min(state.used, layout.most);
  }
  static std::uint64_t Most(const fixed_window::Limit& limit) { return Layout(limit.limit).most; }
};

template <>
struct Packing<sliding_window_counter::Limit> {
  using State = sliding_window_counter::State;
  static Now Clock(const sliding_window_counter::Limit& limit, Now now) {
    return NotBefore1970(now, limit.window);
  }
  static State Unpack(const sliding_window_counter::Limit& limit, std::uint64_t word) {
    const Layout layout(limit.limit);
    return {.window = static_cast<std::int64_t>(word >> 2 * layout.bits) - kNumberBias,
            .previous = word >> layout.bits & layout.most,
            .current = word & layout.most};
  }
  static std::uint64_t Pack(const sliding_window_counter::Limit& limit, const State& state) {
    const Layout layout(limit.limit);
    if (state.previous == 0 && state.current == 0) return 0;
    return static_cast<std::uint64_t>(state.window + kNumberBias) << 2 * layout.bits |
           std::min(state.previous, layout.most) << layout.bits |
           std::min(state.current, layout.most);
  }
  static std::uint64_t Most(const sliding_window_counter::Limit& limit) {
    return Layout(limit.limit).most;
  }
};

template <typename L>
concept IsPacked = requires {
  typename Packing<L>::State;
};

template <typename Result, typename F>
Result VisitPacked(const Limit& limit, const F& what) {
  return std::visit(
      [&]<typename L>(const L& concrete) -> Result {
        if constexpr (IsPacked<L>) {
          return what(concrete);
        } else {
          assert(false && "FitsWord(limit) is required");
          return Result{};
        }
      },
      limit);
}

template <typename L>
Step<std::uint64_t> Packed(const L& limit, std::uint64_t word,
                           const typename Packing<L>::State& given,
                           const Step<typename Packing<L>::State>& step) {
  return {.decision = step.decision,
          .next = step.next == given ? word : Packing<L>::Pack(limit, step.next),
          .receipt = step.receipt,
          .damaged = step.damaged};
}

}  // namespace

bool FitsWord(const Limit& limit) {
  if (std::holds_alternative<token_bucket::Limit>(limit) ||
      std::holds_alternative<leaky_bucket::Limit>(limit)) {
    return true;
  }
  if (const auto* window = std::get_if<fixed_window::Limit>(&limit)) {
    return window->align == fixed_window::Align::kClock && Fits(window->limit, window->window, 1);
  }
  if (const auto* window = std::get_if<sliding_window_counter::Limit>(&limit)) {
    return Fits(window->limit, window->window, 2);
  }
  return false;
}

Step<std::uint64_t> internal::DecideOtherWord(const Limit& limit, std::uint64_t word,
                                              std::uint64_t cost, Now now) {
  return VisitPacked<Step<std::uint64_t>>(limit, [&]<typename L>(const L& l) {
    const auto given = Packing<L>::Unpack(l, word);
    return Packed(l, word, given, Decide(l, given, cost, Packing<L>::Clock(l, now)));
  });
}

Step<std::uint64_t> ChargeWord(const Limit& limit, std::uint64_t word, std::uint64_t cost, Now now,
                               std::uint64_t max_debt) {
  return VisitPacked<Step<std::uint64_t>>(limit, [&]<typename L>(const L& l) {
    const auto given = Packing<L>::Unpack(l, word);
    return Packed(
        l, word, given,
        Charge(l, given, cost, Packing<L>::Clock(l, now), std::min(max_debt, Packing<L>::Most(l))));
  });
}

WordUndone UndoWord(const Limit& limit, std::uint64_t word, const Receipt& receipt,
                    std::uint64_t units, Now now, std::uint64_t undone) {
  return VisitPacked<WordUndone>(limit, [&]<typename L>(const L& l) -> WordUndone {
    const auto given = Packing<L>::Unpack(l, word);
    if constexpr (std::is_same_v<L, token_bucket::Limit>) {
      const auto [next, ticks] = Undo(l, given, receipt, units, now.steady, undone);
      return {Packing<L>::Pack(l, next), ticks};
    } else {
      const auto next = Undo(l, given, receipt, units, Packing<L>::Clock(l, now));
      return {next == given ? word : Packing<L>::Pack(l, next), 0};
    }
  });
}

std::uint64_t DebtOfWord(const Limit& limit, std::uint64_t word, Now now) {
  return VisitPacked<std::uint64_t>(limit, [&]<typename L>(const L& l) {
    return Debt(l, Packing<L>::Unpack(l, word), Packing<L>::Clock(l, now));
  });
}

std::uint64_t ConvertWord(const Limit& from, std::uint64_t word, const Limit& to, Now now) {
  const std::uint64_t debt = DebtOfWord(from, word, now);
  if (debt == 0) return 0;
  return VisitPacked<std::uint64_t>(to, [&]<typename L>(const L& l) {
    const L* same = std::get_if<L>(&from);
    if (same == nullptr) return WordOwing(to, debt, now);
    return Packing<L>::Pack(
        l, Convert(*same, Packing<L>::Unpack(*same, word), l, Packing<L>::Clock(l, now)));
  });
}

std::uint64_t WordOwing(const Limit& limit, std::uint64_t used, Now now) {
  return VisitPacked<std::uint64_t>(limit, [&]<typename L>(const L& l) {
    return Packing<L>::Pack(l, Owing(l, used, Packing<L>::Clock(l, now)));
  });
}

Duration PhaseOf(const Limit& limit, std::uint32_t bits) {
  const auto phase = [bits](Duration window) {
    return Duration{static_cast<std::int64_t>(
        Uint128{static_cast<std::uint64_t>(window.count())} * bits >> 32)};
  };
  if (const auto* window = std::get_if<fixed_window::Limit>(&limit)) {
    const bool own = window->per_key_offset && window->align == fixed_window::Align::kClock;
    return own ? phase(window->window) : Duration{0};
  }
  if (const auto* window = std::get_if<sliding_window_counter::Limit>(&limit)) {
    return window->per_key_offset ? phase(window->window) : Duration{0};
  }
  return Duration{0};
}

}  // namespace sluice
