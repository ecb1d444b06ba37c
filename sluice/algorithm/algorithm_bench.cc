// What one decision costs, state in the first cache: the floor under every store.
//
// Each turn decides on cost 1 and keeps the state; time goes on so that about every second request
// is allowed. `Word` is the packed form behind the variant, as a store calls it.
#include <benchmark/benchmark.h>

#include <cstdint>
#include <vector>

#include "sluice/algorithm/packed.h"
#include "sluice/algorithm/sliding_window_log.h"
#include "sluice/algorithm/sliding_window_strict.h"
#include "sluice/algorithm/state.h"

namespace sluice {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::seconds;

// Half the period of one unit at 100/s.
constexpr Duration kStep = milliseconds{5};

Now Later(Now now) { return {now.steady + kStep, now.wall + kStep}; }
Now Start() { return {Time{hours{100}}, WallTime{hours{24 * 365 * 54}}}; }

void BM_TokenBucket(benchmark::State& bench, Rate rate) {
  const auto limit = token_bucket::MakeLimit(rate, 100).value();
  token_bucket::State state;
  Now now = Start();
  for (auto _ : bench) {
    now = Later(now);
    const auto step = token_bucket::Decide(limit, state, 1, now.steady);
    benchmark::DoNotOptimize(step.decision);
    state = step.next;
  }
}
BENCHMARK_CAPTURE(BM_TokenBucket, whole_100_per_s, Rate{100, seconds{1}});
BENCHMARK_CAPTURE(BM_TokenBucket, whole_3_ticks_a_ns, Rate{300, seconds{3}});
BENCHMARK_CAPTURE(BM_TokenBucket, rounded_7919_per_80_s, Rate{7919, seconds{80}});

void BM_Word(benchmark::State& bench, const Limit& limit) {
  std::uint64_t word = 0;
  Now now = Start();
  for (auto _ : bench) {
    now = Later(now);
    const auto step = DecideWord(limit, word, 1, now);
    benchmark::DoNotOptimize(step.decision);
    word = step.next;
  }
}
BENCHMARK_CAPTURE(BM_Word, token_bucket, token_bucket::MakeLimit({100, seconds{1}}, 100).value());
BENCHMARK_CAPTURE(BM_Word, leaky_bucket,
                  leaky_bucket::MakeLimit({100, seconds{1}}, 50, seconds{1}).value());
BENCHMARK_CAPTURE(BM_Word, fixed_window, fixed_window::MakeLimit(1000, seconds{10}).value());
BENCHMARK_CAPTURE(BM_Word, sliding_counter,
                  sliding_window_counter::MakeLimit(1000, seconds{10}).value());

void BM_SmallState(benchmark::State& bench, const Limit& limit) {
  SmallState state;
  Now now = Start();
  for (auto _ : bench) {
    now = Later(now);
    const auto step = Decide(limit, state, 1, now);
    benchmark::DoNotOptimize(step.decision);
    state = step.next;
  }
}
BENCHMARK_CAPTURE(
    BM_SmallState, first_hit,
    fixed_window::MakeLimit(1000, seconds{10}, fixed_window::Align::kFirstHit).value());
BENCHMARK_CAPTURE(BM_SmallState, calendar,
                  calendar::MakeLimit(1000, calendar::Period::kDay, "Europe/Berlin").value());

void BM_Strict(benchmark::State& bench) {
  const auto k = static_cast<int>(bench.range(0));
  const auto limit = sliding_window_strict::MakeLimit(1000, seconds{10}, k).value();
  std::int64_t newest = 0;
  std::vector<std::uint64_t> counts(static_cast<std::size_t>(k) + 1);
  const sliding_window_strict::View view{newest, counts};
  Now now = Start();
  for (auto _ : bench) {
    now = Later(now);
    benchmark::DoNotOptimize(sliding_window_strict::Charge(limit, view, 1, now.steady, 1000));
  }
}
BENCHMARK(BM_Strict)->Arg(4)->Arg(16)->Arg(60);

// A ring of stamps, as a store keeps them.
class Ring {
 public:
  explicit Ring(std::size_t capacity) : stamps_(capacity) {}
  [[nodiscard]] std::uint64_t size() const { return size_; }
  [[nodiscard]] std::uint64_t sum() const { return size_; }
  [[nodiscard]] Time latest() const { return latest_; }
  [[nodiscard]] sliding_window_log::Event at(std::uint64_t n) const {
    const std::uint64_t index = first_ + n;
    return {stamps_[index < stamps_.size() ? index : index - stamps_.size()], 1};
  }
  void Keep(const sliding_window_log::Answer& answer) {
    first_ = (first_ + answer.expired) % stamps_.size();
    size_ -= answer.expired;
    if (answer.receipt.units == 0) return;
    stamps_[(first_ + size_++) % stamps_.size()] = answer.event.stamp;
    latest_ = answer.latest;
  }

 private:
  std::vector<std::uint32_t> stamps_;
  std::uint64_t first_ = 0;
  std::uint64_t size_ = 0;
  Time latest_{};
};

void BM_Log(benchmark::State& bench) {
  const auto limit = sliding_window_log::MakeLimit(1000, seconds{10}, false).value();
  Ring ring(1000);
  Now now = Start();
  for (auto _ : bench) {
    now = Later(now);
    const auto answer = sliding_window_log::Decide(limit, ring, 1, now.steady);
    benchmark::DoNotOptimize(answer.decision);
    ring.Keep(answer);
  }
}
BENCHMARK(BM_Log);

}  // namespace
}  // namespace sluice

BENCHMARK_MAIN();
