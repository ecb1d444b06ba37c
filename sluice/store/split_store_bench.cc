// What it costs to ask for a request of three claims over so many parts, and to be told, without
// what the store behind does.
#include <benchmark/benchmark.h>

#include <array>
#include <chrono>
#include <memory>
#include <utility>
#include <vector>

#include "sluice/store/split_store.h"

namespace sluice {
namespace {

using namespace std::chrono_literals;

class AnyLimit final : public RemoteLimit {
 public:
  const Limit& limit() const override { return limit_; }

 private:
  const Limit limit_ = *token_bucket::MakeLimit({10, 1s}, 10);
};

// Charges each claim, or denies those whose key begins with 'd'.
class InstantStore final : public RemoteStore {
 public:
  absl::StatusOr<std::shared_ptr<const RemoteLimit>> Prepare(const Limit&) const override {
    return std::make_shared<const AnyLimit>();
  }
  absl::Status Apply(RemoteGroup& group, Time /*deadline*/, Done done) override {
    waiting_.emplace_back(&group, std::move(done));
    return absl::OkStatus();
  }
  void Undo(const RemoteClaim& claim, std::uint64_t /*units*/) override {
    benchmark::DoNotOptimize(claim);
  }
  void Renew(const RemoteClaim& /*claim*/) override {}

  void Answer() {
    for (auto& [group, done] : waiting_) {
      group->allowed = true;
      for (RemoteClaim& claim : group->claims) {
        const bool denied = claim.key[0] == 'd';
        claim.decision.verdict = denied ? Verdict::kLimited : Verdict::kAllowed;
        claim.receipt.units = denied ? 0 : 1;
        group->allowed = group->allowed && !denied;
      }
      done(absl::OkStatus());
    }
    waiting_.clear();
  }

 private:
  std::vector<std::pair<RemoteGroup*, Done>> waiting_;
};

void Ask(benchmark::State& state, RemoteStore& store, InstantStore& inner,
         const std::array<std::string_view, 3>& keys) {
  const std::shared_ptr<const RemoteLimit> limit = *store.Prepare({});
  std::array<RemoteClaim, 3> claims;
  for (std::size_t i = 0; i < claims.size(); ++i) {
    claims[i].key = keys[i];
    claims[i].limit = limit.get();
  }
  RemoteGroup group{.claims = claims};
  int answers = 0;
  for (auto _ : state) {
    benchmark::DoNotOptimize(
        store.Apply(group, Time::max(), [&answers](const absl::Status&) { ++answers; }));
    inner.Answer();
  }
  state.SetItemsProcessed(answers);
}

std::uint32_t PartOf(const RemoteClaim& claim) {
  return static_cast<std::uint32_t>(claim.key[1] - '0');
}

void BM_WithoutSplitting(benchmark::State& state) {
  InstantStore inner;
  Ask(state, inner, inner, {"a1", "b1", "c1"});
}
BENCHMARK(BM_WithoutSplitting);

void BM_OnePart(benchmark::State& state) {
  InstantStore inner;
  SplitStore store(inner, PartOf);
  Ask(state, store, inner, {"a1", "b1", "c1"});
}
BENCHMARK(BM_OnePart);

void BM_ThreeParts(benchmark::State& state) {
  InstantStore inner;
  SplitStore store(inner, PartOf);
  Ask(state, store, inner, {"a1", "b2", "c3"});
}
BENCHMARK(BM_ThreeParts);

void BM_ThreePartsOneOfWhichDenies(benchmark::State& state) {
  InstantStore inner;
  SplitStore store(inner, PartOf);
  Ask(state, store, inner, {"a1", "b2", "d3"});
}
BENCHMARK(BM_ThreePartsOneOfWhichDenies);

}  // namespace
}  // namespace sluice

BENCHMARK_MAIN();
