// Every scenario, in process: the configuration through the real loader, the steps through a
// limiter on a memory store and a manual clock.
#include <gtest/gtest.h>

#include <filesystem>
#include <map>

#include "sluice/config/load.h"
#include "sluice/limiter/limiter.h"
#include "sluice/store/memory/memory_store.h"
#include "tests/scenarios/scenario.h"
#include "tests/scenarios/scenario_request.h"

namespace sluice::testing {
namespace {

const char* AnswerWord(Answer answer) {
  switch (answer) {
    case Answer::kAllowed:
      return "allow";
    case Answer::kDelayed:
      return "delay";
    case Answer::kUnavailable:
      return "unavailable";
    case Answer::kLimited:
      return "limit";
    case Answer::kNeverPasses:
      return "never";
    case Answer::kMissingIdentity:
      return "missing";
    case Answer::kDenied:
      return "deny";
  }
  return "";
}

// What the outcome has for the fields that the step names.
std::string Happened(const Step& step, const Outcome& outcome) {
  std::string text = AnswerWord(outcome.answer);
  const RuleResult* shown = outcome.decisive_result();
  const Claim* claim = shown == nullptr ? nullptr : outcome.ClaimOf(*shown);
  for (const auto& [name, expected] : step.expected) {
    text += " " + name + "=";
    if (name == "rule" && shown != nullptr) text += shown->rule->name;
    if (name == "retry") text += DurationText(outcome.retry_after);
    if (name == "delay") text += DurationText(outcome.delay);
    if (name == "reset" && claim != nullptr) text += DurationText(claim->decision.reset_after);
    if (name == "remaining" && claim != nullptr) text += std::to_string(claim->decision.remaining);
  }
  return text;
}

class EngineScenario : public ::testing::TestWithParam<std::string> {
 protected:
  void Load() {
    scenario_ = ReadScenario(GetParam());
    config::LoadResult loaded = config::LoadText(scenario_.path, scenario_.config, ".", 1);
    ASSERT_TRUE(loaded.config.has_value()) << loaded.diagnostics.Text();
    rules_ = loaded.config->rules;
    auto store = MemoryStore::Open({.max_keys = 1000}, clock_.Read());
    ASSERT_TRUE(store.ok()) << store.status();
    store_ = *std::move(store);
    auto active = ActiveRules::Make(rules_, *store_, clock_);
    ASSERT_TRUE(active.ok()) << active.status();
    limiter_ = std::make_unique<Limiter>(
        Limiter::Parts{.store = *store_, .hash_key = store_->hash_key(), .clock = clock_}, *active);
  }

  void Do(const Step& step) {
    if (step.kind == Step::Kind::kClock) return clock_.StepWall(step.wait);
    clock_.Advance(step.wait);
    if (step.kind == Step::Kind::kFinish) return limiter_->Finish(outcomes_[step.name]);
    if (step.kind == Step::Kind::kUndo) return limiter_->Undo(outcomes_[step.name]);
    const ScenarioRequest request = RequestOf(scenario_, step, *rules_);
    std::vector<Field> headers;
    for (const auto& [name, value] : request.headers) headers.push_back({name, value});
    for (int i = 0; i < step.times; ++i) {
      Outcome& outcome = outcomes_[step.name];
      limiter_->Check({.method = request.method,
                       .target = request.target,
                       .host = request.host,
                       .peer = request.peer,
                       .headers = headers},
                      outcome);
      EXPECT_EQ(Happened(step, outcome), Expected(step))
          << scenario_.path << ":" << step.line << ", time " << i + 1;
    }
  }

  ManualClock clock_;
  Scenario scenario_;
  std::shared_ptr<const RuleSet> rules_;
  std::unique_ptr<MemoryStore> store_;
  std::map<std::string, Outcome> outcomes_;  // by the name of the step; "" for those without
  std::unique_ptr<Limiter> limiter_;
};

TEST_P(EngineScenario, GoesAsWritten) {
  ASSERT_NO_FATAL_FAILURE(Load());
  for (const Step& step : scenario_.steps) Do(step);
}

INSTANTIATE_TEST_SUITE_P(Files, EngineScenario, ::testing::ValuesIn(ScenarioFiles()),
                         [](const auto& param) {
                           return std::filesystem::path(param.param).stem().string();
                         });

}  // namespace
}  // namespace sluice::testing
