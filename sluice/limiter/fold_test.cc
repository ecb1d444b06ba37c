#include "sluice/limiter/fold.h"

#include <gtest/gtest.h>

#include <chrono>
#include <deque>

namespace sluice {
namespace {

using namespace std::chrono_literals;

// Builds outcomes rule by rule.
class FoldTest : public testing::Test {
 protected:
  void Counts(Decision decision, std::uint64_t capacity = 10, RuleMode mode = RuleMode::kEnforce) {
    limits_.push_back(*fixed_window::MakeLimit(static_cast<std::int64_t>(capacity), 1min));
    RuleResult& result = Add(MatchOutcome::kCounts, mode);
    result.claim = static_cast<std::int32_t>(outcome_.claims.size());
    Claim& claim = outcome_.claims.emplace_back();
    claim.limit = &limits_.back();
    claim.decision = decision;
  }
  RuleResult& Add(MatchOutcome match, RuleMode mode = RuleMode::kEnforce) {
    Rule& rule = rules_.emplace_back();
    rule.mode = mode;
    return outcome_.results.emplace_back(RuleResult{.rule = &rule, .match = match});
  }

  static Decision Passed(std::uint64_t remaining) { return {.remaining = remaining}; }
  static Decision Limited(Duration wait) {
    return {.verdict = Verdict::kLimited, .retry_after = wait};
  }
  static Decision Delayed(Duration delay) { return {.verdict = Verdict::kDelayed, .delay = delay}; }
  static Decision Never() { return {.verdict = Verdict::kNever, .retry_after = kNever}; }

  std::deque<Rule> rules_;
  std::deque<Limit> limits_;
  Outcome outcome_;
};

TEST_F(FoldTest, NoRuleIsAllowed) {
  Fold(outcome_);
  EXPECT_EQ(outcome_.answer, Answer::kAllowed);
  EXPECT_EQ(outcome_.decisive, -1);
}

TEST_F(FoldTest, WhenAllPassTheSmallestShareIsShown) {
  Counts(Passed(5), 10);    // one half
  Counts(Passed(40), 100);  // two fifths
  Counts(Passed(9), 10);
  Fold(outcome_);
  EXPECT_EQ(outcome_.answer, Answer::kAllowed);
  EXPECT_EQ(outcome_.decisive, 1);
}

TEST_F(FoldTest, SharesOfHugeLimitsDoNotWrapAround) {
  Counts(Passed(std::uint64_t{1} << 61), std::uint64_t{1} << 62);        // one half
  Counts(Passed((std::uint64_t{1} << 62) - 1), std::uint64_t{1} << 62);  // nearly all
  Fold(outcome_);
  EXPECT_EQ(outcome_.decisive, 0);
}

TEST_F(FoldTest, TheLongestWaitOfAllThatDenyCounts) {
  Counts(Limited(1s));
  Counts(Passed(1));
  Counts(Limited(1min));
  Counts(Limited(10s));
  Fold(outcome_);
  EXPECT_EQ(outcome_.answer, Answer::kLimited);
  EXPECT_EQ(outcome_.retry_after, 1min);
  EXPECT_EQ(outcome_.decisive, 2);
}

TEST_F(FoldTest, AKnownWaitTellsMoreThanAnUnknownOne) {
  Counts(Limited(kUnknown));
  Counts(Limited(3s));
  Counts(Limited(kUnknown));
  Fold(outcome_);
  EXPECT_EQ(outcome_.retry_after, 3s);
  EXPECT_EQ(outcome_.decisive, 1);
}

TEST_F(FoldTest, WithUnknownWaitsAloneTheWaitIsUnknown) {
  Counts(Limited(kUnknown));
  Fold(outcome_);
  EXPECT_EQ(outcome_.answer, Answer::kLimited);
  EXPECT_EQ(outcome_.retry_after, kUnknown);
}

TEST_F(FoldTest, NeverIsWorseThanAnyWait) {
  Counts(Limited(1h));
  Counts(Never());
  Fold(outcome_);
  EXPECT_EQ(outcome_.answer, Answer::kNeverPasses);
  EXPECT_EQ(outcome_.retry_after, kNever);
  EXPECT_EQ(outcome_.decisive, 1);
}

TEST_F(FoldTest, AMissingIdentityIsToldBeforeAnyWait) {
  Counts(Limited(1h));
  Add(MatchOutcome::kMissingKey);
  Fold(outcome_);
  EXPECT_EQ(outcome_.answer, Answer::kMissingIdentity);
  EXPECT_EQ(outcome_.retry_after, 0s);
  EXPECT_EQ(outcome_.decisive, 1);
}

TEST_F(FoldTest, ADenyRuleIsToldBeforeAllElse) {
  Add(MatchOutcome::kMissingKey);
  Add(MatchOutcome::kDenies);
  Counts(Never());
  Fold(outcome_);
  EXPECT_EQ(outcome_.answer, Answer::kDenied);
  EXPECT_EQ(outcome_.retry_after, 0s);
}

TEST_F(FoldTest, TheLongestDelayCountsUnlessTheRequestIsDenied) {
  Counts(Delayed(100ms));
  Counts(Delayed(300ms));
  Counts(Passed(1));
  Fold(outcome_);
  EXPECT_EQ(outcome_.answer, Answer::kDelayed);
  EXPECT_EQ(outcome_.delay, 300ms);

  outcome_.Clear();
  Counts(Delayed(100ms));
  Counts(Limited(1s));
  Fold(outcome_);
  EXPECT_EQ(outcome_.answer, Answer::kLimited);
  EXPECT_EQ(outcome_.delay, 0s);
}

TEST_F(FoldTest, ShadowRulesHaveNoSay) {
  Counts(Never(), 10, RuleMode::kShadow);
  Add(MatchOutcome::kDenies, RuleMode::kShadow);
  Add(MatchOutcome::kMissingKey, RuleMode::kShadow);
  Counts(Passed(3));
  Fold(outcome_);
  EXPECT_EQ(outcome_.answer, Answer::kAllowed);
  EXPECT_EQ(outcome_.decisive, 3);
}

}  // namespace
}  // namespace sluice
