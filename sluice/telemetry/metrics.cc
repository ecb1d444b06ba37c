#include "sluice/telemetry/metrics.h"

#include "sluice/telemetry/prometheus.h"

namespace sluice {
namespace {

constexpr std::array kAllVerdicts = {RuleVerdict::kAllowed,     RuleVerdict::kDelayed,
                                     RuleVerdict::kUnavailable, RuleVerdict::kLimited,
                                     RuleVerdict::kNeverPasses, RuleVerdict::kMissingIdentity,
                                     RuleVerdict::kDenied,      RuleVerdict::kShadowLimited};
static_assert(kAllVerdicts.size() == kRuleVerdicts);

constexpr std::array kAllAnswers = {
    Answer::kAllowed,     Answer::kDelayed,         Answer::kUnavailable, Answer::kLimited,
    Answer::kNeverPasses, Answer::kMissingIdentity, Answer::kDenied};
static_assert(kAllAnswers.size() == kAnswers);

constexpr std::array kAllFailureModes = {AnsweredBy::kOpen, AnsweredBy::kClosed,
                                         AnsweredBy::kLocal};
static_assert(kAllFailureModes.size() == kFailureModes);

std::string_view Name(AnsweredBy failure_mode) {
  switch (failure_mode) {
    case AnsweredBy::kOpen:
      return "open";
    case AnsweredBy::kClosed:
      return "closed";
    case AnsweredBy::kLocal:
      return "local";
    case AnsweredBy::kStore:
    case AnsweredBy::kNobody:
    case AnsweredBy::kLease:
    case AnsweredBy::kMemory:
      break;
  }
  return "";
}

// Where it is in kAllFailureModes; behind its end for an answer by no failure mode.
std::size_t IndexOf(AnsweredBy by) {
  return by < AnsweredBy::kOpen
             ? kFailureModes
             : static_cast<std::size_t>(by) - static_cast<std::size_t>(AnsweredBy::kOpen);
}

// The rule met the request, but had nothing to say.
bool Silent(const RuleResult& result) { return result.answered_by == AnsweredBy::kNobody; }

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
  const Claim* const claim = outcome.ClaimOf(result);
  if (claim == nullptr) {
    return result.answered_by == AnsweredBy::kClosed ? RuleVerdict::kUnavailable
                                                     : RuleVerdict::kAllowed;
  }
  switch (claim->decision.verdict) {
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
    case RuleVerdict::kUnavailable:
      return "unavailable";
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

template <class What>
std::uint64_t Metrics::CountLocked(std::string_view rule, What what) const {
  std::uint64_t sum = 0;
  for (const auto& thread : threads_) sum += thread->Count(rule, what);
  return sum;
}

std::uint64_t ThreadMetrics::Count(std::string_view rule, RuleVerdict verdict) const {
  const std::lock_guard lock(mutex_);
  const auto found = by_name_.find(rule);
  if (found == by_name_.end()) return 0;
  return found->second->verdicts[static_cast<std::size_t>(verdict)].value();
}

std::uint64_t ThreadMetrics::Count(std::string_view rule, AnsweredBy answered_by) const {
  const std::size_t index = IndexOf(answered_by);
  const std::lock_guard lock(mutex_);
  const auto found = by_name_.find(rule);
  if (found == by_name_.end()) return 0;
  if (answered_by == AnsweredBy::kMemory) return found->second->remembered.value();
  if (answered_by == AnsweredBy::kLease) return found->second->leased.value();
  return index == kFailureModes ? 0 : found->second->failure_modes[index].value();
}

std::uint64_t Metrics::Count(std::string_view rule, RuleVerdict verdict) const {
  const std::lock_guard lock(mutex_);
  return CountLocked(rule, verdict);
}

std::uint64_t Metrics::Count(std::string_view rule, AnsweredBy answered_by) const {
  const std::lock_guard lock(mutex_);
  return CountLocked(rule, answered_by);
}

std::uint64_t Metrics::Count(Answer answer) const {
  const std::lock_guard lock(mutex_);
  std::uint64_t sum = 0;
  for (const auto& thread : threads_)
    sum += thread->answers_[static_cast<std::size_t>(answer)].value();
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
  writer.Family("sluice_degraded_decisions_total", "counter",
                "Decisions of each rule while the shared store did not answer, by failure mode.");
  for (const std::string& rule : shown_) {
    for (const AnsweredBy mode : kAllFailureModes) {
      writer.Sample({{"rule", rule}, {"mode", Name(mode)}}, CountLocked(rule, mode));
    }
  }
  writer.Family("sluice_remembered_denials_total", "counter",
                "Denials of each rule that this node remembered, without asking the shared store.");
  for (const std::string& rule : shown_) {
    writer.Sample({{"rule", rule}}, CountLocked(rule, AnsweredBy::kMemory));
  }
  writer.Family("sluice_leased_decisions_total", "counter",
                "Decisions of each rule from what this node had leased of the shared store.");
  for (const std::string& rule : shown_) {
    writer.Sample({{"rule", rule}}, CountLocked(rule, AnsweredBy::kLease));
  }
}

void ThreadMetrics::OnDecision(const LimitRequest&, const Outcome& outcome) noexcept {
  answers_[static_cast<std::size_t>(outcome.answer)].Add();
  for (const RuleResult& result : outcome.results) {
    if (Silent(result)) continue;
    RuleCounters& counters = *by_rule_index_[result.rule_index];
    counters.verdicts[static_cast<std::size_t>(VerdictOf(outcome, result))].Add();
    if (const std::size_t mode = IndexOf(result.answered_by); mode < kFailureModes) [[unlikely]] {
      counters.failure_modes[mode].Add();
    }
    if (result.answered_by == AnsweredBy::kLease) counters.leased.Add();
    if (result.answered_by == AnsweredBy::kMemory) [[unlikely]]
      counters.remembered.Add();
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
