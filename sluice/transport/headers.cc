#include "sluice/transport/headers.h"

#include <algorithm>
#include <chrono>
#include <utility>
#include <variant>

#include "sluice/net/http1_answer.h"
#include "sluice/transport/told_wait.h"

namespace sluice::transport {
namespace {

using namespace std::string_view_literals;

constexpr std::uint64_t kMaxInteger = 999'999'999'999'999;  // RFC 9651, 3.3.1

void AppendNumber(std::uint64_t value, std::string* out) {
  net::AppendNumber(std::min(value, kMaxInteger), out);
}

// t, and what the older dialects call reset: see the header.
Duration WaitOf(const Decision& decision) {
  if (decision.verdict != Verdict::kLimited) return decision.reset_after;
  return decision.retry_after == kUnknown ? kUnknown : std::max(decision.retry_after, Duration{1});
}

std::uint64_t RemainingOf(const Decision& decision, const Limit& limit) {
  return std::min(decision.remaining, CapacityOf(limit));
}

std::uint64_t WindowSeconds(const Limit& limit) {
  return std::max<std::uint64_t>(CeilSeconds(WindowOf(limit)).value_or(1), 1);
}

void AppendNumberLine(std::string_view name, std::uint64_t value, std::string* out) {
  out->append(name).append(": "sv);
  AppendNumber(value, out);
  out->append("\r\n"sv);
}

void PassOn(LimitField field, const UpstreamLimits& said, std::string* out) {
  if (!said[field].empty()) net::AppendField(NameOf(field), said[field], out);
}

// The second since 1970 in which the wait is over, or the next. Rounding the sum up, rather than
// both, is what a client's own clock is to be compared with.
std::uint64_t EpochAfter(WallTime now, Duration wait) {
  constexpr std::uint64_t kSecond = 1'000'000'000;
  const std::int64_t since = std::max<std::int64_t>(now.time_since_epoch().count(), 0);
  return (static_cast<std::uint64_t>(since) + static_cast<std::uint64_t>(wait.count()) + kSecond -
          1) /
         kSecond;
}

// Whether the upstream leaves less than we do.
bool LeavesLess(const std::optional<SaidOfOne>& said, std::uint64_t remaining, bool epoch) {
  // No window is 30 years long, and no clock that is set stands before 2001.
  constexpr std::uint64_t kFirstEpoch = 1'000'000'000;
  return said && said->remaining < remaining && (said->reset >= kFirstEpoch) == epoch;
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
  if (outcome.answer != Answer::kLimited && outcome.answer != Answer::kUnavailable) {
    return std::nullopt;
  }
  const std::optional<std::uint64_t> wait = CeilSeconds(ToldWait(outcome));
  return wait ? std::max<std::uint64_t>(*wait, 1) : wait;
}

void AppendPolicyItem(std::string_view name, const Limit& limit, std::string* out) {
  out->append(QuotedName(name));
  out->append(";q="sv);
  AppendNumber(CapacityOf(limit), out);
  if (std::holds_alternative<concurrency::Limit>(limit)) {
    out->append(R"(;qu="concurrent-requests")"sv);
    return;
  }
  out->append(";w="sv);
  AppendNumber(WindowSeconds(limit), out);
}

void AppendLimitItem(std::string_view quoted_name, const Decision& decision, const Limit& limit,
                     std::string* out) {
  out->append(quoted_name);
  out->append(";r="sv);
  AppendNumber(RemainingOf(decision, limit), out);
  const std::optional<std::uint64_t> seconds = CeilSeconds(WaitOf(decision));
  if (!seconds) return;
  out->append(";t="sv);
  AppendNumber(*seconds, out);
}

void RateLimitFields::Append(const Outcome& outcome, std::string* out) {
  static const UpstreamLimits nothing;
  Append(outcome, nothing, out);
}

bool RateLimitFields::Take(std::string_view name, std::string_view value,
                           UpstreamLimits* said) const {
  const std::optional<LimitField> field = FindLimitField(name);
  if (!field || !Writes(dialects_, *field)) return false;
  said->Add(*field, value);
  return true;
}

void RateLimitFields::Append(const Outcome& outcome, const UpstreamLimits& said, std::string* out) {
  Select(outcome);
  if (dialects_.draft_11) AppendLists(outcome, said, out);
  if (!dialects_.draft_07 && !dialects_.draft_06 && !dialects_.any_x()) return;
  const std::optional<One> one = SelectOne(outcome);
  AppendOlderDrafts(one, said, out);
  if (dialects_.any_x()) AppendX(one, said, out);
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
      Policy& policy = texts.policies.emplace_back();
      AppendPolicyItem(rule.name, limit.limit, &policy.named);
      if (std::holds_alternative<concurrency::Limit>(limit.limit)) continue;
      AppendNumber(CapacityOf(limit.limit), &policy.plain);
      policy.plain.append(";w="sv);
      AppendNumber(WindowSeconds(limit.limit), &policy.plain);
    }
  }
}

void RateLimitFields::Select(const Outcome& outcome) {
  selected_.clear();
  if (outcome.claims.empty()) return;
  if (outcome.rules != rules_) Prepare(outcome);
  for (const RuleResult& result : outcome.results) {
    if (result.claim >= 0 && texts_[result.rule_index].shown) selected_.push_back(&result);
  }
  const RuleResult* const decisive = outcome.decisive_result();
  // A handful: put each in its place. std::stable_sort would ask for memory.
  for (auto next = selected_.begin(); next != selected_.end(); ++next) {
    const auto place = std::upper_bound(
        selected_.begin(), next, *next, [&](const RuleResult* a, const RuleResult* b) {
          const bool a_denies = outcome.Violated(*a);
          if (a_denies != outcome.Violated(*b)) return a_denies;
          // Of several that deny, the one that Retry-After speaks of.
          if (a_denies && (a == decisive || b == decisive)) return a == decisive;
          return Tighter(*outcome.ClaimOf(*a), *outcome.ClaimOf(*b));
        });
    std::rotate(place, next, next + 1);
  }
}

std::optional<RateLimitFields::One> RateLimitFields::SelectOne(const Outcome& outcome) const {
  for (const RuleResult* result : selected_) {
    if (PolicyOf(*result).plain.empty()) continue;
    const Claim& claim = *outcome.ClaimOf(*result);
    const Duration wait = WaitOf(ToldDecision(outcome, *result));
    const std::optional<std::uint64_t> seconds = CeilSeconds(wait);
    if (!seconds) continue;
    return One{.limit = CapacityOf(*claim.limit),
               .remaining = RemainingOf(claim.decision, *claim.limit),
               .reset = *seconds,
               .reset_epoch = EpochAfter(outcome.now.wall, wait)};
  }
  return std::nullopt;
}

void RateLimitFields::AppendLists(const Outcome& outcome, const UpstreamLimits& said,
                                  std::string* out) const {
  for (const LimitField field : {LimitField::kPolicy, LimitField::kRateLimit}) {
    if (selected_.empty()) {
      PassOn(field, said, out);
      continue;
    }
    out->append(NameOf(field)).append(": "sv);
    for (const RuleResult* result : selected_) {
      if (result != selected_.front()) out->append(", "sv);
      if (field == LimitField::kPolicy) {
        out->append(PolicyOf(*result).named);
        continue;
      }
      AppendLimitItem(texts_[result->rule_index].name, ToldDecision(outcome, *result),
                      *outcome.ClaimOf(*result)->limit, out);
    }
    if (!said[field].empty() && IsListOfStrings(said[field]))
      out->append(", "sv).append(said[field]);
    out->append("\r\n"sv);
  }
}

void RateLimitFields::AppendPlainPolicies(bool first, std::string* out) const {
  for (const RuleResult* result : selected_) {
    const std::string& policy = PolicyOf(*result).plain;
    if (policy.empty()) continue;
    if (!std::exchange(first, false)) out->append(", "sv);
    out->append(policy);
  }
  out->append("\r\n"sv);
}

void RateLimitFields::AppendOlderDrafts(const std::optional<One>& one, const UpstreamLimits& said,
                                        std::string* out) const {
  const bool numbers_ours =
      one && !LeavesLess(ReadNumbers(said[LimitField::kRemaining], said[LimitField::kReset]),
                         one->remaining, /*epoch=*/false);
  const bool dictionary_ours =
      one && !LeavesLess(ReadDictionary(said[LimitField::kRateLimit]), one->remaining,
                         /*epoch=*/false);
  if (!dialects_.draft_11 && (dialects_.draft_07 || dialects_.draft_06)) {
    if (dialects_.draft_07 ? dictionary_ours : numbers_ours) {
      out->append(NameOf(LimitField::kPolicy)).append(": "sv);
      AppendPlainPolicies(/*first=*/true, out);
    } else {
      PassOn(LimitField::kPolicy, said, out);
    }
  }
  if (dialects_.draft_07 && dictionary_ours) {
    out->append("RateLimit: limit="sv);
    AppendNumber(one->limit, out);
    out->append(", remaining="sv);
    AppendNumber(one->remaining, out);
    out->append(", reset="sv);
    AppendNumber(one->reset, out);
    out->append("\r\n"sv);
  } else if (dialects_.draft_07) {
    PassOn(LimitField::kRateLimit, said, out);
  }
  if (dialects_.draft_06 && numbers_ours) {
    AppendNumberLine(NameOf(LimitField::kLimit), one->limit, out);
    AppendNumberLine(NameOf(LimitField::kRemaining), one->remaining, out);
    AppendNumberLine(NameOf(LimitField::kReset), one->reset, out);
  } else if (dialects_.draft_06) {
    for (const auto field : {LimitField::kLimit, LimitField::kRemaining, LimitField::kReset}) {
      PassOn(field, said, out);
    }
  }
}

void RateLimitFields::AppendX(const std::optional<One>& one, const UpstreamLimits& said,
                              std::string* out) const {
  if (!one || LeavesLess(ReadNumbers(said[LimitField::kXRemaining], said[LimitField::kXReset]),
                         one->remaining, dialects_.x_epoch)) {
    for (const auto field : {LimitField::kXLimit, LimitField::kXRemaining, LimitField::kXReset}) {
      PassOn(field, said, out);
    }
  } else if (dialects_.envoy) {
    out->append("x-ratelimit-limit: "sv);
    AppendNumber(one->limit, out);
    AppendPlainPolicies(/*first=*/false, out);
    AppendNumberLine("x-ratelimit-remaining", one->remaining, out);
    AppendNumberLine("x-ratelimit-reset", one->reset, out);
  } else {
    AppendNumberLine(NameOf(LimitField::kXLimit), one->limit, out);
    AppendNumberLine(NameOf(LimitField::kXRemaining), one->remaining, out);
    AppendNumberLine(NameOf(LimitField::kXReset), dialects_.x_epoch ? one->reset_epoch : one->reset,
                     out);
  }
}

}  // namespace sluice::transport
