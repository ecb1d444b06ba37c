// What limiter/remote_checks.h promises, on random traces.
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <optional>
#include <random>

#include "sluice/limiter/limiter_fixture.h"
#include "sluice/store/testing/shared_store.h"

namespace sluice {
namespace {

using Random = std::mt19937_64;

std::uint64_t Below(Random& random, std::uint64_t n) { return random() % n; }

std::unique_ptr<MemoryStore> OpenStore(const Clock& clock) {
  auto opened = MemoryStore::Open(
      {.max_keys = 10'000, .hash_key = HashKey(HashKind::kSipHash13, {1, 2, 3})}, clock.Read());
  EXPECT_TRUE(opened.ok()) << opened.status();
  return *std::move(opened);
}

// A node: a limiter with a store of its own, and with the counters that it shares, if there are
// any.
class Node {
 public:
  Node(const Clock& clock, Store* counters) : clock_(clock), store_(OpenStore(clock)) {
    if (counters != nullptr) shared_.emplace(*counters, clock.Read());
  }

  void Use(const std::vector<Rule>& rules) {
    auto set = std::make_shared<const RuleSet>(rules, RuleSetOptions{}, ++generation_);
    auto active = ActiveRules::Make(std::move(set), *store_, clock_, shared_ ? &*shared_ : nullptr);
    ASSERT_TRUE(active.ok()) << active.status();
    limiter_ = std::make_unique<Limiter>(Limiter::Parts{.store = *store_,
                                                        .hash_key = store_->hash_key(),
                                                        .clock = clock_,
                                                        .observer = nullptr,
                                                        .remote = shared_ ? &*shared_ : nullptr},
                                         *active);
  }

  // Asks, and has the shared counters answer at once.
  void Ask(const LimitRequest& request, Outcome& outcome) {
    bool done = limiter_->Check(request, outcome, [&done] { done = true; });
    while (shared_ && shared_->waiting() > 0) shared_->Answer(clock_.Read());
    ASSERT_TRUE(done);
  }
  Limiter& limiter() { return *limiter_; }
  SharedStore& shared() { return *shared_; }

 private:
  const Clock& clock_;
  std::unique_ptr<MemoryStore> store_;
  std::optional<SharedStore> shared_;
  std::unique_ptr<Limiter> limiter_;
  std::uint64_t generation_ = 0;
};

Limit SomeLimit(Random& random) {
  const Limit limits[] = {Bucket(3, 1s, 3),
                          *leaky_bucket::MakeLimit({.count = 3, .period = 1s}, 2, 1s),
                          Window(3, 1s),
                          *sliding_window_counter::MakeLimit(3, 1s),
                          *sliding_window_log::MakeLimit(3, 1s, true),
                          *sliding_window_strict::MakeLimit(3, 1s),
                          Slots(3),
                          Slots(3, 2s)};
  return limits[Below(random, std::size(limits))];
}

// Up to three rules. Blocks only where all count in one store: a denial in memory spares the shared
// one, so that a block that would begin there at the same time does not.
std::vector<Rule> SomeRules(Random& random) {
  const bool mixed = Below(random, 2) == 0;
  std::vector<Rule> rules;
  const std::uint64_t count = 1 + Below(random, 3);
  for (std::uint64_t i = 0; i < count; ++i) {
    Rule rule =
        MakeRule("r" + std::to_string(i), HeaderSource(i == 1 ? "Other" : "K"), SomeLimit(random));
    if (mixed && Below(random, 2) == 0) rule.scope = RuleScope::kNode;
    if (Below(random, 4) == 0) rule.mode = RuleMode::kShadow;
    if (Below(random, 4) == 0) rule.charge_denied = true;
    if (!mixed && Below(random, 3) == 0) rule.block_for = 1500ms;
    rules.push_back(rule);
  }
  return rules;
}

// Whoever asks a node that shares its counters, alone, hears what a node without others says.
class TwinNodes {
 public:
  explicit TwinNodes(Random& random) : random_(random) {
    const std::vector<Rule> rules = SomeRules(random);
    mixed_ = std::any_of(rules.begin(), rules.end(),
                         [](const Rule& rule) { return rule.scope == RuleScope::kNode; });
    alone_.Use(rules);
    sharing_.Use(rules);
  }

  void Step() {
    clock_.Advance(std::chrono::microseconds(Below(random_, 3) * Below(random_, 500'000)));
    sharing_.shared().SetNow(clock_.Read());
    Ask();
    if (Below(random_, 3) == 0) GiveBack();
  }
  [[nodiscard]] int denied() const { return denied_; }
  [[nodiscard]] int spared() const { return spared_; }

 private:
  void Ask() {
    const std::string key(1, static_cast<char>('a' + Below(random_, 2)));
    const std::vector<Field> headers = {{"K", key}, {"Other", "o"}};
    const LimitRequest request{.method = "GET",
                               .target = "/",
                               .headers = headers,
                               .cost = Below(random_, 5),
                               .look = Below(random_, 6) == 0};
    Pair pair;
    alone_.Ask(request, pair.alone);
    sharing_.Ask(request, pair.sharing);
    Compare(pair, request.look);
    denied_ += pair.alone.allowed() ? 0 : 1;
    if (pair.alone.allowed() && pair.sharing.allowed()) held_.push_back(std::move(pair));
  }

  struct Pair {
    Outcome alone;
    Outcome sharing;
  };

  void Compare(const Pair& pair, bool look) {
    ASSERT_EQ(pair.alone.allowed(), pair.sharing.allowed());
    bool all_asked = true;
    for (std::size_t i = 0; i < pair.alone.results.size(); ++i) {
      const RuleResult& result = pair.sharing.results[i];
      if (result.answered_by == AnsweredBy::kNobody) {
        all_asked = false;
        ++spared_;
        continue;
      }
      const Claim& alone = *pair.alone.ClaimOf(pair.alone.results[i]);
      const Claim& sharing = *pair.sharing.ClaimOf(result);
      Decision expected = alone.decision;
      if (result.rule->mode == RuleMode::kShadow && result.rule->block_for > 0s) {
        // Inside of its block it was charged and given back again; nobody is shown this.
        expected.reset_after = sharing.decision.reset_after;
      }
      EXPECT_EQ(sharing.decision, expected) << result.rule->name << " look " << look;
      EXPECT_EQ(sharing.receipt.units, alone.receipt.units) << result.rule->name;
    }
    if (!all_asked) return;
    EXPECT_EQ(pair.sharing.answer, pair.alone.answer);
    EXPECT_EQ(pair.sharing.retry_after, pair.alone.retry_after);
    EXPECT_EQ(pair.sharing.decisive, pair.alone.decisive);
  }

  void GiveBack() {
    if (held_.empty()) return;
    std::swap(held_[Below(random_, held_.size())], held_.back());
    Pair& pair = held_.back();
    // Where memory has given back what the shared counters denied, it gives back no more than is
    // safe for the keys of one lock (Receipt::undone_before): less than it otherwise would.
    if (!mixed_ && Below(random_, 2) == 0) {
      alone_.limiter().Undo(pair.alone);
      sharing_.limiter().Undo(pair.sharing);
    } else {
      alone_.limiter().Finish(pair.alone);
      sharing_.limiter().Finish(pair.sharing);
    }
    held_.pop_back();
  }

  Random& random_;
  ManualClock clock_;
  std::unique_ptr<MemoryStore> counters_ = OpenStore(clock_);
  Node alone_{clock_, nullptr};
  Node sharing_{clock_, counters_.get()};
  std::vector<Pair> held_;
  bool mixed_ = false;  // some rules count in memory
  int denied_ = 0;
  int spared_ = 0;
};

TEST(RemoteProperty, ANodeWithoutOthersSaysWhatItWouldSayWithCountersInMemory) {
  int denied = 0;
  int spared = 0;
  for (std::uint64_t seed = 1; seed <= 400 && !testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    TwinNodes nodes(random);
    for (int i = 0; i < 150 && !testing::Test::HasFailure(); ++i) nodes.Step();
    denied += nodes.denied();
    spared += nodes.spared();
  }
  EXPECT_GT(denied, 5'000);
  EXPECT_GT(spared, 500);
}

// Three nodes, whose answers come late, in any order of the nodes, or never, charged or not; and
// requests that are undone. Per stretch of time:
//
//   admitted by the shared counters, on all nodes   <=  burst + rate * (length)
//   admitted on one node, by whatever counters      <=  that of its own rule
//   admitted on one node while the store is silent  <=  that of its local limit
class Cluster {
 public:
  static constexpr std::int64_t kBurst = 6;
  static constexpr Duration kEach = 200ms;  // one more token

  explicit Cluster(Random& random) : random_(random) {
    Rule shared = MakeRule("shared", HeaderSource("K"), Bucket(1, kEach, kBurst));
    shared.limits[0].local = Bucket(1, 2 * kEach, kBurst / 2);
    Rule node = MakeRule("node", HeaderSource("K"), Bucket(1, kEach, kBurst - 1));
    node.scope = RuleScope::kNode;
    for (Member& member : members_) {
      member.node = std::make_unique<Node>(clock_, counters_.get());
      member.node->Use({shared, node});
    }
  }

  void Step() {
    clock_.Advance(std::chrono::milliseconds(Below(random_, 2) * Below(random_, 150)));
    Member& member = members_[Below(random_, members_.size())];
    member.node->shared().SetNow(clock_.Read());
    const std::uint64_t what = Below(random_, 10);
    if (what < 5) {
      Ask(member);
    } else if (what < 8) {
      member.node->shared().Answer(clock_.Read());
    } else if (what < 9) {
      member.node->shared().Fail(absl::DeadlineExceededError(""), Below(random_, 2) == 0);
    } else {
      UndoOne(member);
    }
  }

  void Check() {
    std::vector<Time> by_store;
    for (Member& member : members_) {
      std::vector<Time> all;
      std::vector<Time> local;
      for (const auto& call : member.calls) {
        if (!call->answered || !call->outcome.allowed() || call->undone) continue;
        const bool stored = call->outcome.results[0].answered_by == AnsweredBy::kStore;
        (stored ? by_store : local).push_back(call->outcome.now.steady);
        all.push_back(call->charged_at);
      }
      ExpectBound(local, kBurst / 2, 2 * kEach);
      ExpectBound(all, kBurst - 1, kEach);
      admitted_locally_ += local.size();
    }
    ExpectBound(by_store, kBurst, kEach);
    admitted_ += by_store.size();
  }
  [[nodiscard]] std::size_t admitted() const { return admitted_; }
  [[nodiscard]] std::size_t admitted_locally() const { return admitted_locally_; }

 private:
  struct Call {
    Outcome outcome;
    std::vector<Field> headers = {{"K", "ann"}};
    Time charged_at{};
    bool answered = false;
    bool undone = false;
  };
  struct Member {
    std::unique_ptr<Node> node;
    std::vector<std::unique_ptr<Call>> calls;
  };

  void Ask(Member& member) {
    Call& call = *member.calls.emplace_back(std::make_unique<Call>());
    call.charged_at = clock_.Read().steady;  // in memory
    call.answered =
        member.node->limiter().Check({.method = "GET", .target = "/", .headers = call.headers},
                                     call.outcome, [&call] { call.answered = true; });
  }

  // Of a request that has just been admitted: it did not take place.
  void UndoOne(Member& member) {
    if (member.calls.empty()) return;
    Call& call = *member.calls[Below(random_, member.calls.size())];
    if (!call.answered || !call.outcome.allowed() || call.undone) return;
    member.node->limiter().Undo(call.outcome);
    call.undone = true;
  }

  static void ExpectBound(std::vector<Time> times, std::int64_t burst, Duration each) {
    std::sort(times.begin(), times.end());
    for (std::size_t i = 0; i < times.size(); ++i) {
      for (std::size_t j = i; j < times.size(); ++j) {
        const auto passed = static_cast<std::int64_t>(j - i + 1);
        ASSERT_LE(passed, burst + (times[j] - times[i]) / each) << i << ".." << j;
      }
    }
  }

  Random& random_;
  ManualClock clock_;
  std::unique_ptr<MemoryStore> counters_ = OpenStore(clock_);
  std::array<Member, 3> members_;
  std::size_t admitted_ = 0;
  std::size_t admitted_locally_ = 0;
};

TEST(RemoteProperty, NoStretchAdmitsMoreThanItsLimitWhateverIsLateLostOrUndone) {
  std::size_t admitted = 0;
  std::size_t admitted_locally = 0;
  for (std::uint64_t seed = 1; seed <= 300 && !testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    Cluster cluster(random);
    for (int i = 0; i < 300; ++i) cluster.Step();
    cluster.Check();
    admitted += cluster.admitted();
    admitted_locally += cluster.admitted_locally();
  }
  EXPECT_GT(admitted, 5'000u);
  EXPECT_GT(admitted_locally, 1'000u);
}

}  // namespace
}  // namespace sluice
