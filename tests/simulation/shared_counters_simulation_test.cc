// Nodes that count together over a network that is slow, loses and fails: what each of them does is
// the engine's own. Prints what was measured.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sluice/limiter/denial_memory.h"
#include "sluice/limiter/limiter.h"
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
  Duration length = 20s;
  Duration pause = 2ms;  // between the requests of one node, about
  int undone_per_cent = 0;
  Network network;
};

// Of a request that was decided on.
struct Answer {
  int node;
  Time sent;  // by the node's clock
  Time received;
  std::optional<Time> decided;  // by the server, now or never
  bool allowed;
  bool undone;
  bool asked;           // the store was, and answered or not
  Duration denied_for;  // the server said so; 0: it did not deny
};

// One node: a clock that runs as it likes, an engine, a memory of denials.
class Node {
 public:
  Node(World& world, Server& server, const Setting& setting, int number, Random& random,
       std::vector<Answer>& answers)
      : world_(world),
        setting_(setting),
        number_(number),
        random_(random),
        answers_(answers),
        clock_(world, random, 200),
        remote_(world, server, setting.network, random) {
    store_ = OpenStore(clock_.Read());
    Rule rule;
    rule.name = "r";
    rule.key = {{.kind = SourceKind::kGlobal, .name = "", .label = "global"}};
    rule.limits = {{.plan = "", .limit = setting.promise.limit}};
    rule.on_store_failure = OnStoreFailure::kClosed;
    auto set = std::make_shared<const RuleSet>(std::vector<Rule>{rule}, RuleSetOptions{}, 1);
    auto active = ActiveRules::Make(std::move(set), *store_, clock_, &remote_);
    EXPECT_TRUE(active.ok()) << active.status();
    limiter_ = std::make_unique<Limiter>(Limiter::Parts{.store = *store_,
                                                        .hash_key = store_->hash_key(),
                                                        .clock = clock_,
                                                        .observer = nullptr,
                                                        .remote = &remote_,
                                                        .denials = &denials_},
                                         *active);
  }

  // Asks now, and from then on until the end.
  void Live() {
    if (world_.now() > setting_.length) return;
    auto call = std::make_shared<Call>();
    call->answer = {.node = number_, .sent = clock_.Read().steady};
    const std::size_t before = remote_.asked();
    const bool complete = limiter_->Check({.method = "GET", .target = "/"}, call->outcome,
                                          [this, call] { Answered(*call); });
    call->answer.asked = remote_.asked() > before;
    if (complete) Answered(*call);
    world_.After(Duration{random_.Between(1, 2 * setting_.pause.count())}, [this] { Live(); });
  }

  [[nodiscard]] const NetworkStore& remote() const { return remote_; }

 private:
  struct Call {
    Outcome outcome;
    Answer answer{};
  };

  void Answered(Call& call) {
    Answer& answer = call.answer;
    answer.received = clock_.Read().steady;
    answer.allowed = call.outcome.allowed();
    const RuleResult& result = call.outcome.results[0];
    if (answer.asked && result.answered_by == AnsweredBy::kStore) {
      answer.decided = remote_.decided();
      if (!answer.allowed) answer.denied_for = call.outcome.ClaimOf(result)->decision.retry_after;
    }
    if (answer.allowed && random_.Chance(setting_.undone_per_cent)) {
      limiter_->Undo(call.outcome);
      answer.undone = true;
    }
    answers_.push_back(answer);
  }

  World& world_;
  const Setting& setting_;
  const int number_;
  Random& random_;
  std::vector<Answer>& answers_;
  const NodeClock clock_;
  NetworkStore remote_;
  DenialMemory denials_{1024};
  std::unique_ptr<MemoryStore> store_;
  std::unique_ptr<Limiter> limiter_;
};

// What a run came to.
struct Course {
  std::vector<Answer> answers;
  std::size_t asked = 0;
  std::size_t unanswered = 0;
};

Course Simulate(const Setting& setting, std::uint64_t seed) {
  Course run;
  Random random(seed);
  World world;
  const std::unique_ptr<MemoryStore> counters = OpenStore(kStart);
  Server server(*counters, world, kStart);
  std::vector<std::unique_ptr<Node>> nodes;
  for (int i = 0; i < setting.nodes; ++i) {
    nodes.push_back(std::make_unique<Node>(world, server, setting, i, random, run.answers));
    Node* const node = nodes.back().get();
    world.After(Duration{random.Between(1, setting.pause.count())}, [node] { node->Live(); });
  }
  world.RunUntil(setting.length + 2 * setting.network.deadline);  // whoever waits hears
  for (const auto& node : nodes) {
    run.asked += node->remote().asked();
    run.unanswered += node->remote().unanswered();
  }
  return run;
}

// The most by which a stretch of the server's time has more than was promised, in units.
std::int64_t WorstOverAdmission(const Course& run, const Promise& promise) {
  std::vector<Time> times;
  for (const Answer& answer : run.answers) {
    if (answer.allowed && !answer.undone) times.push_back(answer.decided.value_or(Time{}));
  }
  return OverAdmission(std::move(times), promise);
}

// Of what the node had heard by then, the denial that was asked for last; null: none, or it has
// given something back since.
const Answer* Remembered(const std::vector<const Answer*>& of_node, Time now) {
  const Answer* last = nullptr;
  Time given_back = Time::min();
  for (const Answer* answer : of_node) {
    if (answer->undone && answer->received <= now) {
      given_back = std::max(given_back, answer->received);
    }
    const bool heard = answer->denied_for > 0ns && answer->received < now;
    if (heard && (last == nullptr || answer->sent > last->sent)) last = answer;
  }
  return last != nullptr && last->received > given_back ? last : nullptr;
}

// Questions that were sent though the node remembered a denial, sent less than a second, and less
// than its wait, ago.
int NeedlessQuestions(const Course& run, int nodes) {
  int needless = 0;
  for (int node = 0; node < nodes; ++node) {
    std::vector<const Answer*> heard;  // what matters of it
    for (const Answer& answer : run.answers) {
      const bool matters = answer.denied_for > 0ns || answer.undone;
      if (answer.node == node && matters) heard.push_back(&answer);
    }
    for (const Answer& answer : run.answers) {
      if (answer.node != node || !answer.asked) continue;
      const Answer* denial = Remembered(heard, answer.sent);
      const bool good = denial != nullptr &&
                        answer.sent < denial->sent + std::min<Duration>(denial->denied_for, 1s);
      needless += good ? 1 : 0;
    }
  }
  return needless;
}

// How old the youngest denial of the store's was on which a node denied by itself, at worst.
Duration OldestMemory(const Course& run, int nodes) {
  std::vector<Time> youngest(static_cast<std::size_t>(nodes), Time::min());
  Duration oldest{0};
  for (const Answer& answer : run.answers) {  // in the order in which they came
    Time& of_node = youngest[static_cast<std::size_t>(answer.node)];
    if (answer.denied_for > 0ns) of_node = std::max(of_node, answer.sent);
    if (!answer.asked && !answer.allowed) oldest = std::max(oldest, answer.sent - of_node);
  }
  return oldest;
}

std::int64_t CountAdmitted(const Course& run) {
  return std::ranges::count_if(
      run.answers, [](const Answer& answer) { return answer.allowed && !answer.undone; });
}

TEST(SharedCountersSimulation, AFloodReachesTheStoreOnceForEachNodeAndSecond) {
  const Setting setting{.promise = Bucket(100, 1h, 100), .nodes = 4};
  std::size_t sent = 0;
  std::size_t asked = 0;
  Duration oldest{0};
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    SCOPED_TRACE(seed);
    const Course run = Simulate(setting, seed);
    EXPECT_EQ(NeedlessQuestions(run, setting.nodes), 0);
    EXPECT_EQ(WorstOverAdmission(run, setting.promise), 0);
    EXPECT_EQ(CountAdmitted(run), 100);
    oldest = std::max(oldest, OldestMemory(run, setting.nodes));
    sent += run.answers.size();
    asked += run.asked;
  }
  EXPECT_LT(oldest, 1s);
  EXPECT_GT(oldest, 900ms);
  // 100 that pass; then for each node and second one, and those that are sent until its answer is
  // there: on average one in 2 ms, for 4.2 ms at most.
  EXPECT_LE(asked, 5u * (100 + 4 * 20 * 5));
  std::printf("flood: %zu requests, %zu questions, the oldest memory %.3f s\n", sent, asked,
              std::chrono::duration<double>(oldest).count());
}

TEST(SharedCountersSimulation, NoStretchAdmitsMoreThanTheLimitWhateverTheNetworkDoes) {
  std::int64_t worst = 0;
  std::int64_t admitted = 0;
  std::int64_t possible = 0;
  std::size_t asked = 0;
  std::size_t unanswered = 0;
  Random random(1);
  for (std::uint64_t seed = 1; seed <= 80; ++seed) {
    SCOPED_TRACE(seed);
    const std::int64_t count = random.Between(1, 40);
    const Promise promises[] = {Bucket(count, 1s, 1 + random.Below(20)), Log(count, 1s),
                                Strict(count, 1s), Window(count, 1s)};
    Setting setting{.promise = promises[seed % 4],
                    .nodes = static_cast<int>(2 + random.Below(4)),
                    .length = 8s,
                    .pause = 10ms,
                    .undone_per_cent = static_cast<int>(random.Below(20))};
    setting.network.most_latency = Duration{random.Between(200'000, 4'000'000)};
    setting.network.lost_per_cent = static_cast<int>(random.Below(10));
    if (random.Chance(50)) {
      setting.network.down_from = 3s;
      setting.network.down_until = 5s;
    }
    const Course run = Simulate(setting, seed);
    worst = std::max(worst, WorstOverAdmission(run, setting.promise));
    EXPECT_EQ(worst, 0);
    EXPECT_EQ(NeedlessQuestions(run, setting.nodes), 0);
    EXPECT_LT(OldestMemory(run, setting.nodes), 1s);
    for (const Answer& answer : run.answers) {
      EXPECT_TRUE(!answer.allowed || answer.decided) << "admitted by nobody";
    }
    admitted += CountAdmitted(run);
    possible += setting.promise.most(kStart.steady, kStart.steady + setting.length - 1ns);
    asked += run.asked;
    unanswered += run.unanswered;
  }
  EXPECT_GT(unanswered, 1'000u);
  EXPECT_GT(10 * admitted, 4 * possible);
  std::printf(
      "network: %zu questions, %zu unanswered; over-admitted at worst %lld, unused %.0f %%\n",
      asked, unanswered, static_cast<long long>(worst),
      100.0 * static_cast<double>(possible - admitted) / static_cast<double>(possible));
}

TEST(SharedCountersSimulation, TheSameSeedIsTheSameRun) {
  Setting setting{.promise = Bucket(10, 1s, 5), .length = 5s, .undone_per_cent = 10};
  setting.network.lost_per_cent = 5;
  const Course one = Simulate(setting, 7);
  const Course two = Simulate(setting, 7);
  ASSERT_EQ(one.answers.size(), two.answers.size());
  for (std::size_t i = 0; i < one.answers.size(); ++i) {
    EXPECT_EQ(one.answers[i].sent, two.answers[i].sent);
    EXPECT_EQ(one.answers[i].decided, two.answers[i].decided);
  }
}

}  // namespace
}  // namespace sluice::simulation
