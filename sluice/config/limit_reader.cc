#include "sluice/config/limit_reader.h"

#include <fmt/format.h>

#include <array>
#include <string_view>
#include <utility>

#include "sluice/algorithm/remote_bounds.h"

namespace sluice::config {
namespace {

constexpr std::array<Value::Word<Algorithm>, 8> kAlgorithms = {{
    {"token-bucket", Algorithm::kTokenBucket},
    {"leaky-bucket", Algorithm::kLeakyBucket},
    {"fixed-window", Algorithm::kFixedWindow},
    {"sliding-window-log", Algorithm::kSlidingWindowLog},
    {"sliding-window-counter", Algorithm::kSlidingWindowCounter},
    {"sliding-window-strict", Algorithm::kSlidingWindowStrict},
    {"concurrency", Algorithm::kConcurrency},
    {"calendar", Algorithm::kCalendar},
}};

constexpr std::array<Value::Word<fixed_window::Align>, 2> kAligns = {
    {{"clock", fixed_window::Align::kClock}, {"first-hit", fixed_window::Align::kFirstHit}}};

// Takes a field when `fits`; else refuses it, naming the algorithms that have it.
std::optional<Value> TakeIf(bool fits, Fields& fields, std::string_view name, Algorithm algorithm,
                            std::string_view has_it) {
  if (fits) return fields.Take(name);
  fields.Refuse(name, fmt::format("means nothing to {}", NameOf(algorithm)),
                fmt::format("leave it out; {} has it", has_it));
  return std::nullopt;
}

void ReadOffset(const Value& offset, AlgorithmOptions& options) {
  if (options.align == fixed_window::Align::kFirstHit) {
    offset.Complain("needs windows with edges, and with `align: first-hit` each opens by itself",
                    "leave one of the two out");
  } else if (offset.node().kind == NodeKind::kText && offset.node().text == "per-key") {
    options.per_key_offset = true;
  } else {
    options.offset = offset.Length(Duration{0}, kMaxPeriod).value_or(Duration{0});
  }
}

// Turns the algorithm's own refusal into a complaint. The message begins with a field's name: the
// complaint is about that field where it was written, else about `limit`.
std::optional<Limit> Accept(absl::StatusOr<Limit> made, const Value& limit, const Fields& fields) {
  if (made.ok()) return *std::move(made);
  std::string message(made.status().message());
  const std::string name = message.substr(0, message.find(' '));
  const Node* node = fields.node().Find(name);
  if (node != nullptr) message = fmt::format("`{}`{}", name, message.substr(name.size()));
  limit.diagnostics().Error(node == nullptr ? limit.node().location : node->location, message);
  return std::nullopt;
}

std::optional<LimitNumbers> ReadSlots(const Value& limit) {
  if (limit.node().kind == NodeKind::kText && limit.node().text.find('/') != std::string::npos) {
    limit.Complain(fmt::format("must be a number of slots, got {}", Quoted(limit.node().text)),
                   "concurrency counts what is in flight, not what comes in a period");
    return std::nullopt;
  }
  if (limit.node().kind == NodeKind::kText && limit.node().text == "0") {
    limit.Complain("must be at least 1, got 0",
                   "a limit of 0 denies every request; to deny on purpose write `deny: true`");
    return std::nullopt;
  }
  const auto slots = limit.Integer(1, 4'294'967'295);
  if (!slots) return std::nullopt;
  return LimitNumbers{.count = *slots};
}

std::optional<LimitNumbers> OfCalendar(const WrittenRate& rate, const Value& limit) {
  std::optional<calendar::Period> period;
  if (rate.unit == PeriodUnit::kDay) period = calendar::Period::kDay;
  if (rate.unit == PeriodUnit::kWeek) period = calendar::Period::kWeek;
  if (rate.unit == PeriodUnit::kMonth) period = calendar::Period::kMonth;
  if (rate.unit == PeriodUnit::kYear) period = calendar::Period::kYear;
  if (!period || rate.periods != 1) {
    limit.Complain(
        fmt::format("must be for one day, week, month or year, got {}", Quoted(limit.node().text)),
        "for other periods leave `algorithm: calendar` out");
    return std::nullopt;
  }
  return LimitNumbers{.count = rate.count, .calendar_period = *period};
}

// `queue: { requests: 10, wait: 2s }`. What is not said does not bound; one of the two does.
struct Queue {
  std::int64_t requests = INT64_MAX;
  Duration wait = kMaxPeriod;
};

std::optional<Queue> ReadQueue(const std::optional<Value>& value) {
  if (!value) return std::nullopt;
  Fields fields(value->node(), "`queue`", value->diagnostics());
  std::optional<std::int64_t> requests = INT64_MAX;
  std::optional<Duration> wait = kMaxPeriod;
  if (const auto field = fields.Take("requests")) requests = field->Integer(0, INT64_MAX);
  if (const auto field = fields.Take("wait")) wait = field->Length(Duration{0}, kMaxPeriod);
  fields.Finish();
  if (fields.is_map() && value->node().entries.empty()) {
    value->Complain("must say how many may wait, or how long", "write `requests`, `wait` or both");
    return std::nullopt;
  }
  if (!fields.is_map() || !requests || !wait) return std::nullopt;
  return Queue{*requests, *wait};
}

// Nothing after a complaint, and when it is not said.
std::optional<std::int64_t> ReadBurst(const std::optional<Value>& value) {
  if (!value) return std::nullopt;
  if (value->node().kind == NodeKind::kText && value->node().text == "0") {
    value->Complain("must be at least 1, got 0",
                    "a burst of 0 denies every request; to deny on purpose write `deny: true`");
    return std::nullopt;
  }
  return value->Integer(1, INT64_MAX);
}

std::optional<LimitNumbers> ReadNumbers(Fields& fields, const std::optional<Value>& limit,
                                        Algorithm algorithm) {
  const bool token_bucket = algorithm == Algorithm::kTokenBucket;
  const bool leaky_bucket = algorithm == Algorithm::kLeakyBucket;
  // All are read before any is judged, so that each fault is told.
  const auto burst_field = TakeIf(token_bucket, fields, "burst", algorithm, "token-bucket");
  const auto queue_field = TakeIf(leaky_bucket, fields, "queue", algorithm, "leaky-bucket");
  const auto burst = ReadBurst(burst_field);
  const auto queue = ReadQueue(queue_field);
  if (leaky_bucket && fields.is_map() && fields.node().Find("queue") == nullptr) {
    fields.Complain("a leaky bucket needs `queue`",
                    "write how many may wait, and how long: `queue: { requests: 10, wait: 1s }`");
  }
  if (!limit) return std::nullopt;
  if (algorithm == Algorithm::kConcurrency) return ReadSlots(*limit);

  const auto written = limit->Rate();
  if (!written || (burst_field && !burst) || (leaky_bucket && !queue)) return std::nullopt;
  if (algorithm == Algorithm::kCalendar) return OfCalendar(*written, *limit);
  const auto period = written->Period();
  if (!period) {
    limit->Complain(fmt::format("is for a {}, and how long that is only a calendar knows",
                                written->unit == PeriodUnit::kMonth ? "month" : "year"),
                    "write `algorithm: calendar`, or a number of days such as `1000/30day`");
    return std::nullopt;
  }
  const Queue any = queue.value_or(Queue{});
  return LimitNumbers{.count = written->count,
                      .period = *period,
                      .burst = burst.value_or(written->count),
                      .queue = any.requests,
                      .wait = any.wait};
}

// A part of the numbers as a limit; complains, at what is too small for it, when nothing is left.
std::optional<Limit> MakePart(const LimitNumbers& all, Part part, const AlgorithmOptions& options,
                              const Value& limit, const Fields& fields, std::string_view why,
                              std::string_view hint) {
  if (const auto numbers = PartOf(all, part, options.algorithm)) {
    return Accept(MakeLimit(*numbers, options), limit, fields);
  }
  const Node* burst = fields.node().Find("burst");
  limit.diagnostics().Error(burst == nullptr ? limit.node().location : burst->location,
                            fmt::format("a {} of {} {}", burst == nullptr ? "limit" : "burst",
                                        burst == nullptr ? all.count : all.burst, why),
                            hint);
  return std::nullopt;
}

}  // namespace

std::string_view NameOf(Algorithm algorithm) {
  for (const auto& word : kAlgorithms) {
    if (word.choice == algorithm) return word.word;
  }
  return "";
}

AlgorithmOptions ReadAlgorithm(Fields& rule) {
  AlgorithmOptions options;
  if (const auto value = rule.Take("algorithm")) {
    options.algorithm = value->OneOf(kAlgorithms).value_or(Algorithm::kTokenBucket);
  }
  const Algorithm algorithm = options.algorithm;
  const bool fixed = algorithm == Algorithm::kFixedWindow;
  if (const auto value = TakeIf(fixed, rule, "align", algorithm, "fixed-window")) {
    options.align = value->OneOf(kAligns).value_or(fixed_window::Align::kClock);
  }
  const bool has_edges = fixed || algorithm == Algorithm::kSlidingWindowCounter;
  if (const auto value =
          TakeIf(has_edges, rule, "offset", algorithm, "fixed-window or sliding-window-counter")) {
    ReadOffset(*value, options);
  }
  if (const auto value = TakeIf(algorithm == Algorithm::kSlidingWindowStrict, rule, "sub_windows",
                                algorithm, "sliding-window-strict")) {
    options.sub_windows =
        static_cast<int>(value->Integer(1, sliding_window_strict::kMaxSubWindows).value_or(16));
  }
  if (const auto value = TakeIf(algorithm == Algorithm::kConcurrency, rule, "slot_ttl", algorithm,
                                "concurrency")) {
    // A door renews the slots of what still runs, and must have the time to.
    options.slot_ttl = value->Length(std::chrono::seconds(1), kMaxPeriod).value_or(Duration{0});
  }
  if (const auto value =
          TakeIf(algorithm == Algorithm::kCalendar, rule, "time_zone", algorithm, "calendar")) {
    if (const auto zone = value->Text()) {
      const auto made = calendar::MakeLimit(1, calendar::Period::kDay, *zone);
      if (made.ok()) {
        options.time_zone = *zone;
      } else {
        value->Complain(fmt::format("names no time zone, got {}", Quoted(*zone)),
                        "write a name of the tz database, such as UTC or Europe/Berlin");
      }
    }
  }
  return options;
}

std::optional<RuleLimit> ReadLimit(Fields& fields, const AlgorithmOptions& options,
                                   const Shares& shares) {
  const auto limit = fields.Require("limit", options.algorithm == Algorithm::kConcurrency
                                                 ? "write `limit: 10`"
                                                 : "write for example `limit: 100/min`");
  const auto numbers = ReadNumbers(fields, limit, options.algorithm);
  if (!numbers) return std::nullopt;
  auto whole = Accept(MakeLimit(*numbers, options), *limit, fields);
  if (!whole) return std::nullopt;
  if (shares.nodes > 1) {
    whole = MakePart(*numbers, {1, shares.nodes}, options, *limit, fields,
                     fmt::format("cannot be shared by {} nodes", shares.nodes),
                     "with `scope: node` each of the `node.count` nodes has an equal share, in "
                     "whole units");
    if (!whole) return std::nullopt;
  }
  RuleLimit made{.plan = "", .limit = *std::move(whole), .local = std::nullopt};
  if (shares.remote) {
    const absl::Status fits = FitsRemote(made.limit);
    if (!fits.ok() && !Accept(fits, *limit, fields)) return std::nullopt;
  }
  if (shares.local && shares.local->of < shares.local->whole) {
    made.local = MakePart(*numbers, *shares.local, options, *limit, fields,
                          fmt::format("leaves nothing to a node that may have {}/{} of it",
                                      shares.local->of, shares.local->whole),
                          "while the store is away nothing could pass; to deny on purpose write "
                          "`on_store_failure: closed`");
    if (!made.local) return std::nullopt;
  }
  return made;
}

}  // namespace sluice::config
