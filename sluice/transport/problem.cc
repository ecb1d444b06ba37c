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

using namespace std::string_view_literals;

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
    case Answer::kUnavailable:
      return {
          429,
          R"({"type":"https://iana.org/assignments/http-problem-types#temporary-reduced-capacity",)"
          R"("title":"Temporary reduced capacity","status":429)",
          R"({"error":"temporary_reduced_capacity")"};
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

// A sentence on its way, inside of a JSON string or by itself. It goes straight into the body: a
// denial is the one answer that must cost next to nothing.
struct Sentence {
  std::string* out;
  bool in_json;

  void Say(std::string_view words) const { out->append(words); }
  void Number(std::uint64_t number) const { net::AppendNumber(number, out); }
  // Somebody else's text, with any bytes.
  void Cite(std::string_view text) const {
    if (in_json) {
      net::AppendJsonText(text, out);
    } else {
      out->append(text);
    }
  }
  void Quote(std::string_view text) const {
    const std::string_view mark = in_json ? R"(\")" : R"(")";
    Say(mark);
    Cite(text);
    Say(mark);
  }
};

void TellLimit(const Limit& limit, const Sentence& sentence) {
  sentence.Number(CapacityOf(limit));
  if (std::holds_alternative<concurrency::Limit>(limit)) return sentence.Say(" at a time");
  sentence.Say(" in ");
  sentence.Number(CeilSeconds(WindowOf(limit)).value_or(1));
  sentence.Say(" s");
}

// All that does not change from one denial by this limit to the next.
void TellOfRule(const RuleResult& shown, const Claim* claim, const Sentence& sentence) {
  if (shown.rule->hide) {
    sentence.Say("Too many requests.");
  } else {
    const bool numbers = NumbersShown(*shown.rule) && claim != nullptr;
    sentence.Say(numbers ? "Rule " : "Too many requests under rule ");
    sentence.Quote(shown.rule->name);
    if (numbers) {
      sentence.Say(" allows ");
      TellLimit(*claim->limit, sentence);
    }
    sentence.Say(".");
  }
}

constexpr std::string_view kBeforeWait = " Try again in ";

void TellOfLimited(const Outcome& outcome, const RuleResult& shown, const Sentence& sentence) {
  TellOfRule(shown, outcome.ClaimOf(shown), sentence);
  const std::optional<std::uint64_t> seconds = RetryAfterSeconds(outcome);
  if (!seconds) return sentence.Say(" Try again when one of yours has ended.");
  sentence.Say(kBeforeWait);
  sentence.Number(*seconds);
  sentence.Say(" s.");
}

// What a client may know of where it is looked for; the label is the configuration's own word.
void TellOfMissing(const RuleResult& result, const Sentence& sentence) {
  const Source* missing = result.missing;
  const SourceKind kind = missing == nullptr ? SourceKind::kGlobal : missing->kind;
  sentence.Say("This request needs ");
  if (kind == SourceKind::kHeader) sentence.Say("the header ");
  if (kind == SourceKind::kCookie) sentence.Say("the cookie ");
  if (kind == SourceKind::kQuery) sentence.Say("the query parameter ");
  const bool named = missing != nullptr && !missing->name.empty();
  sentence.Say("`");
  sentence.Cite(named ? std::string_view(missing->name) : LabelOf(result));
  sentence.Say("`: send it exactly once.");
}

void TellOfUnavailable(const Outcome& outcome, const Sentence& sentence) {
  sentence.Say("Requests can't be counted just now.");
  sentence.Say(kBeforeWait);
  sentence.Number(RetryAfterSeconds(outcome).value_or(1));
  sentence.Say(" s.");
}

void TellOfDenial(const Outcome& outcome, const RuleResult& shown, const Sentence& sentence) {
  if (!shown.rule->message.empty()) return sentence.Cite(shown.rule->message);
  switch (outcome.answer) {
    case Answer::kMissingIdentity:
      return TellOfMissing(shown, sentence);
    case Answer::kDenied:
      return sentence.Say("This request is not allowed here. Waiting does not help.");
    case Answer::kNeverPasses:
      return sentence.Say("This request costs more than may ever be spent at once. Ask for less.");
    case Answer::kUnavailable:
      return TellOfUnavailable(outcome, sentence);
    case Answer::kLimited:
    case Answer::kAllowed:
    case Answer::kDelayed:
      break;
  }
  TellOfLimited(outcome, shown, sentence);
}

// The members that both forms have.
void AppendNumbers(const Outcome& outcome, std::string* out) {
  const bool waits = outcome.answer == Answer::kLimited || outcome.answer == Answer::kUnavailable;
  if (waits && outcome.retry_after != kNever && outcome.retry_after != kUnknown) {
    const auto wait = std::chrono::ceil<std::chrono::milliseconds>(ToldWait(outcome));
    out->append(",\"retry_after_ms\":"sv);
    net::AppendNumber(static_cast<std::size_t>(wait.count()), out);
  }
  const RuleResult* shown = outcome.decisive_result();
  if (outcome.answer == Answer::kNeverPasses && shown != nullptr && NumbersShown(*shown->rule)) {
    const Claim* claim = outcome.ClaimOf(*shown);
    if (claim == nullptr) return;
    out->append(",\"max_cost\":"sv);
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
  if (!first) out->append("]"sv);
}

// Up to the sentence, if there is one.
void AppendBeginning(Answer answer, bool sentence, BodyForm form, std::string* out) {
  const Kind kind = KindOf(answer);
  const bool problem = form == BodyForm::kProblem;
  out->append(problem ? kind.problem : kind.plain);
  if (sentence) out->append(problem ? R"(,"detail":")"sv : R"(,"message":")"sv);
}

// From the end of the sentence.
void AppendRest(const Outcome& outcome, BodyForm form, std::string* out) {
  const bool problem = form == BodyForm::kProblem;
  const RuleResult* shown = outcome.decisive_result();
  if (shown != nullptr) out->push_back('"');
  if (!problem && shown != nullptr && !shown->rule->hide) {
    out->append(R"(,"rule":)"sv);
    net::AppendJsonString(shown->rule->name, out);
  }
  AppendNumbers(outcome, out);
  if (problem) AppendViolatedPolicies(outcome, out);
  out->append("}\n"sv);
}

}  // namespace

std::string_view ContentTypeOf(BodyForm form) {
  return form == BodyForm::kProblem ? "application/problem+json" : "application/json";
}

int DenialStatus(const Outcome& outcome) { return KindOf(outcome.answer).status; }

void AppendDenialBody(const Outcome& outcome, BodyForm form, std::string* out) {
  const RuleResult* shown = outcome.decisive_result();
  AppendBeginning(outcome.answer, shown != nullptr, form, out);
  if (shown != nullptr) TellOfDenial(outcome, *shown, {.out = out, .in_json = true});
  AppendRest(outcome, form, out);
}

// A flood is denied by one rule, with nothing new to say but the wait.
void DenialBodies::Append(const Outcome& outcome, std::string* out) {
  const RuleResult* shown = outcome.decisive_result();
  const std::optional<std::uint64_t> seconds = RetryAfterSeconds(outcome);
  if (shown == nullptr || shown->answered_by == AnsweredBy::kLocal || shown->claim < 0 ||
      !seconds || !shown->rule->message.empty()) {
    return AppendDenialBody(outcome, form_, out);
  }
  out->append(UpToWait(outcome, *shown));
  net::AppendNumber(*seconds, out);
  out->append(" s."sv);
  AppendRest(outcome, form_, out);
}

const std::string& DenialBodies::UpToWait(const Outcome& outcome, const RuleResult& shown) {
  if (outcome.rules != rules_) {
    rules_ = outcome.rules;
    texts_.clear();
    texts_.resize(rules_->rules().rules().size());
  }
  std::vector<std::string>& of_rule = texts_[shown.rule_index];
  of_rule.resize(shown.rule->limits.size());
  std::string& text = of_rule[shown.limit_index];
  if (text.empty()) {
    AppendBeginning(outcome.answer, /*sentence=*/true, form_, &text);
    TellOfRule(shown, outcome.ClaimOf(shown), {.out = &text, .in_json = true});
    text.append(kBeforeWait);
  }
  return text;
}

void AppendDenialText(const Outcome& outcome, std::string* out) {
  const RuleResult* shown = outcome.decisive_result();
  if (shown != nullptr) TellOfDenial(outcome, *shown, {.out = out, .in_json = false});
}

void AppendDenialFields(const Outcome& outcome, std::string* out) {
  const std::optional<std::uint64_t> seconds = RetryAfterSeconds(outcome);
  if (seconds) net::AppendField("Retry-After", static_cast<std::size_t>(*seconds), out);
  out->append("Cache-Control: no-store\r\n"sv);
  const RuleResult* shown = outcome.decisive_result();
  if (outcome.answer == Answer::kMissingIdentity && shown != nullptr) {
    out->append("WWW-Authenticate: Sluice identity="sv);
    out->append(QuotedName(LabelOf(*shown)));
    out->append("\r\n"sv);
  }
}

}  // namespace sluice::transport
