// What the limiter's tests share: a memory store, a clock that stands still, and short ways to
// write rules and requests.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "sluice/limiter/limiter.h"
#include "sluice/store/memory/memory_store.h"

namespace sluice {

using namespace std::chrono_literals;

inline Limit Bucket(std::int64_t count, Duration period, std::uint64_t burst) {
  return *token_bucket::MakeLimit({.count = count, .period = period}, burst);
}
inline Limit Window(std::int64_t limit, Duration window) {
  return *fixed_window::MakeLimit(limit, window);
}
inline Limit Slots(std::int64_t limit, Duration ttl = 0s) {
  return *concurrency::MakeLimit(limit, ttl);
}

inline Source GlobalSource() {
  return {.kind = SourceKind::kGlobal, .name = "", .label = "global"};
}
inline Source HeaderSource(const std::string& name) {
  return {.kind = SourceKind::kHeader, .name = name, .label = "header." + name};
}

inline Rule MakeRule(std::string name, Source key, const Limit& limit) {
  Rule rule;
  rule.name = std::move(name);
  rule.key = {std::move(key)};
  rule.limits = {{.plan = "", .limit = limit}};
  return rule;
}

class LimiterFixture : public testing::Test {
 protected:
  void SetUp() override {
    auto opened = MemoryStore::Open({.max_keys = 10'000}, clock_.Read());
    ASSERT_TRUE(opened.ok()) << opened.status();
    store_ = *std::move(opened);
  }

  // Puts `rules` in force, as a start or a reload does.
  void Use(std::vector<Rule> rules, RuleSetOptions options = {}) {
    auto set = std::make_shared<const RuleSet>(std::move(rules), std::move(options), ++generation_);
    auto active = ActiveRules::Make(std::move(set), *store_, clock_);
    ASSERT_TRUE(active.ok()) << active.status();
    if (limiter_ == nullptr) {
      limiter_ = std::make_unique<Limiter>(Limiter::Parts{.store = *store_,
                                                          .hash_key = store_->hash_key(),
                                                          .clock = clock_,
                                                          .observer = observer_},
                                           *active);
    } else {
      limiter_->Replace(*active);
    }
  }

  // A request with the headers K and Cost as given (empty: left out), on `target`.
  const Outcome& Ask(std::string_view key, std::string_view target = "/",
                     std::string_view method = "GET", bool look = false) {
    std::vector<Field> headers;
    if (!key.empty()) headers.push_back({"K", key});
    limiter_->Check({.method = method,
                     .target = target,
                     .peer = IpAddress::V4(0x0a000001),
                     .headers = headers,
                     .look = look},
                    outcome_);
    return outcome_;
  }
  bool Allowed(std::string_view key, std::string_view target = "/") {
    return Ask(key, target).allowed();
  }
  // How many of `count` requests pass at this instant.
  int Passing(std::string_view key, int count, std::string_view target = "/") {
    int passed = 0;
    for (int i = 0; i < count; ++i) passed += Allowed(key, target) ? 1 : 0;
    return passed;
  }

  ManualClock clock_;
  Observer* observer_ = nullptr;
  std::unique_ptr<MemoryStore> store_;
  std::uint64_t generation_ = 0;
  std::unique_ptr<Limiter> limiter_;
  Outcome outcome_;
};

}  // namespace sluice
