// Nodes that lease units of a hot key (row 13 of the design), each with the engine as it runs in
// production and a clock of its own, over a network that is slow and loses questions, answers and
// what is given back.
//
// After each run, over every stretch of the server's time and net of what was undone: no more was
// admitted than the limit promises. And what leases cost and spare, printed.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string_view>
#include <vector>

#include "sluice/algorithm/testing/trace.h"
#include "sluice/limiter/limiter.h"
#include "sluice/store/lease/leases.h"
#include "sluice/store/memory/memory_store.h"
#include "tests/simulation/counters.h"
#include "tests/simulation/network_store.h"
#include "tests/simulation/node_clock.h"
#include "tests/simulation/promise.h"
#include "tests/simulation/world.h"

namespace sluice::simulation {
namespace {

using namespace std::chrono_literals;
using testing::Random;

struct Setting {
  Promise promise;
  int nodes = 3;
  Duration length = 4s;
  Duration pause = 2ms;    // between the requests of one node, about
  Duration lease = 100ms;  // 0: none
  int undone_per_cent = 0;
  bool bursts = false;  // nobody comes in every other half a second
  Network network;
};

// Of requests that passed and were not undone.
struct Course {
  std::vector<Time> admitted;  // by the server's clock, in no order
  std::size_t requests = 0;
  std::size_t questions = 0;
  std::size_t leased = 0;  // passed by what was held
  std::size_t degraded = 0;
};

class Node {
 public:
  Node(World& world, Server& server, const Setting& setting, Random& random, Course& course)
      : world_(world),
        server_(server),
        setting_(setting),
        random_(random),
        course_(course),
        clock_(world, random, 900),
        remote_(world, server, setting.network, random),
        leases_(remote_, clock_, {.keys = 16, .wake = [this](Time at) { WakeAt(at); }}) {
    store_ = OpenStore(clock_.Read());
    Rule rule;
    rule.name = "r";
    rule.key = {{.kind = SourceKind::kGlobal, .name = "", .label = "global"}};
    rule.limits = {{.plan = "", .limit = setting.promise.limit}};
    rule.on_store_failure = OnStoreFailure::kClosed;
    if (setting.lease > 0ns) rule.lease = RuleLease{.most = 0, .length = setting.lease};
    auto set = std::make_shared<const RuleSet>(std::vector<Rule>{rule}, RuleSetOptions{}, 1);
    auto active = ActiveRules::Make(std::move(set), *store_, clock_, &remote_);
    EXPECT_TRUE(active.ok()) << active.status();
    limiter_ = std::make_unique<Limiter>(Limiter::Parts{.store = *store_,
                                                        .hash_key = store_->hash_key(),
                                                        .clock = clock_,
                                                        .observer = nullptr,
                                                        .remote = &remote_,
                                                        .denials = &denials_,
                                                        .leases = &leases_},
                                         *active);
  }

  // Asks now, and from then on until the end.
  void Live() {
    if (world_.now() > setting_.length) return;
    const bool busy = !setting_.bursts || world_.now() / 500ms % 2 == 0;
    if (busy) Ask();
    world_.After(Duration{random_.Between(1, 2 * setting_.pause.count())}, [this] { Live(); });
  }

  [[nodiscard]] std::size_t asked() const { return remote_.asked(); }
  [[nodiscard]] const LeaseCounters& leases() const { return leases_.counters(); }

 private:
  void Ask() {
    ++course_.requests;
    auto outcome = std::make_shared<Outcome>();
    const bool complete = limiter_->Check({.method = "GET", .target = "/"}, *outcome,
                                          [this, outcome] { Answered(*outcome); });
    if (complete) Answered(*outcome);
  }

  void Answered(Outcome& outcome) {
    const AnsweredBy by = outcome.results[0].answered_by;
    course_.degraded += outcome.answer == Answer::kUnavailable ? 1 : 0;
    if (!outcome.allowed()) return;
    EXPECT_TRUE(by == AnsweredBy::kLease || by == AnsweredBy::kStore);
    if (random_.Chance(setting_.undone_per_cent)) {
      limiter_->Undo(outcome);
      return;
    }
    const bool leased = by == AnsweredBy::kLease;
    course_.leased += leased ? 1 : 0;
    course_.admitted.push_back(leased ? server_.Read().steady : remote_.decided());
  }

  void WakeAt(Time at) {
    // As late as a loop with something else to do.
    const Duration late{random_.Between(0, 2'000'000)};
    world_.After(std::max(at - clock_.Read().steady, Duration{0}) + late,
                 [this] { leases_.OnTime(clock_.Read().steady); });
  }

  World& world_;
  Server& server_;
  const Setting& setting_;
  Random& random_;
  Course& course_;
  const NodeClock clock_;
  NetworkStore remote_;
  DenialMemory denials_{1024};
  std::unique_ptr<MemoryStore> store_;
  Leases leases_;
  std::unique_ptr<Limiter> limiter_;
};

Course Simulate(const Setting& setting, std::uint64_t seed) {
  Course run;
  Random random(seed);
  World world;
  const std::unique_ptr<MemoryStore> counters = OpenStore(kStart);
  Server server(*counters, world, kStart);
  std::vector<std::unique_ptr<Node>> nodes;
  for (int i = 0; i < setting.nodes; ++i) {
    nodes.push_back(std::make_unique<Node>(world, server, setting, random, run));
    Node* const node = nodes.back().get();
    world.After(Duration{random.Between(1, setting.pause.count())}, [node] { node->Live(); });
  }
  world.RunUntil(setting.length + 2s);  // whoever waits hears, and all goes back
  for (const auto& node : nodes) {
    run.questions += node->asked();
    const LeaseCounters& leases = node->leases();
    EXPECT_EQ(leases.keys.value(), 0u);
    EXPECT_EQ(leases.units.value() + leases.put_back.value(),
              leases.taken.value() + leases.returned.value());
  }
  return run;
}

TEST(LeasesSimulation, NoStretchAdmitsMoreThanTheLimitWhateverTheNetworkDoes) {
  Random random(2);
  std::size_t leased = 0;
  std::size_t admitted = 0;
  std::size_t degraded = 0;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE(seed);
    const std::int64_t count = random.Between(200, 1'500);
    const Promise promises[] = {Bucket(count, 1s, 100 + random.Below(900)), Log(count, 1s),
                                Strict(count, 1s), Window(count, 1s)};
    Setting setting{.promise = promises[seed % 4],
                    .nodes = static_cast<int>(2 + random.Below(3)),
                    .length = 3s,
                    .undone_per_cent = static_cast<int>(random.Below(15)),
                    .bursts = random.Chance(50)};
    setting.lease = std::min<Duration>(LongestLease(setting.promise.limit),
                                       Duration{random.Between(20'000'000, 500'000'000)});
    setting.network.most_latency = Duration{random.Between(200'000, 4'000'000)};
    setting.network.lost_per_cent = static_cast<int>(random.Below(10));
    if (random.Chance(30)) {
      setting.network.down_from = 1s;
      setting.network.down_until = 1500ms;
    }
    const Course run = Simulate(setting, seed);
    EXPECT_EQ(OverAdmission(run.admitted, setting.promise), 0);
    leased += run.leased;
    degraded += run.degraded;
    admitted += run.admitted.size();
  }
  EXPECT_GT(leased, admitted / 4);
  EXPECT_GT(degraded, 1'000u);
  std::printf("network: %zu admitted, %zu of them by leases, none too many\n", admitted, leased);
}

// On a network that loses nothing: what leases spare, and what they leave unused.
TEST(LeasesSimulation, HotKeysCostFewQuestionsAndNearlyAllOfTheLimitIsUsed) {
  const struct {
    const char* name;
    Promise promise;
    double most_unused;  // of what passes without leases
  } rows[] = {
      {"half of a bucket", Bucket(3'000, 1s, 3'000), 0.001},
      {"half of a window", Window(3'000, 1s), 0.001},
      {"half of a log", Log(3'000, 1s), 0.001},
      {"all of a bucket", Bucket(1'000, 1s, 1'000), 0.05},
      {"all of a window", Window(1'000, 1s), 0.05},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.name);
    const Setting with{.promise = row.promise, .lease = 20ms};
    Setting without = with;
    without.lease = 0ns;
    const Course leased = Simulate(with, 1);
    const Course alone = Simulate(without, 1);
    EXPECT_EQ(OverAdmission(leased.admitted, row.promise), 0);
    const auto share = [](const Course& run) {
      return static_cast<double>(run.admitted.size()) / static_cast<double>(run.requests);
    };
    const double unused = 1 - share(leased) / share(alone);
    EXPECT_LE(unused, row.most_unused);
    std::printf("%-18s %zu of %zu requests admitted (%zu without leases), %zu questions (%zu)\n",
                row.name, leased.admitted.size(), leased.requests, alone.admitted.size(),
                leased.questions, alone.questions);
  }
}

}  // namespace
}  // namespace sluice::simulation
