// What leases.h promises, on random traces of several nodes on one store: after every unit that is
// spent, over every stretch that ends with it, net of what was undone until then. In between
// requests that ask the store alone, requests that put back or undo what they took, leases whose
// answer is lost, new generations of rules, and nodes whose clocks are slower than the server's.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "sluice/algorithm/testing/trace.h"
#include "sluice/store/lease/leases.h"
#include "sluice/store/memory/memory_store.h"
#include "sluice/store/testing/shared_store.h"

namespace sluice {
namespace {

using namespace std::chrono_literals;
using testing::Random;

constexpr Now kStart{Time{std::chrono::hours{1}}, WallTime{std::chrono::hours{24 * 365 * 56}}};
constexpr std::string_view kKey = "hot";

struct Spent {
  Time at;  // by the server's clock
  std::uint64_t units;
};

// Whether the stretch from `first` to the last of `spent` keeps the bound, having `units`.
using Bound = std::function<bool(Time first, Time last, std::uint64_t units)>;

Bound BucketBound(std::int64_t count, Duration period, std::uint64_t burst) {
  return [=](Time first, Time last, std::uint64_t units) {
    return (static_cast<std::int64_t>(units) - static_cast<std::int64_t>(burst)) * period.count() <=
           count * (last - first).count();
  };
}

Bound SlidingBound(std::uint64_t limit, Duration window) {
  return [=](Time first, Time last, std::uint64_t units) {
    return last - first >= window || units <= limit;
  };
}

// Of the wall clock, which runs with the steady one.
Bound FixedBound(std::uint64_t limit, Duration window) {
  return [=](Time first, Time last, std::uint64_t units) {
    const auto number = [window](Time at) {
      return (at - kStart.steady + kStart.wall.time_since_epoch()) / window;
    };
    return number(first) != number(last) || units <= limit;
  };
}

struct Totals {
  std::uint64_t leased = 0;  // units that were spent of leases
  std::uint64_t alone = 0;   // ... and by asking the store
  std::uint64_t undone = 0;
  std::uint64_t generations = 0;
  int broken = 0;  // traces
};

class Trace {
 public:
  Trace(const Limit& limit, Duration length, const Bound& bound, std::uint64_t seed)
      : random_(seed), bound_(bound), length_(length), limit_window_(WindowOf(limit)) {
    auto opened = MemoryStore::Open({.max_keys = 1'000}, kStart);
    EXPECT_TRUE(opened.ok()) << opened.status();
    counters_ = *std::move(opened);
    for (int i = 0; i < 3; ++i) {
      nodes_.push_back(std::make_unique<Node>(*counters_, random_.Below(1'000), leased_));
    }
    auto prepared = nodes_[0]->store.Prepare(limit);
    EXPECT_TRUE(prepared.ok()) << prepared.status();
    limit_ = *std::move(prepared);
    const auto size = LeaseSizeOf(limit_->limit(), 0, length);
    EXPECT_TRUE(size.has_value());
    terms_ = {.limit = limit_, .size = *size};
  }
  ~Trace() {
    for (auto& node : nodes_) node->store.Fail(absl::CancelledError(""));
  }
  Trace(const Trace&) = delete;
  Trace& operator=(const Trace&) = delete;

  void Run(Totals& totals) {
    for (int step = 0; step < 600; ++step) Step();
    totals.leased += leased_units_;
    totals.alone += alone_units_;
    totals.undone += undone_units_;
    totals.generations += generation_;
    totals.broken += holds_ ? 0 : 1;
    for (const auto& node : nodes_) {
      const LeaseCounters& counted = node->leases.counters();
      EXPECT_GE(counted.units.value() + counted.put_back.value(),
                counted.taken.value() + counted.returned.value());
    }
  }

 private:
  struct Node {
    Node(Store& counters, std::uint64_t slow_ppm, SharedLeases& leased)
        : slow(static_cast<std::int64_t>(slow_ppm)),
          store(counters, kStart, &leased),
          leases(store, clock, {.keys = 4, .wake = [this](Time at) { wake_at = at; }}) {}

    // Slower than the server's.
    void SetClock(Duration passed) {
      clock.Set(testing::After(kStart, passed - passed / 1'000'000 * slow));
    }

    const std::int64_t slow;
    Time wake_at = Time::max();
    ManualClock clock{kStart};
    SharedStore store;
    Leases leases;
  };
  struct Alone {
    RemoteClaim claim;
    RemoteGroup group;
  };
  // What somebody took, and may give back.
  struct Took {
    Node* node;
    std::size_t spent;
    std::uint64_t generation;
    std::uint64_t lease;  // 0: of the store
    Receipt receipt;
  };

  [[nodiscard]] Leases::Name Name() const {
    return {.key = counters_->hash_key()(kKey), .limit = generation_ + 1};
  }
  [[nodiscard]] Now ServerNow() const { return testing::After(kStart, passed_); }

  void Step() {
    Node& node = *nodes_[random_.Below(nodes_.size())];
    switch (random_.Below(16)) {
      case 0:
      case 1:
        node.store.Answer(ServerNow());
        break;
      case 2:
        if (random_.Chance(30))
          node.store.Fail(absl::DeadlineExceededError(""), random_.Chance(50));
        break;
      case 3:
      case 4:
        GiveSomethingBack();
        break;
      case 5:
        if (random_.Chance(15)) NewGeneration();
        break;
      case 6:
        Pass(Some(limit_window_));
        break;
      case 7:
      case 8:
      case 9:
        Pass(Some(length_ / 2));
        break;
      case 10:
        Drain();
        break;
      default:  // so much that it leases, and keeps something
        for (std::uint64_t i = random_.Below(14); i > 0; --i) Want(node, 1 + random_.Below(2));
        if (random_.Chance(50)) node.store.Answer(ServerNow());
        break;
    }
  }

  [[nodiscard]] Duration Some(Duration most) {
    return Duration{
        static_cast<std::int64_t>(random_.Below(static_cast<std::uint64_t>(most.count())))};
  }

  // All that is to be had at this instant, from leases and from the store.
  void Drain() {
    for (const auto& node : nodes_) {
      std::uint64_t before = 0;
      do {
        before = leased_units_ + alone_units_;
        for (int i = 0; i < 8; ++i) Want(*node, 1);
        node->store.Answer(ServerNow());
      } while (leased_units_ + alone_units_ > before);
    }
  }

  void Pass(Duration by) {
    passed_ += by;
    for (auto& node : nodes_) {
      node->SetClock(passed_);
      node->store.SetNow(ServerNow());
      // Now and then late.
      if (node->clock.Read().steady >= node->wake_at && random_.Chance(80)) {
        node->wake_at = Time::max();
        node->leases.OnTime(node->clock.Read().steady);
      }
    }
  }

  void Want(Node& node, std::uint64_t units) {
    const auto taken = node.leases.Take(Name(), kKey, terms_, units, node.clock.Read().steady);
    if (taken) {
      leased_units_ += units;
      Spend(node, units, taken->lease, taken->receipt);
      return;
    }
    auto alone = std::make_shared<Alone>();
    alone->claim = {
        .key = kKey, .limit = limit_.get(), .cost = units, .decision = {}, .receipt = {}};
    alone->group = {.claims = std::span(&alone->claim, 1)};
    ASSERT_TRUE(node.store
                    .Apply(alone->group, Time::max(),
                           [this, &node, alone](const absl::Status& status) {
                             if (!status.ok() || !alone->group.allowed) return;
                             alone_units_ += alone->claim.receipt.units;
                             Spend(node, alone->claim.receipt.units, 0, alone->claim.receipt);
                           })
                    .ok());
  }

  void Spend(Node& node, std::uint64_t units, std::uint64_t lease, const Receipt& receipt) {
    const Time now = ServerNow().steady;
    if (spent_.empty() || spent_.back().at != now) spent_.push_back({now, 0});
    spent_.back().units += units;
    took_.push_back({&node, spent_.size() - 1, generation_, lease, receipt});
    std::uint64_t sum = 0;
    for (auto i = spent_.rbegin(); i != spent_.rend(); ++i) {
      sum += i->units;
      if (!bound_(i->at, spent_.back().at, sum)) holds_ = false;
    }
  }

  void GiveSomethingBack() {
    if (took_.empty()) return;
    const std::size_t which =
        took_.size() - 1 - random_.Below(std::min<std::size_t>(20, took_.size()));
    Took took = took_[which];
    took_.erase(took_.begin() + static_cast<std::ptrdiff_t>(which));
    undone_units_ += took.receipt.units;
    spent_[took.spent].units -= took.receipt.units;
    took.node->store.SetNow(ServerNow());
    if (took.lease == 0) {
      took.node->store.Undo({.key = kKey,
                             .limit = limit_.get(),
                             .cost = took.receipt.units,
                             .decision = {},
                             .receipt = took.receipt},
                            took.receipt.units);
      return;
    }
    Leases::Name name = Name();
    name.limit = took.generation + 1;
    took.node->leases.PutBack(name, kKey, terms_, took.lease, took.receipt);
  }

  // The same numbers under a new name.
  void NewGeneration() {
    ++generation_;
    for (auto& node : nodes_) node->leases.ReturnAll();
  }

  Random random_;
  const Bound& bound_;
  const Duration length_;
  const Duration limit_window_;
  Duration passed_{0};
  std::unique_ptr<MemoryStore> counters_;
  SharedLeases leased_;
  std::vector<std::unique_ptr<Node>> nodes_;
  std::shared_ptr<const RemoteLimit> limit_;
  LeaseTerms terms_;
  std::vector<Spent> spent_;
  std::vector<Took> took_;
  std::uint64_t generation_ = 0;
  std::uint64_t leased_units_ = 0;
  std::uint64_t alone_units_ = 0;
  std::uint64_t undone_units_ = 0;
  bool holds_ = true;
};

void Check(std::string_view name, const absl::StatusOr<Limit>& limit, Duration length,
           const Bound& bound) {
  SCOPED_TRACE(name);
  ASSERT_TRUE(limit.ok()) << limit.status();
  Totals totals;
  for (std::uint64_t seed = 1; seed <= 400; ++seed) {
    Trace(*limit, length, bound, seed).Run(totals);
  }
  EXPECT_EQ(totals.broken, 0);
  EXPECT_GT(totals.leased, 15'000u) << "nothing is shown about leases";
  EXPECT_GT(totals.alone, 5'000u);
  EXPECT_GT(totals.undone, 5'000u);
  EXPECT_GT(totals.generations, 500u);
  std::printf("%-14.*s %llu units of leases, %llu asked for alone, %llu undone\n",
              static_cast<int>(name.size()), name.data(),
              static_cast<unsigned long long>(totals.leased),
              static_cast<unsigned long long>(totals.alone),
              static_cast<unsigned long long>(totals.undone));
}

TEST(LeasesPropertyTest, EveryStretchKeepsTheBoundWhateverNodesHoldAndGiveBack) {
  Check("bucket", token_bucket::MakeLimit({100, 1s}, 100), 300ms, BucketBound(100, 1s, 100));
  Check("small bucket", token_bucket::MakeLimit({50, 100ms}, 80), 40ms, BucketBound(50, 100ms, 80));
  Check("log", sliding_window_log::MakeLimit(100, 1s, /*weighted=*/true), 400ms,
        SlidingBound(100, 1s));
  Check("strict", sliding_window_strict::MakeLimit(100, 1s), 400ms, SlidingBound(100, 1s));
  Check("fixed window", fixed_window::MakeLimit(100, 1s, fixed_window::Align::kClock), 400ms,
        FixedBound(100, 1s));
}

}  // namespace
}  // namespace sluice
