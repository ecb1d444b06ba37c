#include "sluice/config/explain_report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <boost/json.hpp>
#include <optional>
#include <string_view>
#include <utility>

#include "sluice/base/ascii.h"
#include "sluice/config/limit_text.h"
#include "sluice/config/load.h"
#include "sluice/config/source_names.h"
#include "sluice/rule/path.h"

namespace sluice::config {
namespace {

namespace json = boost::json;

// The request that was asked about; the views live in the options.
struct Asked {
  LimitRequest request;
  std::vector<Field> headers;
  std::vector<Field> attributes;
};

// Splits at the first `separator`; nothing where there is none, or no name before it.
std::optional<Field> Split(std::string_view text, char separator) {
  const std::size_t at = text.find(separator);
  if (at == text.npos || at == 0) return std::nullopt;
  return Field{text.substr(0, at), Trim(text.substr(at + 1))};
}

json::string_view AsJson(std::string_view text) { return {text.data(), text.size()}; }

// What is wrong with the request line; empty when it was read.
std::string ReadRequestLine(std::string_view line, LimitRequest& request) {
  line = Trim(line);
  request.method = "GET";
  if (const std::size_t blank = line.find(' '); blank != line.npos) {
    request.method = line.substr(0, blank);
    line = Trim(line.substr(blank));
  }
  line = line.substr(0, line.find(' '));  // a version may follow
  for (const std::string_view scheme : {"http://", "https://"}) {
    if (!line.starts_with(scheme)) continue;
    line.remove_prefix(scheme.size());
    const std::size_t slash = std::min(line.find('/'), line.size());
    request.host = line.substr(0, slash);
    line = slash == line.size() ? "/" : line.substr(slash);
  }
  request.target = line;
  if (!IsToken(request.method)) return fmt::format("{} is no method", Quoted(request.method));
  std::string buffer(PathBufferSize(line.size()), '\0');
  const NormalPath path = NormalizePath(line, buffer);
  if (path.ok()) return "";
  return fmt::format("{} is answered 400: {}", Quoted(line), ToString(path.error));
}

// What is wrong with the options; empty when all was read into `asked`.
std::string Read(const ExplainOptions& options, Asked& asked) {
  if (std::string fault = ReadRequestLine(options.request, asked.request); !fault.empty()) {
    return fault;
  }
  const auto peer = IpAddress::Parse(options.peer);
  if (!peer) return fmt::format("{} is no address", Quoted(options.peer));
  asked.request.peer = *peer;
  for (const std::string& text : options.headers) {
    const auto header = Split(text, ':');
    if (!header || !IsToken(header->name)) {
      return fmt::format("{} is no header; write `Name: value`", Quoted(text));
    }
    if (SameHeader(header->name, "host") && asked.request.host.empty()) {
      asked.request.host = header->value;
    }
    asked.headers.push_back(*header);
  }
  for (const std::string& text : options.attributes) {
    const auto attribute = Split(text, '=');
    if (!attribute) return fmt::format("{} is no attribute; write `name=value`", Quoted(text));
    asked.attributes.push_back(*attribute);
  }
  asked.request.headers = asked.headers;
  asked.request.attributes = asked.attributes;
  return "";
}

bool Denies(const RuleSet::Explanation& told) { return told.meets && !told.reason.empty(); }

// Values come from the command line and may hold anything.
std::string Shown(const std::string& text) {
  const std::string quoted = Quoted(text);
  return quoted.substr(1, quoted.size() - 2);
}

// What differs from a shared limit that each node counts by itself while the store is away.
std::string SharingText(const RuleSet::Explanation& told) {
  if (told.rule->scope == RuleScope::kNode) return ", on each node";
  const std::string leased = told.rule->lease ? ", leased" : "";
  if (told.rule->on_store_failure == OnStoreFailure::kOpen)
    return leased + ", open without the store";
  if (told.rule->on_store_failure == OnStoreFailure::kClosed)
    return leased + ", closed without the store";
  if (!told.limit->local) return leased;
  return fmt::format("{}, without the store {} on each node", leased,
                     LimitText(*told.limit->local));
}

// "auto", "up to 100 for 50ms".
std::string LeaseText(const RuleLease& lease) {
  std::string text = lease.most > 0 ? fmt::format("up to {}", lease.most) : "";
  if (lease.length > Duration{0}) {
    text += fmt::format("{}for {}", text.empty() ? "" : " ", DurationText(lease.length));
  }
  return text.empty() ? "auto" : text;
}

void TellSharing(const RuleSet::Explanation& told, json::object& one) {
  const Rule& rule = *told.rule;
  if (rule.scope != RuleScope::kShared) one["scope"] = AsJson(ToString(rule.scope));
  if (rule.on_store_failure != OnStoreFailure::kLocal) {
    one["on_store_failure"] = AsJson(ToString(rule.on_store_failure));
  }
  if (rule.lease) one["lease"] = LeaseText(*rule.lease);
  if (told.limit->local) one["local"] = LimitText(*told.limit->local);
}

std::string Line(const RuleSet::Explanation& told) {
  const bool shadow = told.rule->mode == RuleMode::kShadow;
  if (!told.meets) return "does not meet it: " + told.reason;
  if (Denies(told)) return (shadow ? "would deny it (shadow): " : "denies it: ") + told.reason;
  std::vector<std::string> key;
  for (const std::string& part : told.key) key.push_back(Shown(part));
  std::string line = fmt::format("counts it under {} with cost {}: {}", fmt::join(key, ", "),
                                 told.cost, LimitText(told.limit->limit));
  if (!told.limit->plan.empty()) line += fmt::format(" (plan {})", told.limit->plan);
  const Duration block_for = told.rule->block_for;
  if (block_for > Duration{0})
    line += fmt::format(", then blocked for {}", DurationText(block_for));
  line += SharingText(told);
  if (shadow) line += " (shadow)";
  return line;
}

std::string Text(const LimitRequest& request, const RuleSet::Caller& caller,
                 const std::vector<RuleSet::Explanation>& rules) {
  std::string text =
      fmt::format("{} {} from {}", request.method, Shown(caller.path), caller.client.ToString());
  if (!caller.plan.empty()) text += fmt::format(", plan {}", Shown(caller.plan));
  text += rules.empty() ? "\n  there are no rules\n" : "\n";
  std::size_t width = 0;
  for (const auto& told : rules) width = std::max(width, told.rule->name.size());
  for (const auto& told : rules) {
    text += fmt::format("  {:<{}}  {}\n", told.rule->name, width, Line(told));
  }
  return text;
}

std::string Json(const LimitRequest& request, const RuleSet::Caller& caller,
                 const std::vector<RuleSet::Explanation>& rules) {
  json::array told_rules;
  for (const auto& told : rules) {
    json::object one = {{"name", told.rule->name},
                        {"meets", told.meets},
                        {"denies", Denies(told)},
                        {"reason", told.reason},
                        {"mode", told.rule->mode == RuleMode::kShadow ? "shadow" : "enforce"},
                        {"key", json::value_from(told.key)}};
    if (told.meets && !Denies(told)) {
      one["limit"] = LimitText(told.limit->limit);
      one["plan"] = told.limit->plan;
      one["cost"] = told.cost;
      if (told.rule->block_for > Duration{0}) {
        one["block_for"] = DurationText(told.rule->block_for);
      }
      TellSharing(told, one);
    }
    told_rules.push_back(std::move(one));
  }
  const json::object report = {{"method", AsJson(request.method)},
                               {"path", caller.path},
                               {"host", AsJson(request.host)},
                               {"client", caller.client.ToString()},
                               {"plan", caller.plan},
                               {"rules", std::move(told_rules)}};
  return json::serialize(report) + "\n";
}

}  // namespace

Report Explain(const std::string& path, const ExplainOptions& options) {
  const LoadResult result = Load(path, 1);
  if (!result.config) return {.text = result.diagnostics.Text(), .exit_code = kExitFailed};
  Asked asked;
  if (const std::string fault = Read(options, asked); !fault.empty()) {
    return {.text = fmt::format("error: {}\n", fault), .exit_code = kExitFailed};
  }
  const RuleSet& rules = *result.config->rules;
  const RuleSet::Caller caller = rules.Identify(asked.request);
  const auto told = rules.Explain(asked.request);
  return {.text =
              options.json ? Json(asked.request, caller, told) : Text(asked.request, caller, told)};
}

}  // namespace sluice::config
