#include "sluice/transport/headers.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <variant>

namespace sluice::transport {
namespace {

constexpr std::uint64_t kMaxInteger = 999'999'999'999'999;  // RFC 9651, 3.3.1

void AppendNumber(std::uint64_t value, std::string* out) {
  std::array<char, 20> digits;
  const auto end =
      std::to_chars(digits.data(), digits.data() + digits.size(), std::min(value, kMaxInteger)).ptr;
  out->append(digits.data(), end);
}

// t of one item: see the header.
std::optional<std::uint64_t> SecondsOf(const Decision& decision) {
  if (decision.verdict == Verdict::kLimited) {
    const std::optional<std::uint64_t> wait = CeilSeconds(decision.retry_after);
    return wait ? std::max<std::uint64_t>(*wait, 1) : wait;
  }
  return CeilSeconds(decision.reset_after);
}

}  // namespace

std::string QuotedName(std::string_view name) {
  std::string quoted = "\"";
  for (const char c : name) {
    if (c == '"' || c == '\\') quoted.push_back('\\');
    quoted.push_back(c);
  }
  quoted.push_back('"');
  return quoted;
}

std::optional<std::uint64_t> CeilSeconds(Duration wait) {
  if (wait == kNever || wait == kUnknown) return std::nullopt;
  constexpr std::int64_t kSecond = std::chrono::nanoseconds(std::chrono::seconds(1)).count();
  const std::int64_t ns = std::max<std::int64_t>(wait.count(), 0);
  return static_cast<std::uint64_t>(ns / kSecond + (ns % kSecond > 0 ? 1 : 0));
}

std::optional<std::uint64_t> RetryAfterSeconds(const Outcome& outcome) {
  if (outcome.answer != Answer::kLimited) return std::nullopt;
  const std::optional<std::uint64_t> wait = CeilSeconds(outcome.retry_after);
  return wait ? std::max<std::uint64_t>(*wait, 1) : wait;
}

void AppendPolicyItem(std::string_view name, const Limit& limit, std::string* out) {
  out->append(QuotedName(name));
  out->append(";q=");
  AppendNumber(CapacityOf(limit), out);
  if (std::holds_alternative<concurrency::Limit>(limit)) {
    out->append(R"(;qu="concurrent-requests")");
    return;
  }
  out->append(";w=");
  AppendNumber(std::max<std::uint64_t>(CeilSeconds(WindowOf(limit)).value_or(1), 1), out);
}

void AppendLimitItem(std::string_view quoted_name, const Decision& decision, const Limit& limit,
                     std::string* out) {
  out->append(quoted_name);
  out->append(";r=");
  AppendNumber(std::min(decision.remaining, CapacityOf(limit)), out);
  const std::optional<std::uint64_t> seconds = SecondsOf(decision);
  if (!seconds) return;
  out->append(";t=");
  AppendNumber(*seconds, out);
}

void RateLimitFields::Append(const Outcome& outcome, std::string_view more_policies,
                             std::string_view more_limits, std::string* out) {
  if (outcome.claims.empty() && more_policies.empty() && more_limits.empty()) return;
  if (outcome.rules != rules_) Prepare(outcome);
  Select(outcome);
  AppendLine("RateLimit-Policy: ", outcome, /*policy=*/true, more_policies, out);
  AppendLine("RateLimit: ", outcome, /*policy=*/false, more_limits, out);
}

// The texts of a generation that is new here.
void RateLimitFields::Prepare(const Outcome& outcome) {
  rules_ = outcome.rules;
  texts_.clear();
  for (const Rule& rule : rules_->rules().rules()) {
    Texts& texts = texts_.emplace_back();
    texts.shown = rule.KeyedByCaller() && !rule.hide && rule.mode == RuleMode::kEnforce;
    texts.name = QuotedName(rule.name);
    for (const RuleLimit& limit : rule.limits) {
      AppendPolicyItem(rule.name, limit.limit, &texts.policies.emplace_back());
    }
  }
}

void RateLimitFields::Select(const Outcome& outcome) {
  selected_.clear();
  if (!shown_) return;
  for (const RuleResult& result : outcome.results) {
    if (result.claim >= 0 && texts_[result.rule_index].shown) selected_.push_back(&result);
  }
  // A handful: put each in its place. std::stable_sort would ask for memory.
  for (auto next = selected_.begin(); next != selected_.end(); ++next) {
    const auto place = std::upper_bound(
        selected_.begin(), next, *next, [&outcome](const RuleResult* a, const RuleResult* b) {
          const bool a_denies = outcome.Violated(*a);
          if (a_denies != outcome.Violated(*b)) return a_denies;
          return Tighter(*outcome.ClaimOf(*a), *outcome.ClaimOf(*b));
        });
    std::rotate(place, next, next + 1);
  }
}

void RateLimitFields::AppendLine(std::string_view field, const Outcome& outcome, bool policy,
                                 std::string_view more, std::string* out) const {
  if (selected_.empty() && more.empty()) return;
  out->append(field);
  bool first = true;
  for (const RuleResult* result : selected_) {
    if (!std::exchange(first, false)) out->append(", ");
    const Texts& texts = texts_[result->rule_index];
    if (policy) {
      out->append(texts.policies[result->limit_index]);
      continue;
    }
    const Claim& claim = *outcome.ClaimOf(*result);
    AppendLimitItem(texts.name, claim.decision, *claim.limit, out);
  }
  if (!more.empty()) {
    if (!first) out->append(", ");
    out->append(more);
  }
  out->append("\r\n");
}

}  // namespace sluice::transport
