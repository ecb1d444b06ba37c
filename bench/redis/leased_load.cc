// Asks the engine for one hot key from every event loop, as fast as each goes, for some seconds.
//
//   leased_load PORT LOOPS SECONDS LIMIT LEASE
//
// Ends with 1 where a stretch had more than the limit promises: burst + rate * t, counted by
// milliseconds. Prints decisions a second, how many of them were allowed and how many a lease
// answered, leases, and what the store was asked. LIMIT: what the key may spend a second. LEASE: 1
// with leases; 0 without, then so many requests are under way at a time as are one turn of the
// loop.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_format.h"
#include "sluice/base/clock.h"
#include "sluice/base/steady_now.h"
#include "sluice/limiter/limiter.h"
#include "sluice/net/event_loops.h"
#include "sluice/store/lease/leases.h"
#include "sluice/store/memory/memory_store.h"
#include "sluice/store/redis/redis_store.h"
#include "sluice/telemetry/metrics.h"

namespace sluice {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kTurn = 256;

struct Settings {
  std::uint16_t port;
  std::size_t loops;
  std::chrono::seconds length;
  std::int64_t limit;
  bool lease;
};

std::shared_ptr<const RuleSet> Rules(const Settings& settings) {
  Rule rule;
  rule.name = "all";
  rule.key = {{.kind = SourceKind::kGlobal, .name = "", .label = "global"}};
  rule.limits = {{.plan = "",
                  .limit = *token_bucket::MakeLimit({.count = settings.limit, .period = 1s},
                                                    static_cast<std::uint64_t>(settings.limit))}};
  rule.on_store_failure = OnStoreFailure::kClosed;
  if (settings.lease) rule.lease = RuleLease{};
  return std::make_shared<const RuleSet>(std::vector<Rule>{rule}, RuleSetOptions{}, 1);
}

// Of one loop.
class Load {
 public:
  Load(net::EventLoop& loop, const Clock& clock, MemoryStore& memory, DenialMemory& denials,
       ThreadMetrics& metrics, const Settings& settings)
      : loop_(loop),
        clock_(clock),
        settings_(settings),
        store_(loop, clock,
               {.connection = {.address = {"127.0.0.1", settings.port}}, .max_waiting = 4 * kTurn}),
        leases_(store_, clock, {.keys = 64, .wake = {}}),
        memory_(memory),
        denials_(denials),
        metrics_(metrics),
        calls_(2 * kTurn) {
    for (Call& call : calls_) free_.push_back(&call);
  }

  void Begin(const std::shared_ptr<const ActiveRules>& rules) {
    metrics_.Bind(rules->rules());
    limiter_ = std::make_unique<Limiter>(Limiter::Parts{.store = memory_,
                                                        .hash_key = memory_.hash_key(),
                                                        .clock = clock_,
                                                        .observer = &metrics_,
                                                        .remote = &store_,
                                                        .remote_deadline = 1s,
                                                        .denials = &denials_,
                                                        .leases = &leases_},
                                         rules);
    begun_ = SteadyNow();
    end_ = begun_ + settings_.length;
    bins_.resize(static_cast<std::size_t>(settings_.length / 1ms) + 2'000);
    running_ = true;
    Turn();
  }
  void End() { leases_.Close(); }
  [[nodiscard]] bool ended() const { return !running_ && free_.size() == calls_.size(); }
  [[nodiscard]] const redis::RedisStore& store() const { return store_; }
  [[nodiscard]] const LeaseCounters& leases() const { return leases_.counters(); }
  [[nodiscard]] std::uint64_t decided() const { return decided_; }
  [[nodiscard]] std::uint64_t allowed() const { return allowed_; }
  // Admitted in each millisecond.
  [[nodiscard]] const std::vector<std::int64_t>& bins() const { return bins_; }
  [[nodiscard]] std::uint64_t at_once() const { return at_once_; }

 private:
  struct Call {
    Outcome outcome;
  };

  void Turn() {
    const Time now = SteadyNow();
    if (now >= end_) {
      running_ = false;
      return;
    }
    bin_ = &bins_[static_cast<std::size_t>((now - begun_) / 1ms)];
    for (std::size_t i = 0; i < kTurn && !free_.empty(); ++i) Ask(*free_.back());
    loop_.Post([this] { Turn(); });
  }

  void Ask(Call& call) {
    free_.pop_back();
    const bool complete = limiter_->Check({.method = "GET", .target = "/v1/orders"}, call.outcome,
                                          [this, &call] { Decided(call); });
    if (!complete) return;
    ++at_once_;
    Decided(call);
  }
  void Decided(Call& call) {
    ++decided_;
    if (call.outcome.allowed()) {
      ++allowed_;
      ++*bin_;
    }
    free_.push_back(&call);
  }

  net::EventLoop& loop_;
  const Clock& clock_;
  const Settings settings_;
  redis::RedisStore store_;
  Leases leases_;
  MemoryStore& memory_;
  DenialMemory& denials_;
  ThreadMetrics& metrics_;
  std::unique_ptr<Limiter> limiter_;
  std::vector<Call> calls_;
  std::vector<Call*> free_;
  Time begun_{};
  Time end_{};
  std::vector<std::int64_t> bins_;
  std::int64_t* bin_ = nullptr;
  bool running_ = false;
  std::uint64_t decided_ = 0;
  std::uint64_t allowed_ = 0;
  std::uint64_t at_once_ = 0;
};

// By how much the worst stretch has more than the limit promises, negative: less. An answer of the
// store is counted up to a millisecond later than it was decided; the loops began as far apart.
std::int64_t WorstStretch(const std::vector<std::unique_ptr<Load>>& loads,
                          const Settings& settings) {
  const std::int64_t rate = settings.limit / 1000;  // a millisecond
  const std::int64_t early = 2 * rate;
  std::int64_t stretch = 0;
  std::int64_t worst = 0;
  for (std::size_t i = 0; i < loads[0]->bins().size(); ++i) {
    std::int64_t admitted = 0;
    for (const auto& load : loads) admitted += load->bins()[i];
    stretch = std::max<std::int64_t>(stretch, 0) + admitted - rate;
    worst = std::max(worst, stretch);
  }
  return worst - settings.limit - early;
}

int Run(const Settings& settings) {
  SystemClock clock;
  auto memory = MemoryStore::Open({.max_keys = 1'000}, clock.Read());
  if (!memory.ok()) return 1;
  Metrics metrics;
  DenialMemory denials(1024);
  net::EventLoops loops(settings.loops);
  std::vector<std::unique_ptr<Load>> loads;
  for (std::size_t i = 0; i < loops.size(); ++i) {
    loads.push_back(
        std::make_unique<Load>(loops[i], clock, **memory, denials, metrics.AddThread(), settings));
  }
  auto rules = ActiveRules::Make(Rules(settings), **memory, clock, &loads[0]->store());
  if (!rules.ok()) {
    std::fprintf(stderr, "%s\n", rules.status().ToString().c_str());
    return 1;
  }
  loops.Start();
  const auto wait_until = [&](const auto& holds) {
    for (bool done = false; !done;) {
      std::this_thread::sleep_for(5ms);
      done = true;
      loops.OnEach([&](net::EventLoop& loop) { done = done && holds(*loads[loop.index()]); });
    }
  };
  wait_until([](const Load& load) { return load.store().health().up; });
  const Time begin = SteadyNow();
  loops.OnEach([&](net::EventLoop& loop) { loads[loop.index()]->Begin(*rules); });
  std::this_thread::sleep_for(settings.length);
  wait_until([](const Load& load) { return load.ended(); });
  const double seconds = std::chrono::duration<double>(SteadyNow() - begin).count();
  loops.OnEach([&](net::EventLoop& loop) { loads[loop.index()]->End(); });
  std::uint64_t decided = 0;
  std::uint64_t allowed = 0;
  std::uint64_t at_once = 0;
  std::uint64_t granted = 0;
  std::uint64_t asked = 0;
  for (const auto& load : loads) {
    decided += load->decided();
    allowed += load->allowed();
    at_once += load->at_once();
    granted += load->leases().granted.value();
    asked += load->store().counters().groups.value();
  }
  const std::int64_t over = WorstStretch(loads, settings);
  const auto share = [&](std::uint64_t of) {
    return static_cast<double>(of) / static_cast<double>(decided);
  };
  std::printf("%s\n",
              absl::StrFormat("{\"per_second\": %.0f, \"allowed\": %.4f, \"at_once\": %.6f, "
                              "\"leases\": %d, \"asked\": %d, \"over\": %d}",
                              static_cast<double>(decided) / seconds, share(allowed),
                              share(at_once), granted, asked, over)
                  .c_str());
  std::this_thread::sleep_for(50ms);  // what was held goes back
  loops.OnEach([&](net::EventLoop& loop) { loads[loop.index()].reset(); });
  loops.Stop();
  return over > 0 ? 1 : 0;
}

}  // namespace
}  // namespace sluice

int main(int argc, char** argv) {
  if (argc != 6) {
    std::fprintf(stderr, "leased_load PORT LOOPS SECONDS LIMIT LEASE\n");
    return 2;
  }
  return sluice::Run({.port = static_cast<std::uint16_t>(std::atoi(argv[1])),
                      .loops = static_cast<std::size_t>(std::atoi(argv[2])),
                      .length = std::chrono::seconds(std::atoi(argv[3])),
                      .limit = std::atoll(argv[4]),
                      .lease = std::atoi(argv[5]) != 0});
}
