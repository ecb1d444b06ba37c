// Counters of decisions, by rule and verdict.
//
//   loop 1 ── ThreadMetrics ──┐
//   loop 2 ── ThreadMetrics ──┴── Metrics::Write ──> /metrics
//
// Each event loop counts in numbers of its own (one relaxed store each, no lock, no shared cache
// line); whoever asks adds them up. Labels are the rules' names and the verdicts, never an
// identity, so clients cannot make series. Every series is there from the start, at 0. Counters
// stay with a rule's name over a reload.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/base/one_writer_counter.h"
#include "sluice/limiter/observer.h"
#include "sluice/rule/rule_set.h"

namespace sluice {

// What one rule said of one request. A rule that was passed may have been part of a denial.
enum class RuleVerdict : std::uint8_t {
  kAllowed,
  kDelayed,
  kUnavailable,  // fails closed while the shared store does not answer
  kLimited,
  kNeverPasses,
  kMissingIdentity,
  kDenied,
  kShadowLimited,  // a shadow rule that would have denied
};
inline constexpr std::size_t kRuleVerdicts = 8;
inline constexpr std::size_t kAnswers = 7;  // values of Answer
[[nodiscard]] std::string_view Name(RuleVerdict verdict);
// What answered in the shared store's place: "open", "closed", "local".
inline constexpr std::size_t kFailureModes = 3;

class ThreadMetrics;

class Metrics {
 public:
  Metrics();
  ~Metrics();

  // One for each thread that decides; lives as long as this.
  ThreadMetrics& AddThread();

  // From now on the series of these rules are shown, and no others.
  void Show(const RuleSet& rules);

  // In the Prometheus text format, after what `out` holds.
  void Write(std::string& out) const;

  // The sum over all threads.
  [[nodiscard]] std::uint64_t Count(std::string_view rule, RuleVerdict verdict) const;
  [[nodiscard]] std::uint64_t Count(Answer answer) const;
  // Decisions of the rule that no store took: by its failure mode, from the memory of denials, or
  // from a lease.
  [[nodiscard]] std::uint64_t Count(std::string_view rule, AnsweredBy answered_by) const;

 private:
  template <class What>
  std::uint64_t CountLocked(std::string_view rule, What what) const;

  mutable std::mutex mutex_;
  std::vector<std::unique_ptr<ThreadMetrics>> threads_;
  std::vector<std::string> shown_;  // rule names in the order of the configuration
};

class ThreadMetrics final : public Observer {
 public:
  void OnDecision(const LimitRequest& request, const Outcome& outcome) noexcept override;

  // Before the thread's limiter meets `rules` for the first time; on that thread.
  void Bind(const RuleSet& rules);

 private:
  friend class Metrics;

  [[nodiscard]] std::uint64_t Count(std::string_view rule, RuleVerdict verdict) const;
  [[nodiscard]] std::uint64_t Count(std::string_view rule, AnsweredBy answered_by) const;

  struct RuleCounters {
    std::array<OneWriterCounter, kRuleVerdicts> verdicts;
    std::array<OneWriterCounter, kFailureModes> failure_modes;
    OneWriterCounter remembered;
    OneWriterCounter leased;
  };

  std::array<OneWriterCounter, kAnswers> answers_;  // by Answer
  std::vector<RuleCounters*> by_rule_index_;        // of the rules in force on this thread

  mutable std::mutex mutex_;  // guards the map's shape, not the counters
  std::map<std::string, std::unique_ptr<RuleCounters>, std::less<>> by_name_;
};

}  // namespace sluice
