#include "sluice/telemetry/metrics.h"

#include <gtest/gtest.h>

#include "sluice/telemetry/prometheus.h"

namespace sluice {
namespace {

Rule Named(std::string name, RuleMode mode = RuleMode::kEnforce) {
  Rule rule;
  rule.name = std::move(name);
  rule.mode = mode;
  rule.limits = {{.plan = "", .limit = *fixed_window::MakeLimit(1, std::chrono::minutes{1})}};
  return rule;
}

// An outcome in which each of `rules` was met and said `verdict`.
Outcome Said(const RuleSet& rules, Answer answer, Verdict verdict) {
  Outcome outcome;
  outcome.answer = answer;
  for (std::uint32_t i = 0; i < rules.rules().size(); ++i) {
    outcome.results.push_back(
        {.rule = &rules.rules()[i], .rule_index = i, .claim = static_cast<std::int32_t>(i)});
    Claim claim;
    claim.limit = &rules.rules()[i].limits[0].limit;
    claim.decision.verdict = verdict;
    outcome.claims.push_back(claim);
  }
  return outcome;
}

TEST(MetricsTest, ShowsEverySeriesFromTheStart) {
  Metrics metrics;
  const RuleSet rules({Named("a"), Named("b")}, {}, 1);
  metrics.AddThread().Bind(rules);
  metrics.Show(rules);
  std::string text;
  metrics.Write(text);
  for (const char* rule : {"a", "b"}) {
    for (const char* verdict : {"allowed", "delayed", "unavailable", "limited", "never",
                                "missing_identity", "denied", "shadow_limited"}) {
      const std::string series = std::string("sluice_decisions_total{rule=\"") + rule +
                                 "\",verdict=\"" + verdict + "\"} 0\n";
      EXPECT_NE(text.find(series), text.npos) << series;
    }
  }
  EXPECT_NE(text.find("sluice_requests_total{answer=\"limited\"} 0\n"), text.npos);
}

TEST(MetricsTest, AddsUpWhatAllThreadsCounted) {
  Metrics metrics;
  const RuleSet rules({Named("a")}, {}, 1);
  ThreadMetrics& one = metrics.AddThread();
  ThreadMetrics& two = metrics.AddThread();
  one.Bind(rules);
  two.Bind(rules);
  one.OnDecision({}, Said(rules, Answer::kAllowed, Verdict::kAllowed));
  two.OnDecision({}, Said(rules, Answer::kAllowed, Verdict::kAllowed));
  two.OnDecision({}, Said(rules, Answer::kLimited, Verdict::kLimited));
  EXPECT_EQ(metrics.Count("a", RuleVerdict::kAllowed), 2u);
  EXPECT_EQ(metrics.Count("a", RuleVerdict::kLimited), 1u);
  EXPECT_EQ(metrics.Count(Answer::kAllowed), 2u);
}

TEST(MetricsTest, TellsAShadowDenialFromARealOne) {
  Metrics metrics;
  const RuleSet rules({Named("s", RuleMode::kShadow)}, {}, 1);
  ThreadMetrics& thread = metrics.AddThread();
  thread.Bind(rules);
  thread.OnDecision({}, Said(rules, Answer::kAllowed, Verdict::kAllowed));
  for (int i = 0; i < 15; ++i) {
    thread.OnDecision({}, Said(rules, Answer::kAllowed, Verdict::kLimited));
  }
  EXPECT_EQ(metrics.Count("s", RuleVerdict::kAllowed), 1u);
  EXPECT_EQ(metrics.Count("s", RuleVerdict::kShadowLimited), 15u);
  EXPECT_EQ(metrics.Count("s", RuleVerdict::kLimited), 0u);
}

TEST(MetricsTest, TellsWhatFailureModesAnswered) {
  Metrics metrics;
  const RuleSet rules({Named("open"), Named("closed"), Named("local"), Named("spared")}, {}, 1);
  ThreadMetrics& thread = metrics.AddThread();
  thread.Bind(rules);
  metrics.Show(rules);
  Outcome outcome = Said(rules, Answer::kUnavailable, Verdict::kLimited);
  const AnsweredBy by[] = {AnsweredBy::kOpen, AnsweredBy::kClosed, AnsweredBy::kLocal,
                           AnsweredBy::kNobody};
  for (std::size_t i = 0; i < 4; ++i) {
    outcome.results[i].answered_by = by[i];
    if (by[i] != AnsweredBy::kLocal) outcome.results[i].claim = -1;
  }
  thread.OnDecision({}, outcome);
  EXPECT_EQ(metrics.Count("open", RuleVerdict::kAllowed), 1u);
  EXPECT_EQ(metrics.Count("closed", RuleVerdict::kUnavailable), 1u);
  EXPECT_EQ(metrics.Count("local", RuleVerdict::kLimited), 1u);
  for (const AnsweredBy mode : {AnsweredBy::kOpen, AnsweredBy::kClosed, AnsweredBy::kLocal}) {
    EXPECT_EQ(metrics.Count("open", mode), mode == AnsweredBy::kOpen ? 1u : 0u);
    EXPECT_EQ(metrics.Count("spared", mode), 0u);
  }
  EXPECT_EQ(metrics.Count("spared", RuleVerdict::kAllowed), 0u);
  std::string text;
  metrics.Write(text);
  for (const char* sample :
       {"{rule=\"open\",mode=\"open\"} 1\n", "{rule=\"closed\",mode=\"closed\"} 1\n",
        "{rule=\"local\",mode=\"local\"} 1\n", "{rule=\"local\",mode=\"open\"} 0\n"}) {
    EXPECT_NE(text.find(std::string("sluice_degraded_decisions_total") + sample), text.npos)
        << sample;
  }
  outcome.results[2].answered_by = AnsweredBy::kMemory;
  thread.OnDecision({}, outcome);
  EXPECT_EQ(metrics.Count("local", AnsweredBy::kMemory), 1u);
  EXPECT_EQ(metrics.Count("local", AnsweredBy::kLocal), 1u);
  EXPECT_EQ(metrics.Count("local", RuleVerdict::kLimited), 2u);
}

TEST(MetricsTest, CountersStayWithARulesNameOverAReload) {
  Metrics metrics;
  const RuleSet before({Named("gone"), Named("stays")}, {}, 1);
  ThreadMetrics& thread = metrics.AddThread();
  thread.Bind(before);
  thread.OnDecision({}, Said(before, Answer::kAllowed, Verdict::kAllowed));
  const RuleSet after({Named("stays"), Named("new")}, {}, 2);
  thread.Bind(after);
  metrics.Show(after);
  thread.OnDecision({}, Said(after, Answer::kAllowed, Verdict::kAllowed));
  EXPECT_EQ(metrics.Count("stays", RuleVerdict::kAllowed), 2u);
  EXPECT_EQ(metrics.Count("new", RuleVerdict::kAllowed), 1u);
  std::string text;
  metrics.Write(text);
  EXPECT_EQ(text.find("\"gone\""), text.npos);
}

TEST(PrometheusWriterTest, EscapesLabelValues) {
  std::string out;
  PrometheusWriter writer(out);
  writer.Family("f", "counter", "Help.");
  writer.Sample({{"rule", "a\"b\\c\nd"}}, 7);
  EXPECT_EQ(out, "# HELP f Help.\n# TYPE f counter\nf{rule=\"a\\\"b\\\\c\\nd\"} 7\n");
}

// Exposition format 0.0.4: buckets add up, the last holds all, and is the count.
TEST(PrometheusWriterTest, BucketsOfAHistogramAddUpAndAreInSeconds) {
  using std::chrono::microseconds;
  using std::chrono::milliseconds;
  using std::chrono::seconds;
  std::string out;
  const Duration bounds[] = {microseconds{2500}, milliseconds{10}, seconds{1}};
  const std::uint64_t counts[] = {3, 0, 2, 1};
  PrometheusWriter(out).Histogram("f_seconds", "Help.", bounds, counts,
                                  seconds{12} + Duration{30'000'001});
  EXPECT_EQ(out,
            "# HELP f_seconds Help.\n# TYPE f_seconds histogram\n"
            "f_seconds_bucket{le=\"0.0025\"} 3\nf_seconds_bucket{le=\"0.01\"} 3\n"
            "f_seconds_bucket{le=\"1\"} 5\nf_seconds_bucket{le=\"+Inf\"} 6\n"
            "f_seconds_sum 12.030000001\nf_seconds_count 6\n");
}

}  // namespace
}  // namespace sluice
