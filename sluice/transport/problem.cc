#include "sluice/transport/problem.h"

#include <chrono>
#include <cstdint>
#include <optional>
#include <string_view>

#include "sluice/net/http1_answer.h"
#include "sluice/transport/headers.h"
#include "sluice/transport/told_wait.h"

namespace sluice::transport {
namespace {

// A kind of denial, and how its body begins in either form.
struct Kind {
  int status;
  std::string_view problem;
  std::string_view plain;
};

Kind KindOf(Answer answer) {
  switch (answer) {
    case Answer::kMissingIdentity:
      return {401,
              R"({"type":"urn:sluice:problem:missing-identity",)"
              R"("title":"Missing identity","status":401)",
              R"({"error":"missing_identity")"};
    case Answer::kDenied:
      return {403, R"({"type":"urn:sluice:problem:denied","title":"Denied","status":403)",
              R"({"error":"denied")"};
    case Answer::kNeverPasses:
      return {422,
              R"({"type":"urn:sluice:problem:cost-above-limit",)"
              R"("title":"The cost can never be met","status":422)",
              R"({"error":"cost_above_limit")"};
    case Answer::kLimited:
    case Answer::kAllowed:
    case Answer::kDelayed:
      break;
  }
  return {429,
          R"({"type":"https://iana.org/assignments/http-problem-types#quota-exceeded",)"
          R"("title":"Quota exceeded","status":429)",
          R"({"error":"rate_limited")"};
}

// Whether the rule's numbers are the caller's own business.
bool NumbersShown(const Rule& rule) { return rule.KeyedByCaller() && !rule.hide; }

std::string_view LabelOf(const RuleResult& result) {
  return result.missing == nullptr ? std::string_view("identity") : result.missing->label;
}

// The texts go straight into the body: a denial is the one answer that must cost next to nothing.

void AppendLimitInWords(const Limit& limit, std::string* out) {
  net::AppendNumber(CapacityOf(limit), out);
  if (std::holds_alternative<concurrency::Limit>(limit)) {
    out->append(" at a time");
    return;
  }
  out->append(" in ");
  net::AppendNumber(CeilSeconds(WindowOf(limit)).value_or(1), out);
  out->append(" s");
}

void AppendLimitedDetail(const Outcome& outcome, const RuleResult& shown, std::string* out) {
  const Claim* claim = outcome.ClaimOf(shown);
  if (shown.rule->hide) {
    out->append("Too many requests.");
  } else {
    const bool numbers = NumbersShown(*shown.rule) && claim != nullptr;
    out->append(numbers ? "Rule \\\"" : "Too many requests under rule \\\"");
    net::AppendJsonText(shown.rule->name, out);
    out->append("\\\"");
    if (numbers) {
      out->append(" allows ");
      AppendLimitInWords(*claim->limit, out);
    }
    out->append(".");
  }
  const std::optional<std::uint64_t> seconds = RetryAfterSeconds(outcome);
  if (!seconds) {
    out->append(" Try again when one of yours has ended.");
    return;
  }
  out->append(" Try again in ");
  net::AppendNumber(*seconds, out);
  out->append(" s.");
}

void AppendDetail(const Outcome& outcome, const RuleResult& shown, std::string* out) {
  if (!shown.rule->message.empty()) return net::AppendJsonText(shown.rule->message, out);
  switch (outcome.answer) {
    case Answer::kMissingIdentity:
      out->append("This request needs `");
      net::AppendJsonText(LabelOf(shown), out);
      out->append("`: send it exactly once.");
      return;
    case Answer::kDenied:
      out->append("This request is not allowed here. Waiting does not help.");
      return;
    case Answer::kNeverPasses:
      out->append("This request costs more than may ever be spent at once. Ask for less.");
      return;
    case Answer::kLimited:
    case Answer::kAllowed:
    case Answer::kDelayed:
      break;
  }
  AppendLimitedDetail(outcome, shown, out);
}

// The members that both forms have.
void AppendNumbers(const Outcome& outcome, std::string* out) {
  if (outcome.answer == Answer::kLimited && outcome.retry_after != kNever &&
      outcome.retry_after != kUnknown) {
    const auto wait = std::chrono::ceil<std::chrono::milliseconds>(ToldWait(outcome));
    out->append(",\"retry_after_ms\":");
    net::AppendNumber(static_cast<std::size_t>(wait.count()), out);
  }
  const RuleResult* shown = outcome.decisive_result();
  if (outcome.answer == Answer::kNeverPasses && shown != nullptr && NumbersShown(*shown->rule)) {
    const Claim* claim = outcome.ClaimOf(*shown);
    if (claim == nullptr) return;
    out->append(",\"max_cost\":");
    net::AppendNumber(CapacityOf(*claim->limit), out);
  }
}

void AppendViolatedPolicies(const Outcome& outcome, std::string* out) {
  if (outcome.answer != Answer::kLimited && outcome.answer != Answer::kNeverPasses) return;
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

std::string_view ContentTypeOf(BodyForm form) {
  return form == BodyForm::kProblem ? "application/problem+json" : "application/json";
}

int DenialStatus(const Outcome& outcome) { return KindOf(outcome.answer).status; }

void AppendDenialBody(const Outcome& outcome, BodyForm form, std::string* out) {
  const bool problem = form == BodyForm::kProblem;
  const Kind kind = KindOf(outcome.answer);
  const RuleResult* shown = outcome.decisive_result();
  out->append(problem ? kind.problem : kind.plain);
  if (shown != nullptr) {
    out->append(problem ? R"(,"detail":")" : R"(,"message":")");
    AppendDetail(outcome, *shown, out);
    out->push_back('"');
  }
  if (!problem && shown != nullptr && !shown->rule->hide) {
    out->append(R"(,"rule":)");
    net::AppendJsonString(shown->rule->name, out);
  }
  AppendNumbers(outcome, out);
  if (problem) AppendViolatedPolicies(outcome, out);
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
