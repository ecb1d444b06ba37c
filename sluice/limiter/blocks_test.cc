#include "sluice/limiter/blocks.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>

#include "sluice/limiter/limiter_fixture.h"

namespace sluice {
namespace {

Limit Queue(std::uint64_t waiting) {
  return *leaky_bucket::MakeLimit({.count = 1, .period = 1s}, waiting, 1h);
}

class BlocksTest : public LimiterFixture {
 protected:
  static Rule Blocking(const Limit& limit, Duration block_for, std::string name = "r") {
    Rule rule = MakeRule(std::move(name), HeaderSource("K"), limit);
    rule.block_for = block_for;
    return rule;
  }

  const Outcome& AskWithCost(std::string_view key, std::uint64_t cost) {
    const std::vector<Field> headers = {{"K", key}};
    limiter_->Check({.method = "GET", .target = "/", .headers = headers, .cost = cost}, outcome_);
    return outcome_;
  }
  [[nodiscard]] const Decision& Said(std::size_t claim = 0) const {
    return outcome_.claims[claim].decision;
  }
};

TEST_F(BlocksTest, WhoWasDeniedStaysOutUntilTheBlockEndsWhateverRoomThereIs) {
  Use({Blocking(Bucket(10, 1s, 1), 1min)});
  const struct {
    Duration wait;
    std::string_view key;
    bool allowed;
    Duration retry_after;
  } steps[] = {
      {0ms, "ann", true, 0s},
      {0ms, "ann", false, 1min},  // told at once: not the 100 ms of the bucket
      {0ms, "bob", true, 0s},     // Ann's block is not Bob's
      {100ms, "ann", false, 59'900ms},
      {30s, "ann", false, 29'900ms},  // who keeps trying does not lengthen it
      {30s - 100ms - 1ns, "ann", false, 1ns},
      {1ns, "ann", true, 0s},
      {0ms, "ann", false, 1min},  // and over it again
  };
  for (const auto& step : steps) {
    clock_.Advance(step.wait);
    EXPECT_EQ(Ask(step.key).allowed(), step.allowed);
    EXPECT_EQ(outcome_.answer, step.allowed ? Answer::kAllowed : Answer::kLimited);
    EXPECT_EQ(outcome_.retry_after, step.retry_after);
    if (step.allowed) continue;
    EXPECT_EQ(Said().remaining, 0u);
    EXPECT_EQ(Said().reset_after, step.retry_after);
    EXPECT_EQ(outcome_.claims[0].receipt.units, 0u);
  }
}

TEST_F(BlocksTest, ABlockShorterThanASecondBlocks) {
  Use({Blocking(Bucket(1000, 1s, 1), 900ms)});
  EXPECT_TRUE(Allowed("ann"));
  EXPECT_FALSE(Allowed("ann"));
  EXPECT_EQ(outcome_.retry_after, 900ms);
  clock_.Advance(899ms);
  EXPECT_FALSE(Allowed("ann"));
  EXPECT_EQ(outcome_.retry_after, 1ms);
  clock_.Advance(1ms);
  EXPECT_TRUE(Allowed("ann"));
}

TEST_F(BlocksTest, TheWaitIsTheAlgorithmsWhereThatIsLonger) {
  Use({Blocking(Window(1, 1h), 1min)});
  EXPECT_TRUE(Allowed("ann"));
  EXPECT_FALSE(Allowed("ann"));
  EXPECT_EQ(outcome_.retry_after, 1h);
  clock_.Advance(30s);
  EXPECT_FALSE(Allowed("ann"));
  EXPECT_EQ(outcome_.retry_after, 1h - 30s);
}

TEST_F(BlocksTest, EveryAlgorithmBlocks) {
  const Limit limits[] = {Bucket(2, 1min, 2),
                          Queue(1),
                          Window(2, 1min),
                          *fixed_window::MakeLimit(2, 1min, fixed_window::Align::kFirstHit),
                          *sliding_window_counter::MakeLimit(2, 1min),
                          *sliding_window_log::MakeLimit(2, 1min, false),
                          *sliding_window_strict::MakeLimit(2, 1min),
                          *calendar::MakeLimit(2, calendar::Period::kDay, "UTC"),
                          Slots(2),
                          Slots(2, 1min)};
  for (const Limit& limit : limits) {
    SCOPED_TRACE(AlgorithmName(limit));
    const std::string name =
        std::to_string(&limit - limits) + " " + std::string(AlgorithmName(limit));
    Use({Blocking(limit, 240h, name)});
    Outcome held[2] = {Ask("ann"), Ask("ann")};
    EXPECT_TRUE(held[0].allowed());
    EXPECT_TRUE(held[1].allowed());
    EXPECT_EQ(Ask("ann").answer, Answer::kLimited);
    EXPECT_EQ(outcome_.retry_after, 240h);
    // Room comes back, and does not help.
    limiter_->Undo(held[1]);
    limiter_->Undo(held[0]);
    clock_.Advance(240h - 1ns);
    EXPECT_EQ(Ask("ann").answer, Answer::kLimited);
    EXPECT_EQ(outcome_.retry_after, 1ns);
    EXPECT_EQ(outcome_.delay, 0s);
    clock_.Advance(1ns);
    EXPECT_EQ(Passing("ann", 2), 2);
  }
}

TEST_F(BlocksTest, OnlyTheRulesOwnWantOfRoomBeginsABlock) {
  Use({Blocking(Bucket(10, 1s, 3), 1h, "blocks"),
       MakeRule("other", HeaderSource("K"), Window(1, 1min))});
  EXPECT_EQ(AskWithCost("ann", 4).answer, Answer::kNeverPasses);
  EXPECT_EQ(Ask("").answer, Answer::kMissingIdentity);
  EXPECT_TRUE(Allowed("ann"));
  EXPECT_EQ(Ask("ann").answer, Answer::kLimited);  // by the other rule
  EXPECT_EQ(outcome_.retry_after, 1min);
  clock_.Advance(1min);
  EXPECT_TRUE(Allowed("ann"));
}

TEST_F(BlocksTest, ARequestThatABlockDeniesIsChargedNowhere) {
  Use({MakeRule("before", HeaderSource("K"), Window(10, 1h)), Blocking(Bucket(10, 1s, 1), 1min),
       MakeRule("behind", GlobalSource(), Window(10, 1h))});
  EXPECT_EQ(Passing("ann", 2), 1);
  clock_.Advance(1s);
  for (int i = 0; i < 20; ++i) {
    EXPECT_FALSE(Allowed("ann"));
    EXPECT_EQ(outcome_.decisive_result()->rule->name, "r");
  }
  EXPECT_EQ(Said(0).remaining, 9u);
  EXPECT_EQ(Said(2).remaining, 9u);
  EXPECT_TRUE(Said(0).allowed());  // neither is blamed
  EXPECT_TRUE(Said(2).allowed());
}

TEST_F(BlocksTest, RulesOfOneKeyHaveBlocksOfTheirOwn) {
  Rule login = Blocking(Bucket(1, 1s, 1), 1h, "login");
  login.match.paths = {*PathPattern::Compile("/login")};
  Use({login, Blocking(Bucket(10, 1s, 5), 1min, "all")});
  EXPECT_TRUE(Allowed("ann", "/login"));
  EXPECT_FALSE(Allowed("ann", "/login"));
  EXPECT_TRUE(Allowed("ann", "/"));
  clock_.Advance(1s);
  EXPECT_EQ(Passing("ann", 6, "/"), 5);
  EXPECT_FALSE(Allowed("ann", "/login"));
  EXPECT_EQ(outcome_.retry_after, 1h - 1s);  // the longest of both
  clock_.Advance(1min);
  EXPECT_TRUE(Allowed("ann", "/"));
}

TEST_F(BlocksTest, ChargeDeniedChargesDuringABlockAndTheWaitIsStillExact) {
  Rule rule = Blocking(Bucket(1, 1h, 2), 1min);
  rule.charge_denied = true;
  Use({rule});
  EXPECT_EQ(Passing("ann", 3), 2);  // the third is charged beyond the burst: 3 are owed
  EXPECT_EQ(outcome_.retry_after, 2h);
  clock_.Advance(2h - 30min);
  EXPECT_FALSE(Allowed("ann"));  // a new block, and 2.5 are owed now
  EXPECT_EQ(outcome_.retry_after, 90min);

  // A block that outlasts the debt: each try is charged, and whoever waits as told passes.
  rule = Blocking(Bucket(1, 1min, 2), 10min, "long");
  rule.charge_denied = true;
  Use({rule});
  EXPECT_EQ(Passing("ann", 3), 2);
  EXPECT_EQ(outcome_.retry_after, 10min);
  clock_.Advance(10min - 10s);
  EXPECT_FALSE(Allowed("ann"));  // there is room for it, and it is charged
  EXPECT_EQ(outcome_.claims[0].receipt.units, 1u);
  EXPECT_EQ(outcome_.retry_after, 10s);
  EXPECT_FALSE(Allowed("ann"));
  EXPECT_EQ(outcome_.claims[0].receipt.units, 1u);
  EXPECT_EQ(outcome_.retry_after, 1min);  // the bucket is full again: its wait is the longer one
  clock_.Advance(1min - 1ns);
  EXPECT_FALSE(Ask("ann", "/", "GET", /*look=*/true).allowed());
  clock_.Advance(1ns);
  EXPECT_TRUE(Allowed("ann"));
}

TEST_F(BlocksTest, ALookSeesABlockAndBeginsNone) {
  Use({Blocking(Bucket(1, 1s, 1), 1h)});
  EXPECT_TRUE(Allowed("ann"));
  EXPECT_FALSE(Ask("ann", "/", "GET", /*look=*/true).allowed());
  EXPECT_EQ(outcome_.retry_after, 1s);
  clock_.Advance(1s);
  EXPECT_TRUE(Allowed("ann"));
  EXPECT_FALSE(Allowed("ann"));
  clock_.Advance(1s);
  EXPECT_FALSE(Ask("ann", "/", "GET", /*look=*/true).allowed());
  EXPECT_EQ(outcome_.retry_after, 1h - 1s);
}

TEST_F(BlocksTest, ACostOfZeroMeetsABlockAndBeginsNone) {
  Use({Blocking(Bucket(1, 1s, 1), 1h)});
  EXPECT_TRUE(Allowed("ann"));
  EXPECT_TRUE(AskWithCost("ann", 0).allowed());
  EXPECT_FALSE(Allowed("ann"));
  clock_.Advance(1s);
  EXPECT_FALSE(AskWithCost("ann", 0).allowed());
  EXPECT_EQ(outcome_.retry_after, 1h - 1s);
}

TEST_F(BlocksTest, ACostThatIsNeverMetIsToldSoInsideOfABlock) {
  Use({Blocking(Bucket(1, 1s, 1), 1h)});
  EXPECT_EQ(Passing("ann", 2), 1);
  EXPECT_EQ(AskWithCost("ann", 2).answer, Answer::kNeverPasses);
}

TEST_F(BlocksTest, AnExemptRequestMeetsNoBlock) {
  Use({Blocking(Bucket(1, 1s, 1), 1h)});
  EXPECT_EQ(Passing("ann", 2), 1);
  const std::vector<Field> headers = {{"K", "ann"}};
  limiter_->Check({.method = "OPTIONS", .target = "/", .headers = headers, .exempt = true},
                  outcome_);
  EXPECT_TRUE(outcome_.allowed());
  EXPECT_FALSE(Allowed("ann"));
}

TEST_F(BlocksTest, AFallbackKeyIsBlockedLikeAnyOther) {
  Rule rule = Blocking(Bucket(1, 1s, 1), 1h);
  rule.on_missing_key = OnMissingKey::kFallback;
  rule.fallback = {.kind = SourceKind::kIp, .name = "", .label = "ip"};
  Use({rule});
  EXPECT_EQ(Passing("", 2), 1);
  clock_.Advance(1s);
  EXPECT_FALSE(Allowed(""));
  EXPECT_TRUE(Allowed("ann"));
}

TEST_F(BlocksTest, AnotherPlanDoesNotLiftABlock) {
  Rule rule = Blocking(Bucket(1, 1s, 1), 1h);
  rule.limits.push_back({.plan = "pro", .limit = Bucket(100, 1s, 100)});
  RuleSetOptions options;
  options.plans = PlanTable(HeaderSource("K"), "");
  Use({rule}, options);
  EXPECT_EQ(Passing("ann", 2), 1);
  options.plans.Set("ann", "pro");
  Use({rule}, options);
  EXPECT_FALSE(Allowed("ann"));
  EXPECT_EQ(outcome_.retry_after, 1h);
  clock_.Advance(1h);
  EXPECT_EQ(Passing("ann", 100), 100);
}

TEST_F(BlocksTest, NeitherUndoNorFinishTakesABlockBack) {
  Rule rule = Blocking(Slots(1), 1min);
  rule.charge_denied = true;
  Use({rule});
  Outcome first = Ask("ann");
  Outcome denied = Ask("ann");
  EXPECT_FALSE(denied.allowed());
  limiter_->Undo(denied);
  limiter_->Finish(first);
  EXPECT_FALSE(Allowed("ann"));
  EXPECT_EQ(outcome_.retry_after, 1min);
}

TEST_F(BlocksTest, AShadowRulesBlockIsRecordedAndDeniesNobody) {
  Rule shadow = Blocking(Bucket(10, 1s, 1), 1min, "shadow");
  shadow.mode = RuleMode::kShadow;
  Use({shadow, MakeRule("real", HeaderSource("K"), Window(100, 1h))});
  const auto violated = [this] { return outcome_.Violated(outcome_.results[0]); };
  EXPECT_TRUE(Allowed("ann"));
  EXPECT_FALSE(violated());
  EXPECT_TRUE(Allowed("ann"));
  EXPECT_TRUE(violated());
  EXPECT_EQ(Said().retry_after, 1min);
  clock_.Advance(1min - 1ns);
  EXPECT_TRUE(Allowed("ann"));
  EXPECT_TRUE(violated());
  EXPECT_EQ(outcome_.retry_after, 0s);
  EXPECT_EQ(outcome_.claims[0].receipt.units, 0u);
  EXPECT_EQ(outcome_.claims[1].receipt.units, 1u);
  clock_.Advance(1ns);
  EXPECT_TRUE(Allowed("ann"));
  EXPECT_FALSE(violated());
  EXPECT_EQ(Said(1).remaining, 96u);
}

TEST_F(BlocksTest, AFloodOfNewKeysDoesNotLiftABlock) {
  auto small = MemoryStore::Open({.max_keys = 500}, clock_.Read());
  ASSERT_TRUE(small.ok());
  store_ = *std::move(small);
  Use({Blocking(Bucket(100, 1s, 1), 1min)});
  EXPECT_EQ(Passing("ann", 2), 1);
  clock_.Advance(1s);
  for (int i = 0; i < 20'000; ++i) (void)Ask(std::to_string(i));
  EXPECT_GT(store_->Stats(clock_.Read()).evicted, 1000u);
  EXPECT_FALSE(Allowed("ann"));
  EXPECT_EQ(outcome_.retry_after, 59s);
}

TEST_F(BlocksTest, ABlockOutlivesARestartWithASnapshot) {
  std::string folder = std::filesystem::temp_directory_path() / "sluice-blocks-XXXXXX";
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  const std::string path = folder + "/counters";
  const Rule rule = Blocking(Bucket(10, 1s, 1), 1h);
  Use({rule});
  EXPECT_EQ(Passing("ann", 2), 1);
  ASSERT_TRUE(store_->WriteSnapshot(path, clock_.Read()).ok());
  limiter_.reset();
  outcome_ = {};
  clock_.Advance(10min);
  auto again = MemoryStore::Open({.max_keys = 10'000, .snapshot = path}, clock_.Read());
  ASSERT_TRUE(again.ok()) << again.status();
  store_ = *std::move(again);
  Use({rule});
  EXPECT_FALSE(Allowed("ann"));
  EXPECT_EQ(outcome_.retry_after, 50min);
  EXPECT_TRUE(Allowed("bob"));
  std::filesystem::remove_all(folder);
}

// Nobody holds the old rules any more when the next request comes, as after the last connection of
// before has ended.
class BlocksReloadTest : public BlocksTest {
 protected:
  void Reload(std::vector<Rule> rules) {
    outcome_ = {};
    Use(std::move(rules));
  }
};

TEST_F(BlocksReloadTest, OtherNumbersLeaveABlockAlone) {
  Use({Blocking(Bucket(10, 1s, 1), 1h)});
  EXPECT_EQ(Passing("ann", 2), 1);
  Reload({Blocking(Window(1000, 1min), 1h)});
  clock_.Advance(20min);
  EXPECT_FALSE(Allowed("ann"));
  EXPECT_EQ(outcome_.retry_after, 40min);
}

TEST_F(BlocksReloadTest, ALongerOneHoldsFromTheNextBlockOn) {
  Use({Blocking(Bucket(10, 1s, 1), 1h)});
  EXPECT_EQ(Passing("ann", 2), 1);
  Reload({Blocking(Bucket(10, 1s, 1), 24h)});
  clock_.Advance(20min);
  EXPECT_FALSE(Allowed("ann"));
  EXPECT_EQ(outcome_.retry_after, 40min);
  clock_.Advance(40min);
  EXPECT_EQ(Passing("ann", 2), 1);
  EXPECT_EQ(outcome_.retry_after, 24h);
}

TEST_F(BlocksReloadTest, AShorterOneShortensWhatRuns) {
  Use({Blocking(Bucket(10, 1s, 1), 24h)});
  EXPECT_EQ(Passing("ann", 2), 1);
  Reload({Blocking(Bucket(10, 1s, 1), 1h)});
  clock_.Advance(20min);
  EXPECT_FALSE(Allowed("ann"));  // from here on it is an hour
  EXPECT_EQ(outcome_.retry_after, 1h);
  clock_.Advance(59min);
  EXPECT_FALSE(Allowed("ann"));
  EXPECT_EQ(outcome_.retry_after, 1min);
  clock_.Advance(1min);
  EXPECT_TRUE(Allowed("ann"));
}

TEST_F(BlocksReloadTest, WhileBothRuleSetsAreInForceNothingIsCutShort) {
  const Rule longer = Blocking(Bucket(10, 1s, 1), 24h);
  Use({longer});
  EXPECT_EQ(Passing("ann", 2), 1);
  const Outcome kept = outcome_;  // of the old rules, on another thread
  Use({Blocking(Bucket(10, 1s, 1), 1min)});
  EXPECT_FALSE(Allowed("ann"));
  EXPECT_EQ(outcome_.retry_after, 1min);
  Use({longer});  // what the other thread still says
  EXPECT_FALSE(Allowed("ann"));
  EXPECT_EQ(outcome_.retry_after, 24h);
}

TEST_F(BlocksReloadTest, WithoutBlockForNobodyIsBlockedUntilItComesBack) {
  Use({Blocking(Bucket(10, 1s, 1), 1h)});
  EXPECT_EQ(Passing("ann", 2), 1);
  clock_.Advance(1s);
  Reload({Blocking(Bucket(10, 1s, 1), 0s)});
  EXPECT_TRUE(Allowed("ann"));
  EXPECT_FALSE(Allowed("ann"));
  EXPECT_EQ(outcome_.retry_after, 100ms);
  clock_.Advance(1s);
  Reload({Blocking(Bucket(10, 1s, 1), 1h)});
  EXPECT_FALSE(Allowed("ann"));
  EXPECT_EQ(outcome_.retry_after, 1h - 2s);
}

TEST_F(BlocksReloadTest, ALimitOfABlockIsRegisteredAndGivenBack) {
  const std::uint64_t before = store_->Stats(clock_.Read()).limits;
  Use({Blocking(Bucket(10, 1s, 1), 1h), MakeRule("other", HeaderSource("K"), Bucket(10, 1s, 1))});
  EXPECT_EQ(store_->Stats(clock_.Read()).limits, before + 2);
  for (int i = 1; i <= 10'000; ++i) {
    Use({Blocking(Bucket(10, 1s, 1), std::chrono::milliseconds{i})});
    clock_.Advance(40s);
  }
}

TEST(BlockLimitTest, TakesLengthsUpToACentury) {
  EXPECT_TRUE(BlockLimit(1ns).ok());
  EXPECT_TRUE(BlockLimit(24h * 36525).ok());
  EXPECT_FALSE(BlockLimit(0ns).ok());
  EXPECT_FALSE(BlockLimit(-1ns).ok());
  EXPECT_FALSE(BlockLimit(24h * 60000).ok());
}

}  // namespace
}  // namespace sluice
