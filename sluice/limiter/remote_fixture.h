// What tests of shared counters have in common: a limiter with a memory store of its own and a
// remote one that answers when the test says so.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "sluice/limiter/limiter_fixture.h"
#include "sluice/store/testing/shared_store.h"

namespace sluice {

class RemoteChecksTest : public LimiterFixture {
 protected:
  void SetUp() override {
    LimiterFixture::SetUp();
    auto opened = MemoryStore::Open({.max_keys = 10'000}, clock_.Read());
    ASSERT_TRUE(opened.ok()) << opened.status();
    counters_ = *std::move(opened);
    shared_ = std::make_unique<SharedStore>(*counters_, clock_.Read());
  }
  void TearDown() override {
    limiter_.reset();
    outcome_ = {};
    shared_->Fail(absl::CancelledError("the end"));
    leases_.reset();
  }

  static Rule Shared(std::string name, const Limit& limit,
                     OnStoreFailure on_failure = OnStoreFailure::kLocal) {
    Rule rule = MakeRule(std::move(name), HeaderSource("K"), limit);
    rule.on_store_failure = on_failure;
    return rule;
  }
  static Rule OfNode(std::string name, const Limit& limit) {
    Rule rule = MakeRule(std::move(name), HeaderSource("K"), limit);
    rule.scope = RuleScope::kNode;
    return rule;
  }

  void Use(std::vector<Rule> rules) {
    auto set = std::make_shared<const RuleSet>(std::move(rules), RuleSetOptions{}, ++generation_);
    auto active = ActiveRules::Make(std::move(set), *store_, clock_, shared_.get());
    ASSERT_TRUE(active.ok()) << active.status();
    limiter_.reset();
    if (leases_ == nullptr) {
      leases_ = std::make_unique<Leases>(*shared_, clock_, LeaseOptions{.keys = 64, .wake = {}});
    }
    limiter_ = std::make_unique<Limiter>(Limiter::Parts{.store = *store_,
                                                        .hash_key = store_->hash_key(),
                                                        .clock = clock_,
                                                        .observer = observer_,
                                                        .remote = shared_.get(),
                                                        .denials = denials_.get(),
                                                        .leases = leases_.get()},
                                         *active);
  }

  // Asks; true: answered at once.
  bool Begin(std::string_view key = "ann", bool look = false) {
    key_ = key;
    headers_ = {{"K", key_}};
    answered_ = 0;
    shared_->SetNow(clock_.Read());
    return limiter_->Check({.method = "GET", .target = "/", .headers = headers_, .look = look},
                           outcome_, [this] { ++answered_; });
  }
  // Asks, and lets the store answer whatever it is asked.
  const Outcome& AskShared(std::string_view key = "ann", bool look = false) {
    if (Begin(key, look)) return outcome_;
    while (shared_->waiting() > 0) shared_->Answer(clock_.Read());
    EXPECT_EQ(answered_, 1);
    return outcome_;
  }
  const Outcome& AskWithoutAnswer(std::string_view key = "ann",
                                  const absl::Status& why = absl::DeadlineExceededError("late")) {
    EXPECT_FALSE(Begin(key));
    shared_->Fail(why);
    EXPECT_EQ(answered_, 1);
    return outcome_;
  }
  std::uint64_t RemainingInMemory(std::string_view rule) {
    for (const RuleResult& result : outcome_.results) {
      if (result.rule->name == rule) return outcome_.ClaimOf(result)->decision.remaining;
    }
    return 999;
  }

  std::unique_ptr<MemoryStore> counters_;  // what all nodes see
  std::unique_ptr<SharedStore> shared_;
  std::unique_ptr<DenialMemory> denials_;  // null: none
  std::unique_ptr<Leases> leases_;         // used by rules that lease
  std::string key_;
  std::vector<Field> headers_;
  int answered_ = 0;
};

}  // namespace sluice
