#include "sluice/store/redis/internal/answer.h"

#include <algorithm>
#include <array>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "sluice/algorithm/state.h"
#include "sluice/store/redis/internal/state_text.h"
#include "sluice/store/redis/internal/text_reader.h"
#include "sluice/store/redis/internal/whole_numbers.h"

namespace sluice::redis {
namespace {

using LogLimit = sliding_window_log::Limit;
using StrictLimit = sliding_window_strict::Limit;

absl::Status Disagreement(const ScriptLimit& limit, const Told& told) {
  return absl::InternalError(absl::StrCat(
      "the script and the algorithm do not agree: ", std::string(limit.prefix()), ", state \"",
      std::string(told.state), "\", cost ", told.cost, " at ", SteadyUs(told.now.steady),
      " us: the script says ", static_cast<int>(told.done)));
}

// A decision about a cost that is not charged: its verdict and waits, with what there is without
// it.
Decision Uncharged(Decision decision, const Decision& at_rest) {
  decision.remaining = at_rest.remaining;
  decision.reset_after = at_rest.reset_after;
  return decision;
}

// `decide(cost)` and `force(cost)` answer as if charged; nothing is kept.
template <typename Decide, typename Force>
absl::StatusOr<Answer> Settle(const ScriptLimit& limit, const Told& told, const Decide& decide,
                              const Force& force) {
  if (told.done == Done::kForced) {
    Answer answer = force(told.cost);
    if (answer.decision.allowed()) return Disagreement(limit, told);
    return answer;
  }
  Answer answer = decide(told.cost);
  if (answer.decision.allowed() != (told.done != Done::kLookedNoRoom)) {
    return Disagreement(limit, told);
  }
  if (told.done == Done::kCharged) {
    if (answer.receipt.units == 0) return Disagreement(limit, told);
    return answer;
  }
  if (answer.decision.allowed() && told.cost > 0) {
    answer.decision = Uncharged(answer.decision, decide(0).decision);
  }
  answer.receipt = {};
  return answer;
}

absl::StatusOr<Answer> Small(const ScriptLimit& limit, const Told& told, std::string_view text) {
  const absl::StatusOr<SmallText> before = ReadSmall(limit.limit(), text);
  if (!before.ok()) return before.status();
  const auto answer_of = [&](const Step<SmallState>& step) {
    Answer answer{step.decision, step.receipt, step.damaged};
    answer.receipt.undone_before = answer.receipt.units > 0 ? before->undone : 0;
    return answer;
  };
  return Settle(
      limit, told,
      [&](std::uint64_t cost) {
        return answer_of(
            told.lease > Duration{0}
                ? sluice::DecideLease(limit.limit(), before->state, cost, told.now, told.lease)
                : sluice::Decide(limit.limit(), before->state, cost, told.now));
      },
      [&](std::uint64_t cost) {
        return answer_of(
            sluice::Charge(limit.limit(), before->state, cost, told.now, limit.most_debt()));
      });
}

absl::StatusOr<Answer> Strict(const ScriptLimit& limit, const Told& told, std::string_view text) {
  const auto& strict = std::get<StrictLimit>(limit.limit());
  absl::StatusOr<StrictText> before = ReadStrict(strict, text);
  if (!before.ok()) return before.status();
  const auto answer_of = [](const sliding_window_strict::Answer& answer) {
    return Answer{answer.decision, answer.receipt};
  };
  return Settle(
      limit, told,
      [&](std::uint64_t cost) {
        const sliding_window_strict::View view = before->ViewOf(strict);
        return answer_of(told.lease > Duration{0}
                             ? sliding_window_strict::DecideLease(strict, view, cost,
                                                                  told.now.steady, told.lease)
                             : sliding_window_strict::Decide(strict, view, cost, told.now.steady));
      },
      [&](std::uint64_t cost) {
        return answer_of(sliding_window_strict::Charge(strict, before->ViewOf(strict), cost,
                                                       told.now.steady, limit.most_debt()));
      });
}

// The log as far as it matters for one decision: that the oldest `need` units will have left with
// the event of one time, and the last with that of another. So it need not leave the server.
class LogInShort {
 public:
  LogInShort(const LogLimit& limit, Time latest) : limit_(limit), latest_(latest) {}

  void Add(std::int64_t at_us, std::uint64_t units) {
    if (units == 0) return;
    const std::int64_t at = Duration{at_us * 1000} / limit_.tick;
    events_[size_++] = {static_cast<std::uint32_t>(at), static_cast<std::uint32_t>(units)};
    sum_ += units;
  }
  // No units, but an event that is over: while there is one the next is not dated before `latest`.
  void AddOver(Time now) {
    const std::int64_t over = sliding_window_log::internal_log::TickDown(limit_, now) -
                              sliding_window_log::internal_log::WindowTicks(limit_);
    events_[size_++] = {static_cast<std::uint32_t>(over), 1};
    ++sum_;
  }
  // In the unit form every unit is an event.
  [[nodiscard]] std::uint64_t size() const { return limit_.weighted ? size_ : sum_; }
  [[nodiscard]] std::uint64_t sum() const { return sum_; }
  [[nodiscard]] Time latest() const { return latest_; }
  [[nodiscard]] sliding_window_log::Event at(std::uint64_t n) const {
    if (limit_.weighted) return events_[n];
    const bool first = n < events_[0].cost || size_ == 1;
    return {.stamp = events_[first ? 0 : 1].stamp, .cost = 1};
  }

 private:
  const LogLimit& limit_;
  Time latest_;
  std::array<sliding_window_log::Event, 2> events_{};
  std::size_t size_ = 0;
  std::uint64_t sum_ = 0;
};
static_assert(sliding_window_log::EventLog<LogInShort>);

// "units newest free at": units that count, the time of their newest, the one with which enough of
// them leave, and the one at which an event is dated now.
absl::StatusOr<Answer> Log(const ScriptLimit& limit, const Told& told) {
  const auto& log_limit = std::get<LogLimit>(limit.limit());
  TextReader reader(told.state);
  const auto units = static_cast<std::uint64_t>(reader.Count());
  const std::int64_t newest = reader.Skip(" ").Count();
  const std::int64_t free = reader.Skip(" ").Count();
  const std::int64_t at = reader.Skip(" ").Count();
  if (!reader.done() || units > 4 * sliding_window_log::kMaxLimit) {
    return absl::DataLossError("a log that is damaged");
  }
  std::uint64_t first = 0;  // units that must leave, of those that are there
  if (told.cost <= log_limit.limit && told.cost > MinusOrZero(log_limit.limit, units)) {
    const std::uint64_t charged =
        told.done == Done::kForced ? std::min(told.cost, MinusOrZero(limit.most_debt(), units)) : 0;
    const std::uint64_t need = units + charged + told.cost - log_limit.limit;
    first = need <= units ? need : 0;
  }
  LogInShort log(log_limit, Time{Duration{at * 1000}});
  log.Add(free, first);
  log.Add(newest, units - first);
  if (units == 0 && log.latest() > told.now.steady) log.AddOver(told.now.steady);
  const auto answer_of = [](const sliding_window_log::Answer& answer) {
    return Answer{answer.decision, answer.receipt};
  };
  return Settle(
      limit, told,
      [&](std::uint64_t cost) {
        return answer_of(
            told.lease > Duration{0}
                ? sliding_window_log::DecideLease(log_limit, log, cost, told.now.steady, told.lease)
                : sliding_window_log::Decide(log_limit, log, cost, told.now.steady));
      },
      [&](std::uint64_t cost) {
        return answer_of(
            sliding_window_log::Charge(log_limit, log, cost, told.now.steady, limit.most_debt()));
      });
}

// "units free": units in flight, and when enough of them will have ended.
absl::StatusOr<Answer> Slots(const ScriptLimit& limit, const Told& told) {
  const auto& slots = std::get<concurrency::Limit>(limit.limit());
  TextReader reader(told.state);
  const auto units = static_cast<std::uint64_t>(reader.Count());
  const std::int64_t free = reader.Skip(" ").Count();
  if (!reader.done()) {
    return absl::DataLossError("slots that are damaged");
  }
  const auto decide = [&](std::uint64_t in_flight, std::uint64_t cost) {
    Decision decision = concurrency::Decide(slots, in_flight, cost);
    if (decision.verdict == Verdict::kLimited) {
      const std::array<concurrency::Slot, 1> ends = {
          {{.end = Time{Duration{free * 1000}}, .units = in_flight}}};
      decision.retry_after = concurrency::RetryAfter(slots, in_flight, cost, ends, told.now.steady);
    }
    return decision;
  };
  const auto receipt = [&](std::uint64_t charged) {
    if (charged == 0) return Receipt{};
    return Receipt{.before = static_cast<std::int64_t>(told.slot), .units = charged};
  };
  return Settle(
      limit, told,
      [&](std::uint64_t cost) {
        return Answer{decide(units, cost), receipt(cost)};
      },
      [&](std::uint64_t cost) {
        const std::uint64_t charged = std::min(cost, MinusOrZero(limit.most_debt(), units));
        return Answer{decide(units + charged, cost), receipt(charged)};
      });
}

}  // namespace

absl::StatusOr<Answer> AnswerOf(const ScriptLimit& limit, const Told& told) {
  if (std::holds_alternative<LogLimit>(limit.limit())) return Log(limit, told);
  if (std::holds_alternative<concurrency::Limit>(limit.limit())) return Slots(limit, told);
  std::string_view text = told.state;
  if (!text.empty()) {
    if (!text.starts_with(limit.prefix())) return Disagreement(limit, told);
    text.remove_prefix(limit.prefix().size());
  }
  if (std::holds_alternative<StrictLimit>(limit.limit())) return Strict(limit, told, text);
  return Small(limit, told, text);
}

}  // namespace sluice::redis
