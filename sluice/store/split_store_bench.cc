// What it costs to ask for a request of three claims over so many parts, and to be told, without
// what the store behind does.
#include <benchmark/benchmark.h>

#include <array>
#include <chrono>
#include <memory>
#include <utility>
#include <vector>

#include "sluice/store/split_store.h"
#include "sluice/store/testing/instant_store.h"

namespace sluice {
namespace {

using namespace std::chrono_literals;

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
