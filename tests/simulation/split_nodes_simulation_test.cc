// Nodes with the real engine on a simulated cluster: rules by user, by tenant and for all, in slots
// of their own, while one user floods. Prints what was measured.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "sluice/limiter/denial_memory.h"
#include "sluice/limiter/limiter.h"
#include "sluice/store/split_store.h"
#include "tests/simulation/counters.h"
#include "tests/simulation/node_clock.h"
#include "tests/simulation/promise.h"
#include "tests/simulation/slots_network.h"
#include "tests/simulation/world.h"

namespace sluice::simulation {
namespace {

using namespace std::chrono_literals;
using testing::Random;

constexpr std::size_t kRules = 3;
constexpr int kUsers = 6;

struct Setting {
  int nodes = 3;
  int servers = 3;
  bool undivided = false;
  Duration length = 8s;
  Duration pause = 1500us;  // between the requests of one node, about
  int flood_per_cent = 0;   // of requests are the first user's
  std::array<Promise, kRules> promises = {Bucket(20, 1s, 10), Bucket(40, 1s, 20),
                                          Bucket(90, 1s, 10)};
  SlotsNetworkOptions network;
};

// A request, which lives until the end: where the bytes of its keys lie tells whose they are.
struct Call {
  std::string user;
  std::string tenant;
  std::array<Field, 2> headers;
  Outcome outcome;
  bool told = false;
};

struct Course {
  SlotsNetwork::Truth truth;
  std::deque<Call> calls;
  std::size_t questions = 0;
};

class Node {
 public:
  Node(World& world, Cluster& cluster, const Setting& setting, std::uint64_t seed,
       Random& network_random, Course& course)
      : world_(world),
        setting_(setting),
        random_(seed),
        course_(course),
        clock_(world, random_, 0),
        network_(world, cluster, setting.network, network_random, course.truth),
        split_(network_, [&setting](const RemoteClaim& claim) {
          return setting.undivided ? 0 : Cluster::SlotOf(claim.key);
        }) {
    store_ = OpenStore(clock_.Read());
    const std::array<Source, kRules> sources = {
        {{.kind = SourceKind::kHeader, .name = "X-User", .label = "header.X-User"},
         {.kind = SourceKind::kHeader, .name = "X-Tenant", .label = "header.X-Tenant"},
         {.kind = SourceKind::kGlobal, .name = "", .label = "global"}}};
    std::vector<Rule> rules(kRules);
    for (std::size_t i = 0; i < kRules; ++i) {
      rules[i].name = std::string(1, static_cast<char>('a' + i));
      rules[i].key = {sources[i]};
      rules[i].limits = {{.plan = "", .limit = setting.promises[i].limit}};
      rules[i].on_store_failure = OnStoreFailure::kClosed;
    }
    auto set = std::make_shared<const RuleSet>(rules, RuleSetOptions{}, 1);
    auto active = ActiveRules::Make(std::move(set), *store_, clock_, &split_);
    EXPECT_TRUE(active.ok()) << active.status();
    limiter_ = std::make_unique<Limiter>(Limiter::Parts{.store = *store_,
                                                        .hash_key = store_->hash_key(),
                                                        .clock = clock_,
                                                        .observer = nullptr,
                                                        .remote = &split_,
                                                        .denials = &denials_},
                                         *active);
  }

  void Live() {
    if (world_.now() > setting_.length) return;
    const std::uint64_t user = random_.Chance(setting_.flood_per_cent) ? 0 : random_.Below(kUsers);
    Call& call = course_.calls.emplace_back();
    call.user = "user" + std::to_string(user);
    call.tenant = "tenant" + std::to_string(user / 2);
    call.headers = {{{"X-User", call.user}, {"X-Tenant", call.tenant}}};
    const bool complete = limiter_->Check({.method = "GET", .target = "/", .headers = call.headers},
                                          call.outcome, [this, &call] { call.told = true; });
    if (complete) call.told = true;
    world_.After(Duration{random_.Between(1, 2 * setting_.pause.count())}, [this] { Live(); });
  }
  [[nodiscard]] std::size_t questions() const { return network_.asked(); }

 private:
  World& world_;
  const Setting& setting_;
  Random random_;
  Course& course_;
  const NodeClock clock_;
  SlotsNetwork network_;
  SplitStore split_;
  DenialMemory denials_{1024};
  std::unique_ptr<MemoryStore> store_;
  std::unique_ptr<Limiter> limiter_;
};

// What a run came to, in the end.
struct Result {
  std::size_t requests = 0;
  std::size_t questions = 0;
  std::size_t others_allowed = 0;  // of all users but the first
  std::int64_t worst = 0;          // over-admission of a stretch of a key, in units
};

std::int64_t WorstOverAdmission(const Course& course, const Setting& setting) {
  std::map<std::string, std::pair<std::size_t, std::vector<Time>>, std::less<>> passed;
  for (const Call& call : course.calls) {
    if (!call.outcome.allowed()) continue;
    const std::vector<RemoteClaim>& claims = call.outcome.remote->claims;
    EXPECT_EQ(claims.size(), kRules);
    for (std::size_t i = 0; i < claims.size(); ++i) {
      const auto fate = course.truth.find(claims[i].key.data());
      EXPECT_TRUE(fate != course.truth.end() && fate->second.charged && fate->second.undone == 0);
      auto& of_key = passed[std::string(claims[i].key)];
      of_key.first = i;
      of_key.second.push_back(fate->second.decided);
    }
  }
  std::int64_t worst = 0;
  for (auto& [key, of_key] : passed) {
    std::vector<Time>& times = of_key.second;
    std::sort(times.begin(), times.end());
    for (std::size_t i = 0; i < times.size(); ++i) {
      for (std::size_t j = i; j < times.size(); ++j) {
        const auto units = static_cast<std::int64_t>(j - i + 1);
        worst = std::max(worst, units - setting.promises[of_key.first].most(times[i], times[j]));
      }
    }
  }
  return worst;
}

Result Simulate(const Setting& setting, std::uint64_t seed) {
  Random random(seed);
  World world;
  Cluster cluster(world, setting.servers, random);
  std::vector<std::unique_ptr<Node>> nodes;  // outlive the rules that calls still hold
  Course course;
  for (int i = 0; i < setting.nodes; ++i) {
    const auto node_seed = seed * 1000 + static_cast<std::uint64_t>(i);
    nodes.push_back(std::make_unique<Node>(world, cluster, setting, node_seed, random, course));
    nodes.back()->Live();
  }
  world.RunUntil(setting.length + 2min);  // all undos are done or given up
  Result result{.requests = course.calls.size()};
  for (const auto& node : nodes) result.questions += node->questions();
  for (const Call& call : course.calls) {
    EXPECT_TRUE(call.told);
    result.others_allowed += call.outcome.allowed() && call.user != "user0" ? 1 : 0;
  }
  result.worst = WorstOverAdmission(course, setting);
  return result;
}

TEST(SplitNodesSimulation, NoStretchHasTooMuchWhateverTheNetworkDoes) {
  Random random(1);
  for (std::uint64_t seed = 1; seed <= 24; ++seed) {
    SCOPED_TRACE(seed);
    Setting setting{.pause = 5ms, .flood_per_cent = static_cast<int>(random.Below(90))};
    const std::int64_t count = random.Between(5, 40);
    const Promise promises[] = {Bucket(count, 1s, 1 + random.Below(20)), Log(count, 1s),
                                Strict(count, 1s), Window(count, 1s)};
    setting.promises[1] = promises[seed % 4];
    setting.network.network.lost_per_cent = static_cast<int>(random.Below(8));
    setting.network.unanswered_per_cent = static_cast<int>(random.Below(30));
    setting.network.read_late_per_cent = static_cast<int>(random.Below(20));
    if (random.Chance(50)) {
      setting.network.network.down_from = 3s;
      setting.network.network.down_until = 5s;
    }
    EXPECT_EQ(Simulate(setting, seed).worst, 0);
  }
}

// What a flood of one user, which its own limit denies, costs the others on the rule that all
// share. Denials are remembered until a unit is back, 50 ms here; so not all of the flood is
// charged first.
TEST(SplitNodesSimulation, AFloodDeniesOthersLittleWhereTheSharedBurstIsLargerThanWhatIsVetoed) {
  struct Case {
    std::uint64_t burst;
    std::size_t least_per_cent;  // of what an undivided store admits
  };
  for (const auto& [burst, least_per_cent] : {Case{40, 100}, Case{10, 98}, Case{4, 80}}) {
    SCOPED_TRACE(burst);
    Result split;
    Result undivided;
    for (std::uint64_t seed = 1; seed <= 5; ++seed) {
      Setting setting{.flood_per_cent = 97};
      setting.promises[2] = Bucket(90, 1s, burst);
      const Result of_split = Simulate(setting, seed);
      EXPECT_EQ(of_split.worst, 0);
      split.requests += of_split.requests;
      split.questions += of_split.questions;
      split.others_allowed += of_split.others_allowed;
      setting.undivided = true;
      setting.servers = 1;
      undivided.others_allowed += Simulate(setting, seed).others_allowed;
    }
    EXPECT_GE(100 * split.others_allowed, least_per_cent * undivided.others_allowed);
    EXPECT_LT(100 * split.questions / kRules, 13 * split.requests);
    std::printf(
        "2,000 requests/s of one user, shared burst %llu: of %zu requests %zu asked; of the others "
        "%zu allowed, undivided %zu\n",
        static_cast<unsigned long long>(burst), split.requests, split.questions / kRules,
        split.others_allowed, undivided.others_allowed);
  }
}

}  // namespace
}  // namespace sluice::simulation
