#include "sluice/store/memory/internal/outside_state.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "sluice/store/memory/internal/event_log.h"
#include "sluice/store/memory/internal/strict_counts.h"

namespace sluice::memory {
namespace {

using LogLimit = sliding_window_log::Limit;
using StrictLimit = sliding_window_strict::Limit;

static_assert(sizeof(SmallState) <= sizeof(Block::cells));

OutsideAnswer AnswerOf(const Step<SmallState>& step) {
  return {step.decision, step.receipt, step.damaged};
}
OutsideAnswer AnswerOf(const sliding_window_strict::Answer& answer) {
  return {answer.decision, answer.receipt};
}

struct EmptyLog {
  [[nodiscard]] static std::uint64_t size() { return 0; }
  [[nodiscard]] static std::uint64_t sum() { return 0; }
  [[nodiscard]] static Time latest() { return {}; }
  [[nodiscard]] static sliding_window_log::Event at(std::uint64_t) { return {}; }
};

}  // namespace

SmallState LoadSmall(const BlockArena& arena, BlockNumber head) {
  SmallState state;
  std::memcpy(&state, arena.at(head).cells, sizeof state);
  return state;
}

void StoreSmall(BlockArena& arena, BlockNumber head, const SmallState& state) {
  std::memcpy(arena.at(head).cells, &state, sizeof state);
}

std::uint64_t OutsideStates::MaxBlocks(const Limit& limit) {
  if (const auto* log = std::get_if<LogLimit>(&limit)) {
    // Forced charges go up to twice the limit; the head and a block half left come on top.
    const std::uint64_t per_block = log->weighted ? kCellsPerBlock / 2 : kCellsPerBlock;
    return 2 * log->limit / per_block + 3;
  }
  if (const auto* strict = std::get_if<StrictLimit>(&limit)) {
    return StrictCounts::BlocksNeeded(*strict);
  }
  return 1;
}

BlockNumber OutsideStates::TakeBlock(Now now) {
  for (;;) {
    if (const BlockNumber block = arena_.Take(); block != 0) return block;
    if (!source_.MakeFreeBlock(now)) return 0;
  }
}

BlockNumber OutsideStates::Create(const Limit& limit, Now now) {
  const BlockNumber head = TakeBlock(now);
  if (head == 0) return 0;
  if (std::holds_alternative<LogLimit>(limit)) {
    EventLog::Init(arena_, head);
  } else if (const auto* strict = std::get_if<StrictLimit>(&limit)) {
    for (std::uint32_t i = 1; i < StrictCounts::BlocksNeeded(*strict); ++i) {
      const BlockNumber more = TakeBlock(now);
      if (more == 0) {
        arena_.GiveCircle(head);
        return 0;
      }
      arena_.Insert(head, head, more);
    }
  } else {
    StoreSmall(arena_, head, {});
  }
  return head;
}

OutsideAnswer OutsideStates::Decide(const Limit& limit, BlockNumber& head, std::uint64_t cost,
                                    Now now) {
  if (const auto* log = std::get_if<LogLimit>(&limit)) {
    return Log(*log, head, cost, now, /*charge=*/false, 0);
  }
  OutsideAnswer answer;
  if (const auto* strict = std::get_if<StrictLimit>(&limit)) {
    StrictCounts counts(arena_, head, *strict);
    answer = AnswerOf(sliding_window_strict::Decide(*strict, counts.view(), cost, now.steady));
  } else {
    answer = AnswerOf(sluice::Decide(limit, LoadSmall(arena_, head), cost, now));
  }
  answer.receipt = {};
  return answer;
}

OutsideAnswer OutsideStates::Charge(const Limit& limit, BlockNumber& head, std::uint64_t cost,
                                    Now now) {
  if (const auto* log = std::get_if<LogLimit>(&limit)) {
    return Log(*log, head, cost, now, /*charge=*/true, 0);
  }
  if (const auto* strict = std::get_if<StrictLimit>(&limit)) {
    StrictCounts counts(arena_, head, *strict);
    OutsideAnswer answer =
        AnswerOf(sliding_window_strict::Decide(*strict, counts.view(), cost, now.steady));
    if (answer.receipt.units == 0) return answer;
    answer = AnswerOf(
        sliding_window_strict::Charge(*strict, counts.view(), cost, now.steady, strict->limit));
    counts.Store(arena_, head);
    return answer;
  }
  const Step<SmallState> step = sluice::Decide(limit, LoadSmall(arena_, head), cost, now);
  if (step.receipt.units > 0) StoreSmall(arena_, head, step.next);
  return AnswerOf(step);
}

OutsideAnswer OutsideStates::Force(const Limit& limit, BlockNumber& head, std::uint64_t cost,
                                   Now now, std::uint64_t max_debt) {
  if (const auto* log = std::get_if<LogLimit>(&limit)) {
    return Log(*log, head, cost, now, /*charge=*/true, max_debt);
  }
  if (const auto* strict = std::get_if<StrictLimit>(&limit)) {
    StrictCounts counts(arena_, head, *strict);
    const OutsideAnswer answer =
        AnswerOf(sliding_window_strict::Charge(*strict, counts.view(), cost, now.steady, max_debt));
    counts.Store(arena_, head);
    return answer;
  }
  const Step<SmallState> step = sluice::Charge(limit, LoadSmall(arena_, head), cost, now, max_debt);
  StoreSmall(arena_, head, step.next);
  return AnswerOf(step);
}

// `max_debt` 0: only where there is room.
OutsideAnswer OutsideStates::Log(const LogLimit& limit, BlockNumber& head, std::uint64_t cost,
                                 Now now, bool charge, std::uint64_t max_debt) {
  EventLog log(arena_, head, limit.weighted);
  const sliding_window_log::Answer answer =
      max_debt > 0 ? sliding_window_log::Charge(limit, log, cost, now.steady, max_debt)
                   : sliding_window_log::Decide(limit, log, cost, now.steady);
  if (answer.expired > 0) log.DropOldest(answer.expired);
  OutsideAnswer result{answer.decision, {}};
  if (charge && answer.receipt.units > 0) {
    result.receipt = answer.receipt;
    const std::uint64_t events = limit.weighted ? 1 : answer.event.cost;
    for (std::uint64_t i = 0; i < events;) {
      if (log.Append(answer.event)) {
        ++i;
      } else if (!source_.MakeFreeBlock(now)) {
        // Rather a log that forgets its oldest event early than a request denied for want of
        // memory. An empty log always has room.
        log.DropOldest(1);
        counters_.Add(Count::kEventsDropped);
      }
    }
    log.set_latest(answer.latest);
  }
  head = log.head();
  return result;
}

void OutsideStates::Undo(const Limit& limit, BlockNumber& head, const Receipt& receipt,
                         std::uint64_t units, Now now) {
  if (const auto* log_limit = std::get_if<LogLimit>(&limit)) {
    EventLog log(arena_, head, log_limit->weighted);
    sliding_window_log::Undo(*log_limit, log, receipt, units, now.steady);
    head = log.head();
  } else if (const auto* strict = std::get_if<StrictLimit>(&limit)) {
    StrictCounts counts(arena_, head, *strict);
    sliding_window_strict::Undo(*strict, counts.view(), receipt, units, now.steady);
    counts.Store(arena_, head);
  } else {
    // No limit that counts what was undone has a small state out here: those fit words.
    StoreSmall(arena_, head,
               sluice::Undo(limit, LoadSmall(arena_, head), receipt, units, now, 0).next);
  }
}

std::uint64_t OutsideStates::Debt(const Limit& limit, BlockNumber head, Now now) const {
  if (const auto* log_limit = std::get_if<LogLimit>(&limit)) {
    const EventLog log(arena_, head, log_limit->weighted);
    return sliding_window_log::Debt(*log_limit, log, now.steady);
  }
  if (const auto* strict = std::get_if<StrictLimit>(&limit)) {
    StrictCounts counts(arena_, head, *strict);
    return sliding_window_strict::Debt(*strict, counts.view(), now.steady);
  }
  return DebtOf(limit, LoadSmall(arena_, head), now);
}

std::uint64_t OutsideStates::DebtAtMost(const Limit& limit, BlockNumber head, Now now) const {
  if (const auto* log_limit = std::get_if<LogLimit>(&limit)) {
    const EventLog log(arena_, head, log_limit->weighted);
    // The newest event was rounded up to a tick, which LifetimeOf() allows for.
    const bool over = log.size() == 0 || now.steady - log.latest() > LifetimeOf(limit);
    return over ? 0 : log.sum();
  }
  return Debt(limit, head, now);
}

bool OutsideStates::SameShape(const Limit& from, const Limit& to) {
  const auto* const from_log = std::get_if<LogLimit>(&from);
  const auto* const to_log = std::get_if<LogLimit>(&to);
  if (from_log != nullptr && to_log != nullptr) {
    return from_log->window == to_log->window && from_log->tick == to_log->tick &&
           from_log->weighted == to_log->weighted;
  }
  const auto* const from_strict = std::get_if<StrictLimit>(&from);
  const auto* const to_strict = std::get_if<StrictLimit>(&to);
  return from_strict != nullptr && to_strict != nullptr && from_strict->step == to_strict->step &&
         from_strict->sub_windows == to_strict->sub_windows &&
         StrictCounts::Narrow(*from_strict) == StrictCounts::Narrow(*to_strict);
}

BlockNumber OutsideStates::CreateOwing(const Limit& limit, std::uint64_t units, Now now) {
  BlockNumber head = Create(limit, now);
  if (head == 0) return 0;
  if (HasSmallState(limit)) {
    StoreSmall(arena_, head, Owing(limit, units, now));
  } else if (units > 0) {
    Force(limit, head, units, now, CapacityOf(limit));
  }
  return head;
}

BlockNumber OutsideStates::CreateConverted(const Limit& from, BlockNumber head, const Limit& to,
                                           Now now) {
  const BlockNumber converted = Create(to, now);
  if (converted != 0)
    StoreSmall(arena_, converted, Convert(from, LoadSmall(arena_, head), to, now));
  return converted;
}

OutsideAnswer OutsideStates::DecideAbsent(const Limit& limit, std::uint64_t cost, Now now) {
  if (const auto* log = std::get_if<LogLimit>(&limit)) {
    const auto answer = sliding_window_log::Decide(*log, EmptyLog{}, cost, now.steady);
    return {answer.decision, answer.receipt};
  }
  if (const auto* strict = std::get_if<StrictLimit>(&limit)) {
    std::int64_t newest = 0;
    std::array<std::uint64_t, sliding_window_strict::kMaxSubWindows + 1> counts{};
    const auto size = static_cast<std::size_t>(strict->sub_windows) + 1;
    return AnswerOf(
        sliding_window_strict::Decide(*strict, {newest, {counts.data(), size}}, cost, now.steady));
  }
  return AnswerOf(sluice::Decide(limit, SmallState{}, cost, now));
}

}  // namespace sluice::memory
