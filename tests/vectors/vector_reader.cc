#include "tests/vectors/vector_reader.h"

#include <boost/json.hpp>
#include <fstream>
#include <iterator>
#include <stdexcept>

#include "absl/status/status.h"

namespace sluice::vectors {
namespace {

namespace json = boost::json;

std::int64_t Int(const json::object& object, std::string_view name, std::int64_t otherwise) {
  const json::value* value = object.if_contains(name);
  return value == nullptr ? otherwise : value->to_number<std::int64_t>();
}
std::int64_t Int(const json::object& object, std::string_view name) {
  return object.at(name).to_number<std::int64_t>();
}
Duration Ns(const json::object& object, std::string_view name) {
  return Duration{Int(object, name)};
}
std::string Text(const json::object& object, std::string_view name) {
  const json::value* value = object.if_contains(name);
  return value == nullptr ? std::string() : std::string(value->as_string());
}

calendar::Period PeriodOf(std::string_view name) {
  if (name == "day") return calendar::Period::kDay;
  if (name == "week") return calendar::Period::kWeek;
  if (name == "month") return calendar::Period::kMonth;
  if (name == "year") return calendar::Period::kYear;
  throw std::invalid_argument("unknown period " + std::string(name));
}

// The vectors give a queue as the longest wait; as many requests as fit may be in it.
absl::StatusOr<Limit> LeakyQueue(const json::object& config) {
  return leaky_bucket::MakeLimit({Int(config, "rate"), Ns(config, "period_ns")}, ~std::uint64_t{0},
                                 Ns(config, "max_delay_ns"));
}

template <typename L>
absl::StatusOr<Limit> Widened(absl::StatusOr<L> made) {
  if (!made.ok()) return made.status();
  return Limit{*std::move(made)};
}

absl::StatusOr<Limit> MakeLimit(std::string_view algorithm, const json::object& config) {
  if (algorithm == "token_bucket") {
    return Widened(token_bucket::MakeLimit({Int(config, "rate"), Ns(config, "period_ns")},
                                           static_cast<std::uint64_t>(Int(config, "burst"))));
  }
  if (algorithm == "leaky_meter") {
    return Widened(token_bucket::MakeLimit({Int(config, "leak"), Ns(config, "period_ns")},
                                           static_cast<std::uint64_t>(Int(config, "capacity"))));
  }
  if (algorithm == "leaky_queue") return LeakyQueue(config);
  if (algorithm == "fixed_window") {
    return Widened(fixed_window::MakeLimit(Int(config, "limit"), Ns(config, "window_ns"),
                                           Text(config, "anchor") == "first"
                                               ? fixed_window::Align::kFirstHit
                                               : fixed_window::Align::kClock,
                                           Duration{Int(config, "offset_ns", 0)}));
  }
  if (algorithm == "sliding_window_counter") {
    return Widened(
        sliding_window_counter::MakeLimit(Int(config, "limit"), Ns(config, "window_ns")));
  }
  if (algorithm == "sliding_log") {
    return Widened(
        sliding_window_log::MakeLimit(Int(config, "limit"), Ns(config, "window_ns"), false));
  }
  if (algorithm == "sliding_window_strict") {
    return Widened(sliding_window_strict::MakeLimit(Int(config, "limit"), Ns(config, "window_ns"),
                                                    static_cast<int>(Int(config, "sub_windows"))));
  }
  if (algorithm == "calendar") {
    return Widened(calendar::MakeLimit(Int(config, "limit"), PeriodOf(Text(config, "period")),
                                       Text(config, "time_zone")));
  }
  if (algorithm == "concurrency") {
    return Widened(
        concurrency::MakeLimit(Int(config, "max"), Duration{Int(config, "lease_ns", 0)}));
  }
  throw std::invalid_argument("unknown algorithm " + std::string(algorithm));
}

Op OpOf(std::string_view name) {
  if (name == "acquire") return Op::kAcquire;
  if (name == "peek") return Op::kPeek;
  if (name == "force") return Op::kForce;
  if (name == "refund") return Op::kRefund;
  if (name == "release") return Op::kRelease;
  if (name == "resize") return Op::kResize;
  throw std::invalid_argument("unknown op " + std::string(name));
}

std::optional<Duration> Wait(const json::object& object, std::string_view name) {
  const json::value* value = object.if_contains(name);
  if (value == nullptr) return std::nullopt;
  if (value->is_null()) return kUnknown;
  if (value->is_string()) return kNever;
  return Duration{value->to_number<std::int64_t>()};
}

Expected ExpectedOf(const json::object& object) {
  Expected expected;
  if (const json::value* value = object.if_contains("allowed")) expected.allowed = value->as_bool();
  if (const json::value* value = object.if_contains("released")) {
    expected.released = value->as_bool();
  }
  if (const json::value* value = object.if_contains("remaining")) {
    expected.remaining = value->to_number<std::uint64_t>();
  }
  expected.retry_after = Wait(object, "retry_after_ns");
  expected.reset_after = Wait(object, "reset_after_ns");
  if (expected.allowed.value_or(false)) expected.delay = Wait(object, "delay_ns");
  if (const json::value* value = object.if_contains("violated")) {
    expected.violated.emplace();
    for (const json::value& index : value->as_array()) {
      expected.violated->push_back(index.to_number<int>());
    }
  }
  return expected;
}

Step StepOf(const json::object& object, const json::object& config) {
  const Duration at{Int(object, "t_ns")};
  Step step{.now = {Time{at}, WallTime{at}},
            .op = OpOf(Text(object, "op")),
            .cost = static_cast<std::uint64_t>(Int(object, "cost", 0)),
            .handle = static_cast<int>(Int(object, "lease", 0)),
            .resized = std::nullopt,
            .expected = ExpectedOf(object.at("expect").as_object())};
  if (step.op == Op::kResize) {
    json::object resized = config;
    resized["max"] = object.at("max");
    step.resized = MakeLimit("concurrency", resized).value();
  }
  return step;
}

Vector VectorOf(const json::object& object) {
  Vector vector{.id = Text(object, "id"),
                .note = Text(object, "note"),
                .later = Text(object, "when") == "later",
                .limits = {},
                .steps = {}};
  if (vector.later) return vector;
  const json::object& config = object.at("config").as_object();
  if (Text(object, "algorithm") == "all_of") {
    for (const json::value& part : config.at("parts").as_array()) {
      vector.limits.push_back(
          MakeLimit(Text(part.as_object(), "algorithm"), part.as_object()).value());
    }
  } else {
    vector.limits.push_back(MakeLimit(Text(object, "algorithm"), config).value());
  }
  for (const json::value& step : object.at("steps").as_array()) {
    vector.steps.push_back(StepOf(step.as_object(), config));
  }
  return vector;
}

}  // namespace

VectorFile Read(std::string_view path) {
  std::ifstream in(std::string(SLUICE_SOURCE_DIR "/") + std::string(path));
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  const json::value root = json::parse(text);
  VectorFile file;
  for (const json::value& vector : root.at("algorithms").as_array()) {
    file.vectors.push_back(VectorOf(vector.as_object()));
  }
  if (const json::value* validation = root.as_object().if_contains("validation")) {
    for (const json::value& row : validation->as_array()) {
      const json::object& config = row.as_object().at("config").as_object();
      const json::value& error = row.as_object().at("error");
      file.validation.push_back({.id = Text(row.as_object(), "id"),
                                 .made = MakeLimit(Text(config, "algorithm"), config),
                                 .error = error.is_null() ? "" : std::string(error.as_string())});
    }
  }
  return file;
}

}  // namespace sluice::vectors
