// What one decision of the engine costs: Limiter::Check with one rule (match, key, claim, outcome,
// counters), one by one and in batches of 32, beside the map that a program would use without it.
// Keys are drawn and built, and the clock is read, inside the timed loop.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "bench/harness/keys.h"
#include "bench/harness/paired.h"
#include "sluice/limiter/limiter.h"
#include "sluice/store/memory/memory_store.h"
#include "sluice/telemetry/metrics.h"

namespace sluice::bench {
namespace {

constexpr std::size_t kBatch = 32;

Rule ApiRule() {
  Rule rule;
  rule.name = "api";
  rule.match.paths = {*PathPattern::Compile("/v1/**")};
  rule.key = {{.kind = SourceKind::kHeader, .name = "X-API-Key", .label = "api_key"}};
  rule.limits = {
      {.plan = "",
       .limit = *token_bucket::MakeLimit({.count = 1000, .period = std::chrono::minutes{1}}, 100)}};
  return rule;
}

// The engine as a server runs it: system clock, memory store, metrics.
class Engine {
 public:
  explicit Engine(std::uint64_t keys) {
    auto store = MemoryStore::Open({.max_keys = keys}, clock_.Read());
    if (!store.ok()) {
      std::fprintf(stderr, "%s\n", store.status().ToString().c_str());
      std::exit(1);
    }
    store_ = *std::move(store);
    auto rules = std::make_shared<const RuleSet>(std::vector{ApiRule()}, RuleSetOptions{}, 1);
    ThreadMetrics& thread = metrics_.AddThread();
    thread.Bind(*rules);
    auto active = ActiveRules::Make(std::move(rules), *store_, clock_);
    limiter_ = std::make_unique<Limiter>(
        Limiter::Parts{
            .store = *store_, .hash_key = store_->hash_key(), .clock = clock_, .observer = &thread},
        *active);
  }
  Limiter& limiter() { return *limiter_; }

 private:
  SystemClock clock_;
  std::unique_ptr<MemoryStore> store_;
  Metrics metrics_;
  std::unique_ptr<Limiter> limiter_;
};

// The requests of one batch, each with headers of its own.
class Requests {
 public:
  explicit Requests(std::size_t size)
      : texts_(size), headers_(size), requests_(size), outcomes_(size) {
    for (std::size_t i = 0; i < size; ++i) {
      headers_[i] = {{{"Host", "api.example.com"},
                      {"User-Agent", "client/1.0"},
                      {"X-API-Key", texts_[i].Of(0)}}};
      requests_[i] = {.method = "GET",
                      .target = "/v1/orders",
                      .host = "api.example.com",
                      .headers = headers_[i]};
    }
  }

  // Writes another client's key into each request.
  void Draw(Random& random, std::uint64_t keys) {
    for (KeyText& text : texts_) (void)text.Of(random.Below(keys));
  }
  void Check(Limiter& limiter) { limiter.Check(requests_, outcomes_); }

 private:
  std::vector<KeyText> texts_;
  std::vector<std::array<Field, 3>> headers_;
  std::vector<LimitRequest> requests_;
  std::vector<Outcome> outcomes_;
};

// The same decision on a map of strings, for one thread: no rule, no metrics, no bound.
class Map {
 public:
  bool Decide(std::string_view key) {
    const Now now = clock_.Read();
    token_bucket::State& state = states_[std::string(key)];
    const auto step = token_bucket::Decide(limit_, state, 1, now.steady);
    state = step.next;
    return step.decision.allowed();
  }

 private:
  SystemClock clock_;
  token_bucket::Limit limit_ =
      *token_bucket::MakeLimit({.count = 1000, .period = std::chrono::minutes{1}}, 100);
  absl::flat_hash_map<std::string, token_bucket::State> states_;
};

void Compare(std::uint64_t keys) {
  Engine engine(keys + keys / 4);
  Map map;
  KeyText text;
  for (std::uint64_t i = 0; i < keys; ++i) map.Decide(text.Of(i));
  Requests batch(kBatch);
  Requests single(1);
  Random random(42);

  Paired paired({.rounds = 9});
  const std::uint64_t operations = 1 << 19;
  std::uint64_t passed = 0;
  paired.Add("flat_hash_map<string, State>, one by one", operations, [&](std::uint64_t n) {
    for (std::uint64_t i = 0; i < n; ++i) passed += map.Decide(text.Of(random.Below(keys))) ? 1 : 0;
  });
  paired.Add("Limiter::Check, one by one", operations, [&](std::uint64_t n) {
    for (std::uint64_t i = 0; i < n; ++i) {
      single.Draw(random, keys);
      single.Check(engine.limiter());
    }
  });
  paired.Add("Limiter::Check, 32 at a time", operations, [&](std::uint64_t n) {
    for (std::uint64_t i = 0; i < n; i += kBatch) {
      batch.Draw(random, keys);
      batch.Check(engine.limiter());
    }
  });
  // All but one key in fifty are there before anything is timed: four draws a key.
  for (std::uint64_t i = 0; i < 4 * keys; i += kBatch) {
    batch.Draw(random, keys);
    batch.Check(engine.limiter());
  }
  paired.Run();
  std::printf("\nThe engine, one rule, %llu keys (medians of 9 interleaved rounds)\n",
              static_cast<unsigned long long>(keys));
  paired.Print("flat_hash_map<string, State>, one by one");
  if (passed == 0) std::exit(1);
}

}  // namespace
}  // namespace sluice::bench

// limiter_bench [KEYS...]: how many keys there are; a million and ten million when none is given.
int main(int argc, char** argv) {
  std::vector<std::uint64_t> counts;
  for (int i = 1; i < argc; ++i) counts.push_back(std::strtoull(argv[i], nullptr, 10));
  if (counts.empty()) counts = {1'000'000, 10'000'000};
  for (const std::uint64_t keys : counts) sluice::bench::Compare(std::max<std::uint64_t>(keys, 1));
}
