#include "sluice/transport/problem.h"

#include <absl/strings/str_cat.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string_view>

#include "sluice/net/http1_answer.h"
#include "sluice/transport/headers.h"

namespace sluice::transport {
namespace {

constexpr std::string_view kQuotaExceeded =
    "https://iana.org/assignments/http-problem-types#quota-exceeded";

struct Kind {
  int status;
  std::string_view type;
  std::string_view title;
};

Kind KindOf(Answer answer) {
  switch (answer) {
    case Answer::kMissingIdentity:
      return {401, "urn:sluice:problem:missing-identity", "Missing identity"};
    case Answer::kDenied:
      return {403, "urn:sluice:problem:denied", "Denied"};
    case Answer::kNeverPasses:
      return {422, "urn:sluice:problem:cost-above-limit", "The cost can never be met"};
    case Answer::kLimited:
    case Answer::kAllowed:
    case Answer::kDelayed:
      break;
  }
  return {429, kQuotaExceeded, "Quota exceeded"};
}

// Whether the rule's numbers are the caller's own business.
bool NumbersShown(const Rule& rule) { return rule.KeyedByCaller() && !rule.hide; }

std::string_view LabelOf(const RuleResult& result) {
  return result.missing == nullptr ? std::string_view("identity") : result.missing->label;
}

std::string LimitInWords(const Limit& limit) {
  if (std::holds_alternative<concurrency::Limit>(limit)) {
    return absl::StrCat(QuotaOf(limit), " at a time");
  }
  return absl::StrCat(QuotaOf(limit), " in ", CeilSeconds(WindowOf(limit)).value_or(1), " s");
}

std::string LimitedDetail(const Outcome& outcome, const RuleResult& shown) {
  std::string detail;
  const Claim* claim = outcome.ClaimOf(shown);
  if (shown.rule->hide) {
    detail = "Too many requests.";
  } else if (NumbersShown(*shown.rule) && claim != nullptr) {
    detail =
        absl::StrCat("Rule \"", shown.rule->name, "\" allows ", LimitInWords(*claim->limit), ".");
  } else {
    detail = absl::StrCat("Too many requests under rule \"", shown.rule->name, "\".");
  }
  const std::optional<std::uint64_t> seconds = RetryAfterSeconds(outcome);
  if (seconds) return absl::StrCat(detail, " Try again in ", *seconds, " s.");
  return absl::StrCat(detail, " Try again when one of yours has ended.");
}

std::string DetailOf(const Outcome& outcome, const RuleResult& shown) {
  if (!shown.rule->message.empty()) return shown.rule->message;
  switch (outcome.answer) {
    case Answer::kMissingIdentity: {
      const std::string_view label = LabelOf(shown);
      return absl::StrCat("This request needs `", absl::string_view(label.data(), label.size()),
                          "`: send it exactly once.");
    }
    case Answer::kDenied:
      return "This request is not allowed here. Waiting does not help.";
    case Answer::kNeverPasses:
      return "This request costs more than may ever be spent at once. Ask for less.";
    case Answer::kLimited:
    case Answer::kAllowed:
    case Answer::kDelayed:
      break;
  }
  return LimitedDetail(outcome, shown);
}

void AppendMember(std::string_view name, std::string_view text, std::string* out) {
  absl::StrAppend(out, ",\"", absl::string_view(name.data(), name.size()), "\":");
  net::AppendJsonString(text, out);
}

void AppendViolatedPolicies(const Outcome& outcome, std::string* out) {
  bool first = true;
  for (const RuleResult& result : outcome.results) {
    const bool told = result.claim >= 0 && outcome.Violated(result) && !result.rule->hide &&
                      result.rule->mode == RuleMode::kEnforce;
    if (!told) continue;
    out->append(first ? ",\"violated-policies\":[" : ",");
    net::AppendJsonString(result.rule->name, out);
    first = false;
  }
  if (!first) out->append("]");
}

}  // namespace

int DenialStatus(const Outcome& outcome) { return KindOf(outcome.answer).status; }

void AppendDenialBody(const Outcome& outcome, std::string* out) {
  const Kind kind = KindOf(outcome.answer);
  const RuleResult* shown = outcome.decisive_result();
  out->append("{\"type\":");
  net::AppendJsonString(kind.type, out);
  AppendMember("title", kind.title, out);
  absl::StrAppend(out, ",\"status\":", kind.status);
  if (shown != nullptr) AppendMember("detail", DetailOf(outcome, *shown), out);
  if (outcome.answer == Answer::kLimited) {
    if (outcome.retry_after != kNever && outcome.retry_after != kUnknown) {
      const auto wait = std::chrono::ceil<std::chrono::milliseconds>(outcome.retry_after);
      absl::StrAppend(out, ",\"retry_after_ms\":", wait.count());
    }
    AppendViolatedPolicies(outcome, out);
  }
  if (outcome.answer == Answer::kNeverPasses && shown != nullptr && NumbersShown(*shown->rule)) {
    const Claim* claim = outcome.ClaimOf(*shown);
    if (claim != nullptr) absl::StrAppend(out, ",\"max_cost\":", CapacityOf(*claim->limit));
    AppendViolatedPolicies(outcome, out);
  }
  out->append("}\n");
}

void AppendDenialFields(const Outcome& outcome, std::string* out) {
  const std::optional<std::uint64_t> seconds = RetryAfterSeconds(outcome);
  if (seconds) net::AppendField("Retry-After", static_cast<std::size_t>(*seconds), out);
  out->append("Cache-Control: no-store\r\n");
  const RuleResult* shown = outcome.decisive_result();
  if (outcome.answer == Answer::kMissingIdentity && shown != nullptr) {
    out->append("WWW-Authenticate: Sluice identity=");
    out->append(QuotedName(LabelOf(*shown)));
    out->append("\r\n");
  }
}

}  // namespace sluice::transport
