#include "sluice/telemetry/metrics.h"

#include "sluice/telemetry/prometheus.h"

namespace sluice {
namespace {

constexpr std::array kAllVerdicts = {RuleVerdict::kAllowed,         RuleVerdict::kDelayed,
                                     RuleVerdict::kLimited,         RuleVerdict::kNeverPasses,
                                     RuleVerdict::kMissingIdentity, RuleVerdict::kDenied,
                                     RuleVerdict::kShadowLimited};
static_assert(kAllVerdicts.size() == kRuleVerdicts);

constexpr std::array kAllAnswers = {Answer::kAllowed,         Answer::kDelayed,
                                    Answer::kLimited,         Answer::kNeverPasses,
                                    Answer::kMissingIdentity, Answer::kDenied};
static_assert(kAllAnswers.size() == kAnswers);

RuleVerdict VerdictOf(const Outcome& outcome, const RuleResult& result) {
  if (result.rule->mode == RuleMode::kShadow && outcome.Violated(result)) {
    return RuleVerdict::kShadowLimited;
  }
  switch (result.match) {
    case MatchOutcome::kDenies:
      return RuleVerdict::kDenied;
    case MatchOutcome::kMissingKey:
      return RuleVerdict::kMissingIdentity;
    case MatchOutcome::kCounts:
      break;
  }
  switch (outcome.ClaimOf(result)->decision.verdict) {
    case Verdict::kAllowed:
      return RuleVerdict::kAllowed;
    case Verdict::kDelayed:
      return RuleVerdict::kDelayed;
    case Verdict::kLimited:
      return RuleVerdict::kLimited;
    case Verdict::kNever:
      return RuleVerdict::kNeverPasses;
  }
  return RuleVerdict::kAllowed;
}

}  // namespace

std::string_view Name(RuleVerdict verdict) {
  switch (verdict) {
    case RuleVerdict::kAllowed:
      return "allowed";
    case RuleVerdict::kDelayed:
      return "delayed";
    case RuleVerdict::kLimited:
      return "limited";
    case RuleVerdict::kNeverPasses:
      return "never";
    case RuleVerdict::kMissingIdentity:
      return "missing_identity";
    case RuleVerdict::kDenied:
      return "denied";
    case RuleVerdict::kShadowLimited:
      return "shadow_limited";
  }
  return "";
}

Metrics::Metrics() = default;
Metrics::~Metrics() = default;

ThreadMetrics& Metrics::AddThread() {
  const std::lock_guard lock(mutex_);
  return *threads_.emplace_back(std::make_unique<ThreadMetrics>());
}

void Metrics::Show(const RuleSet& rules) {
  const std::lock_guard lock(mutex_);
  shown_.clear();
  for (const Rule& rule : rules.rules()) shown_.push_back(rule.name);
}

std::uint64_t Metrics::CountLocked(std::string_view rule, RuleVerdict verdict) const {
  std::uint64_t sum = 0;
  for (const auto& thread : threads_) {
    const std::lock_guard lock(thread->mutex_);
    const auto found = thread->by_name_.find(rule);
    if (found == thread->by_name_.end()) continue;
    sum += (*found->second)[static_cast<std::size_t>(verdict)].Get();
  }
  return sum;
}

std::uint64_t Metrics::Count(std::string_view rule, RuleVerdict verdict) const {
  const std::lock_guard lock(mutex_);
  return CountLocked(rule, verdict);
}

std::uint64_t Metrics::Count(Answer answer) const {
  const std::lock_guard lock(mutex_);
  std::uint64_t sum = 0;
  for (const auto& thread : threads_)
    sum += thread->answers_[static_cast<std::size_t>(answer)].Get();
  return sum;
}

void Metrics::Write(std::string& out) const {
  PrometheusWriter writer(out);
  writer.Family("sluice_requests_total", "counter", "Requests decided, by the answer given.");
  for (const Answer answer : kAllAnswers) {
    writer.Sample({{"answer", AnswerName(answer)}}, Count(answer));
  }
  writer.Family("sluice_decisions_total", "counter",
                "What each rule said of the requests that it met.");
  const std::lock_guard lock(mutex_);
  for (const std::string& rule : shown_) {
    for (const RuleVerdict verdict : kAllVerdicts) {
      writer.Sample({{"rule", rule}, {"verdict", Name(verdict)}}, CountLocked(rule, verdict));
    }
  }
}

void ThreadMetrics::OnDecision(const LimitRequest&, const Outcome& outcome) noexcept {
  answers_[static_cast<std::size_t>(outcome.answer)].Add();
  for (const RuleResult& result : outcome.results) {
    RuleCounters& counters = *by_rule_index_[result.rule_index];
    counters[static_cast<std::size_t>(VerdictOf(outcome, result))].Add();
  }
}

void ThreadMetrics::Bind(const RuleSet& rules) {
  const std::lock_guard lock(mutex_);
  by_rule_index_.clear();
  for (const Rule& rule : rules.rules()) {
    std::unique_ptr<RuleCounters>& counters = by_name_[rule.name];
    if (counters == nullptr) counters = std::make_unique<RuleCounters>();
    by_rule_index_.push_back(counters.get());
  }
}

}  // namespace sluice
