#include "tests/scenarios/scenario_request.h"

#include <cstdlib>
#include <iostream>

#include "sluice/algorithm/decision.h"

namespace sluice::testing {
namespace {

[[noreturn]] void Fail(const Scenario& scenario, const Step& step, const std::string& what) {
  std::cerr << scenario.path << ":" << step.line << ": " << what << "\n";
  std::exit(1);
}

// The source that a rule's key, fallback or cost calls `label`.
const Source* SourceOf(const RuleSet& rules, const std::string& label) {
  for (const Rule& rule : rules.rules()) {
    for (const Source& source : rule.key) {
      if (source.label == label) return &source;
    }
    if (rule.on_missing_key == OnMissingKey::kFallback && rule.fallback.label == label) {
      return &rule.fallback;
    }
    if (label == "cost" && rule.cost.header) return &*rule.cost.header;
  }
  return nullptr;
}

}  // namespace

ScenarioRequest RequestOf(const Scenario& scenario, const Step& step, const RuleSet& rules) {
  ScenarioRequest request{.method = step.method, .target = step.target, .headers = {}};
  for (const auto& [name, value] : step.attributes) {
    if (name == "ip") {
      const auto address = IpAddress::Parse(value);
      if (!address) Fail(scenario, step, "not an address: " + value);
      request.peer = *address;
    } else if (name == "host") {
      request.host = value;
    } else if (name.starts_with("header.")) {
      request.headers.emplace_back(name.substr(7), value);
    } else if (const Source* source = SourceOf(rules, name)) {
      if (source->kind == SourceKind::kHeader) request.headers.emplace_back(source->name, value);
      if (source->kind == SourceKind::kCookie) {
        request.headers.emplace_back("Cookie", source->name + "=" + value);
      }
      if (source->kind == SourceKind::kQuery) {
        request.target += (request.target.find('?') == std::string::npos ? "?" : "&") +
                          source->name + "=" + value;
      }
    } else {
      Fail(scenario, step, "no rule knows `" + name + "`");
    }
  }
  return request;
}

std::string Expected(const Step& step) {
  std::string text = step.answer;
  for (const auto& [name, value] : step.expected) {
    const auto duration = ParseDuration(value);
    text += " " + name + "=" + (name != "rule" && duration ? DurationText(*duration) : value);
  }
  return text;
}

std::string DurationText(Duration duration) {
  if (duration == kNever) return "never";
  if (duration == kUnknown) return "unknown";
  static constexpr std::pair<const char*, std::int64_t> kUnits[] = {
      {"h", 3'600'000'000'000}, {"min", 60'000'000'000}, {"s", 1'000'000'000},
      {"ms", 1'000'000},        {"us", 1'000},           {"ns", 1}};
  std::string text;
  std::int64_t left = duration.count();
  for (const auto& [unit, length] : kUnits) {
    if (left / length > 0) text += std::to_string(left / length) + unit;
    left %= length;
  }
  return text.empty() ? "0s" : text;
}

}  // namespace sluice::testing
