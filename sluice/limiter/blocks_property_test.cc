// What limiter/blocks.h promises, on random traces.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <barrier>
#include <map>
#include <random>
#include <thread>

#include "sluice/limiter/limiter_fixture.h"

namespace sluice {
namespace {

using Random = std::mt19937_64;

std::uint64_t Below(Random& random, std::uint64_t n) { return random() % n; }

Rule KeyedRule(std::string name, const Limit& limit, Duration block_for) {
  Rule rule = MakeRule(std::move(name), HeaderSource("K"), limit);
  rule.block_for = block_for;
  return rule;
}

// A limiter on a store of its own. All have one hash key, so that their states go alike.
class Engine {
 public:
  explicit Engine(const Clock& clock) : clock_(clock) {
    auto opened = MemoryStore::Open(
        {.max_keys = 10'000, .hash_key = HashKey(HashKind::kSipHash13, {1, 2, 3})}, clock.Read());
    EXPECT_TRUE(opened.ok()) << opened.status();
    store_ = *std::move(opened);
  }
  void Use(const std::vector<Rule>& rules) {
    auto set = std::make_shared<const RuleSet>(rules, RuleSetOptions{}, ++generation_);
    auto active = ActiveRules::Make(std::move(set), *store_, clock_);
    ASSERT_TRUE(active.ok()) << active.status();
    if (limiter_ == nullptr) {
      limiter_ = NewLimiter(*active);
    } else {
      limiter_->Replace(*active);
    }
  }
  std::unique_ptr<Limiter> NewLimiter(const std::shared_ptr<const ActiveRules>& rules) {
    return std::make_unique<Limiter>(
        Limiter::Parts{.store = *store_, .hash_key = store_->hash_key(), .clock = clock_}, rules);
  }
  Limiter& limiter() { return *limiter_; }
  MemoryStore& store() { return *store_; }

  Outcome Ask(std::string_view key, std::uint64_t cost, bool look = false) {
    const std::vector<Field> headers = {{"K", key}};
    Outcome outcome;
    limiter_->Check(
        {.method = "GET", .target = "/", .headers = headers, .cost = cost, .look = look}, outcome);
    return outcome;
  }

 private:
  const Clock& clock_;
  std::unique_ptr<MemoryStore> store_;
  std::unique_ptr<Limiter> limiter_;
  std::uint64_t generation_ = 0;
};

std::vector<Limit> Limits() {
  return {Bucket(3, 1s, 3),
          *leaky_bucket::MakeLimit({.count = 3, .period = 1s}, 2, 1s),
          Window(3, 1s),
          *sliding_window_counter::MakeLimit(3, 1s),
          *sliding_window_log::MakeLimit(3, 1s, true),
          *sliding_window_strict::MakeLimit(3, 1s),
          Slots(3),
          Slots(3, 2s)};
}

// Duration of some random step: none, within a block, or past it.
Duration SomeTime(Random& random) {
  const Duration most[] = {0ns, 10ns, 100ms, 400ms, 3s};
  const Duration chosen = most[Below(random, std::size(most))];
  return Duration{
      static_cast<std::int64_t>(Below(random, static_cast<std::uint64_t>(chosen.count()) + 1))};
}

// A rule that blocks beside the same rule that does not, and to which what comes inside of a block
// is never shown: outside of the blocks the two say the same, whatever is undone, reloaded, or done
// to the clock; inside of them the first denies, until exactly the end.
class TwinTest : public testing::TestWithParam<std::size_t> {
 protected:
  void SetUp() override { Use(); }

  void Use() {
    const Limit limit = Limits()[GetParam()];
    blocking_.Use({KeyedRule("r", limit, block_for_)});
    plain_.Use({KeyedRule("r", limit, 0s)});
  }

  void Ask(Random& random) {
    const std::string key(1, static_cast<char>('a' + Below(random, 3)));
    const std::uint64_t cost = Below(random, 5);  // 4 is never met
    const bool look = Below(random, 5) == 0;
    const Time now = clock_.Read().steady;
    Block& block = blocks_[key];
    if (block.length != block_for_) {
      block.end = block.end > now ? std::min(block.end, now + block_for_) : Time{};
      block.length = block_for_;
    }
    const bool blocked = now < block.end;
    Outcome outcome = blocking_.Ask(key, cost, look);
    Outcome plain = plain_.Ask(key, cost, look || blocked);
    const Duration own = plain.retry_after;
    if (blocked && cost < 4) {
      ASSERT_EQ(outcome.answer, Answer::kLimited);
      EXPECT_EQ(outcome.retry_after, std::max(block.end - now, own));
      EXPECT_EQ(outcome.claims[0].receipt.units, 0u);
      ++denied_by_block_;
    } else if (plain.answer == Answer::kLimited && !look) {
      ASSERT_EQ(outcome.answer, Answer::kLimited);
      EXPECT_EQ(outcome.retry_after, std::max(block_for_, own));
      block = {.end = now + block_for_, .length = block_for_};
      ++begun_;
    } else {
      ASSERT_EQ(outcome.answer, plain.answer);
      EXPECT_EQ(outcome.retry_after, own);
      EXPECT_EQ(outcome.delay, plain.delay);
      EXPECT_EQ(outcome.claims[0].decision, plain.claims[0].decision);
      if (outcome.allowed()) held_.emplace_back(std::move(outcome), std::move(plain));
    }
  }

  void GiveBack(Random& random) {
    if (held_.empty()) return;
    std::swap(held_[Below(random, held_.size())], held_.back());
    auto& [outcome, plain] = held_.back();
    if (Below(random, 2) == 0) {
      blocking_.limiter().Undo(outcome);
      plain_.limiter().Undo(plain);
    } else {
      blocking_.limiter().Finish(outcome);
      plain_.limiter().Finish(plain);
    }
    held_.pop_back();
  }

  // Once nothing is left of the old rules, so that no state waits for them.
  void Reload(Random& random) {
    while (!held_.empty()) GiveBack(random);
    block_for_ = Duration{1 + static_cast<std::int64_t>(Below(random, 2'000'000'000))};
    Use();
  }

  void Step(Random& random) {
    const std::uint64_t what = Below(random, 100);
    if (what < 70) return Ask(random);
    if (what < 85) return GiveBack(random);
    if (what < 97) return clock_.Advance(SomeTime(random));
    if (what < 98) return clock_.Set({clock_.Read().steady - 50ms, clock_.Read().wall - 50ms});
    if (what < 99) return clock_.StepWall(Below(random, 2) == 0 ? 200ms : -200ms);
    Reload(random);
  }

  struct Block {
    Time end{};
    Duration length{0};
  };
  ManualClock clock_;
  Engine blocking_{clock_};
  Engine plain_{clock_};
  Duration block_for_ = 500ms;
  std::map<std::string, Block> blocks_;
  std::vector<std::pair<Outcome, Outcome>> held_;
  int denied_by_block_ = 0;
  int begun_ = 0;
};

TEST_P(TwinTest, OutsideOfItsBlocksARuleDecidesAsOneThatNeverBlocks) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    for (int i = 0; i < 3000; ++i) ASSERT_NO_FATAL_FAILURE(Step(random)) << i;
  }
  EXPECT_GT(denied_by_block_, 1000);
  EXPECT_GT(begun_, 300);
}

INSTANTIATE_TEST_SUITE_P(EveryAlgorithm, TwinTest, testing::Range(std::size_t{0}, Limits().size()));

// Threads meet at a barrier before the clock moves, so that within a round all requests have one
// reading and only their order is by chance.
class BlocksUnderThreadsTest : public testing::TestWithParam<std::size_t> {
 protected:
  static constexpr int kThreads = 4;
  static constexpr int kRounds = 300;
  static constexpr Duration kBlockFor = 1s;

  struct Event {
    int round;
    std::uint64_t begun;  // in one order over all threads
    std::uint64_t answered;
    bool allowed;
    Duration retry_after;
  };

  void RunThread(std::uint64_t seed, Limiter& limiter, std::barrier<>& barrier,
                 std::vector<Event>& events) {
    Random random(seed);
    const std::vector<Field> headers = {{"K", "ann"}};
    Outcome outcome;
    std::vector<Outcome> running;
    for (int round = 0; round < kRounds; ++round) {
      for (Outcome& over : running) limiter.Finish(over);
      running.clear();
      barrier.arrive_and_wait();
      for (int i = 0; i < 20; ++i) {
        Event event{.round = round};
        event.begun = order_.fetch_add(1);
        limiter.Check({.method = "GET", .target = "/", .headers = headers}, outcome);
        event.allowed = outcome.allowed();
        event.retry_after = outcome.retry_after;
        event.answered = order_.fetch_add(1);
        events.push_back(event);
        // Room comes back all the time: without blocks many would pass behind a denial.
        if (!event.allowed) continue;
        if (Below(random, 4) == 0) {
          running.push_back(outcome);
        } else {
          limiter.Undo(outcome);
        }
      }
      barrier.arrive_and_wait();
    }
  }

  // Checks one round that was decided at `now`; blocks until `end` or from then on.
  static void Judge(const std::vector<Event>& round, Time now, Time& end) {
    const bool blocked = now < end;
    std::uint64_t first_denial = UINT64_MAX;
    for (const Event& event : round) {
      if (!event.allowed) first_denial = std::min(first_denial, event.answered);
    }
    if (!blocked && first_denial != UINT64_MAX) end = now + kBlockFor;
    for (const Event& event : round) {
      if (event.allowed) {
        EXPECT_FALSE(blocked);
        EXPECT_LT(event.begun, first_denial);
      } else {
        EXPECT_GE(event.retry_after, end - now);
      }
    }
  }

  std::atomic<std::uint64_t> order_{0};
};

TEST_P(BlocksUnderThreadsTest, NobodyPassesBehindAnAnsweredDenialBeforeTheBlockEnds) {
  ManualClock clock;
  Engine engine(clock);
  auto set = std::make_shared<const RuleSet>(
      std::vector{KeyedRule("r", Limits()[GetParam()], kBlockFor)}, RuleSetOptions{}, 1);
  auto active = ActiveRules::Make(std::move(set), engine.store(), clock);
  ASSERT_TRUE(active.ok());
  std::barrier<> barrier(kThreads + 1);
  std::array<std::vector<Event>, kThreads> events;
  std::array<std::unique_ptr<Limiter>, kThreads> limiters;
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < kThreads; ++i) {
    limiters[i] = engine.NewLimiter(*active);
    threads.emplace_back([&, i] { RunThread(i, *limiters[i], barrier, events[i]); });
  }
  Random random(42);
  std::vector<Time> times;
  for (int round = 0; round < kRounds; ++round) {
    clock.Advance(Duration{static_cast<std::int64_t>(Below(random, 700'000'000))});
    times.push_back(clock.Read().steady);
    barrier.arrive_and_wait();
    barrier.arrive_and_wait();
  }
  for (std::thread& thread : threads) thread.join();

  std::vector<std::vector<Event>> rounds(kRounds);
  int allowed = 0;
  for (const auto& of_thread : events) {
    for (const Event& event : of_thread) {
      rounds[static_cast<std::size_t>(event.round)].push_back(event);
      allowed += event.allowed ? 1 : 0;
    }
  }
  Time end{};
  for (std::size_t i = 0; i < rounds.size(); ++i) Judge(rounds[i], times[i], end);
  EXPECT_GT(allowed, 100);
  EXPECT_LT(allowed, kThreads * kRounds * 20 / 2);
}

INSTANTIATE_TEST_SUITE_P(EveryAlgorithm, BlocksUnderThreadsTest,
                         testing::Range(std::size_t{0}, Limits().size()));

std::vector<Rule> MixedRules() {
  Rule shadow = KeyedRule("shadow", Bucket(5, 1s, 2), 700ms);
  shadow.mode = RuleMode::kShadow;
  Rule charging = KeyedRule("charging", Bucket(9, 1s, 9), 300ms);
  charging.charge_denied = true;
  Rule everybody = MakeRule("everybody", GlobalSource(), Window(40, 1s));
  Rule narrow = KeyedRule("narrow", Window(4, 1s), 1500ms);
  narrow.match.paths = {*PathPattern::Compile("/narrow")};
  return {shadow, KeyedRule("r", Bucket(3, 1s, 3), 500ms), charging, everybody, narrow};
}

TEST(BlocksInBatchesTest, ABatchIsDecidedAsItsRequestsWouldBeOneByOne) {
  ManualClock clock;
  Engine together(clock);
  Engine one_by_one(clock);
  together.Use(MixedRules());
  one_by_one.Use(MixedRules());
  Random random(7);
  int denied = 0;
  for (int round = 0; round < 2000; ++round) {
    clock.Advance(SomeTime(random));
    const std::size_t size = 1 + Below(random, 70);  // more than one batch of the store, too
    std::vector<std::string> keys(size);
    std::vector<std::array<Field, 1>> headers(size);
    std::vector<LimitRequest> requests(size);
    for (std::size_t i = 0; i < size; ++i) {
      keys[i] = std::to_string(Below(random, 12));
      headers[i] = {{{"K", keys[i]}}};
      requests[i] = {.method = "GET",
                     .target = Below(random, 4) == 0 ? "/narrow" : "/",
                     .headers = headers[i],
                     .look = Below(random, 8) == 0};
    }
    std::vector<Outcome> outcomes(size);
    together.limiter().Check(requests, outcomes);
    for (std::size_t i = 0; i < size; ++i) {
      Outcome alone;
      one_by_one.limiter().Check(requests[i], alone);
      ASSERT_EQ(outcomes[i].answer, alone.answer);
      ASSERT_EQ(outcomes[i].retry_after, alone.retry_after);
      ASSERT_EQ(outcomes[i].decisive, alone.decisive);
      ASSERT_EQ(outcomes[i].claims.size(), alone.claims.size());
      for (std::size_t c = 0; c < alone.claims.size(); ++c) {
        ASSERT_EQ(outcomes[i].claims[c].decision, alone.claims[c].decision) << c;
        ASSERT_EQ(outcomes[i].claims[c].receipt.units, alone.claims[c].receipt.units) << c;
      }
      denied += alone.allowed() ? 0 : 1;
    }
  }
  EXPECT_GT(denied, 1000);
}

TEST(BlocksInShadowTest, AShadowRuleRecordsWhatItWouldDenyInForce) {
  for (const bool charge_denied : {false, true}) {
    SCOPED_TRACE(charge_denied);
    ManualClock clock;
    Engine enforced(clock);
    Engine shadowed(clock);
    Rule rule = KeyedRule("r", Bucket(3, 1s, 3), 500ms);
    rule.charge_denied = charge_denied;
    enforced.Use({rule});
    rule.mode = RuleMode::kShadow;
    shadowed.Use({rule});
    Random random(11);
    int denied = 0;
    for (int i = 0; i < 20'000; ++i) {
      if (Below(random, 6) == 0) clock.Advance(SomeTime(random));
      const std::string key(1, static_cast<char>('a' + Below(random, 3)));
      const std::uint64_t cost = Below(random, 5);
      const Outcome real = enforced.Ask(key, cost);
      const Outcome told = shadowed.Ask(key, cost);
      EXPECT_TRUE(told.allowed());
      ASSERT_EQ(told.claims[0].decision, real.claims[0].decision);
      ASSERT_EQ(told.claims[0].receipt.units, real.claims[0].receipt.units);
      denied += real.allowed() ? 0 : 1;
    }
    EXPECT_GT(denied, 1000);
  }
}

}  // namespace
}  // namespace sluice
