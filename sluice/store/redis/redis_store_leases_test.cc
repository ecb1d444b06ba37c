// Leases of two nodes from one server, in real time: whenever what is leased is spent while it is
// good, no stretch has more than the limit promises.
//
// SLUICE_SHARED_SEED=N draws other traces.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "sluice/base/steady_now.h"
#include "sluice/net/testing/redis_server.h"
#include "sluice/store/redis/redis_store.h"
#include "sluice/store/redis/testing/store_on_loop.h"

namespace sluice::redis {
namespace {

using namespace std::chrono_literals;
using net::testing::RedisServer;
using testing::Key;
using testing::LimitPtr;
using testing::Request;
using testing::StoreOnLoop;
using testing::ToSocket;
using testing::Want;

unsigned Seed() {
  const char* given = std::getenv("SLUICE_SHARED_SEED");
  return given == nullptr ? 1 : static_cast<unsigned>(std::strtoul(given, nullptr, 10));
}

class RedisStoreLeasesTest : public ::testing::Test {
 protected:
  // When some units were spent: at some moment from the first to the second.
  struct Spent {
    Time first;
    Time last;
    std::uint64_t units;
  };
  struct Held {
    std::unique_ptr<Request> request;
    std::size_t node;
    std::uint64_t left;
  };

  RedisStoreLeasesTest() { RecordProperty("seed", static_cast<int>(Seed())); }

  std::uint64_t Below(std::uint64_t n) { return random_() % n; }

  void Undo(const Held& held, std::uint64_t units) {
    nodes_[held.node]->Undo(*held.request, units);
  }

  // One unit, asked for by itself.
  void Charge(const Want& want) {
    Request request(want);
    nodes_[Below(2)]->Ask(request);
    ASSERT_TRUE(request.status().ok()) << request.status();
    if (request.allowed()) {
      spent_.push_back({request.asked(), request.asked() + request.waited(), 1});
    }
  }
  void Lease(Want want) {
    want.cost = 1 + Below(5);
    want.lease = 1ms * (1 + Below(30));
    const std::size_t node = Below(2);
    auto request = std::make_unique<Request>(want);
    nodes_[node]->Ask(*request);
    ASSERT_TRUE(request->status().ok()) << request->status();
    if (!request->allowed()) return;
    ASSERT_EQ(request->claim().receipt.units, want.cost);
    ASSERT_GT(request->claim().good_for, 0ms);
    ASSERT_LE(request->claim().good_for, want.lease);
    ++leases_;
    held_.push_back({std::move(request), node, want.cost});
  }
  [[nodiscard]] static Time GoodUntil(const Held& held) {
    return held.request->asked() + held.request->claim().good_for;
  }
  // Of one that is good: some or all that is left. Some goes back; of what is over, if anything.
  void Spend() {
    if (held_.empty()) return;
    const std::size_t which = Below(held_.size());
    Held& held = held_[which];
    const Time now = SteadyNow();
    if (now < GoodUntil(held)) {
      const std::uint64_t units = Below(2) == 0 ? 1 : held.left;
      held.left -= units;
      spent_.push_back({now, now, units});
      if (held.left > 0 && Below(8) == 0) {
        Undo(held, 1);
        --held.left;
      }
      if (held.left > 0) return;
    }
    if (held.left > 0 && Below(4) > 0) Undo(held, held.left);
    held_.erase(held_.begin() + static_cast<std::ptrdiff_t>(which));
  }

  // Leases, a wait that mostly lasts until one of them is nearly over, and then all there is: what
  // was leased, and whatever else the limit has for as long as it likes.
  void Round(const Want& want) {
    for (std::uint64_t i = 1 + Below(5); i > 0 && !HasFatalFailure(); --i) Lease(want);
    if (held_.empty()) return Charge(want);
    const Time until = GoodUntil(held_[Below(held_.size())]) - 1ms;
    if (Below(4) == 0) Charge(want);
    while (Below(4) > 0 && SteadyNow() < until) {
      while (SteadyNow() < until) {
      }
    }
    while (!held_.empty()) Spend();
    const Time end = SteadyNow() + 1ms * Below(60);
    while (SteadyNow() < end && !HasFatalFailure()) Charge(want);
  }

  void Run(const std::string& name, const Limit& limit) {
    spent_.clear();
    leases_ = 0;
    const Want want{.key = Key(name, "ann"), .limit = nodes_[0]->Prepare(limit)};
    const Time end = SteadyNow() + 1s;
    while (SteadyNow() < end && !HasFatalFailure()) Round(want);
    EXPECT_GT(leases_, 10);
    EXPECT_GT(spent_.size(), 20U);
  }

  // most(t): what may be spent within t.
  template <typename Most>
  void Check(const Most& most) {
    for (const Spent& begin : spent_) {
      std::vector<std::pair<Time, std::uint64_t>> after;
      for (const Spent& other : spent_) {
        if (other.first >= begin.first) after.emplace_back(other.last, other.units);
      }
      std::ranges::sort(after);
      std::uint64_t units = 0;
      for (const auto& [last, some] : after) {
        units += some;
        ASSERT_LE(units, most(last - begin.first)) << "in " << (last - begin.first).count();
      }
    }
  }

  RedisServer server_;
  std::vector<std::unique_ptr<StoreOnLoop>> nodes_ = [&] {
    std::vector<std::unique_ptr<StoreOnLoop>> nodes;
    for (int i = 0; i < 2; ++i) nodes.push_back(std::make_unique<StoreOnLoop>(ToSocket(server_)));
    return nodes;
  }();
  std::mt19937 random_{Seed()};
  std::vector<Spent> spent_;
  std::vector<Held> held_;
  int leases_ = 0;
};

TEST_F(RedisStoreLeasesTest, NoStretchHasMoreThanTheBucketPromises) {
  constexpr auto kInterval = 4ms;
  constexpr std::uint64_t kBurst = 20;
  Run("bucket", *token_bucket::MakeLimit({1, kInterval}, kBurst));
  // One more, for the clocks: ours does not step, and the server's is cut to microseconds.
  Check([&](Duration t) { return kBurst + static_cast<std::uint64_t>(t / kInterval) + 1; });
}

TEST_F(RedisStoreLeasesTest, NoWindowOfALogOrStrictCounterHasMoreThanTheLimit) {
  constexpr std::uint64_t kLimit = 20;
  constexpr auto kWindow = 80ms;
  // As above: so near to a window's end nobody can tell.
  const auto most = [&](Duration t) { return t < kWindow - 1ms ? kLimit : ~std::uint64_t{0}; };
  Run("log", *sliding_window_log::MakeLimit(kLimit, kWindow, true));
  Check(most);
  Run("strict", *sliding_window_strict::MakeLimit(kLimit, kWindow, 8));
  Check(most);
}

TEST_F(RedisStoreLeasesTest, WhatOneNodeDoesNotSpendTheOtherLeases) {
  const LimitPtr limit = nodes_[0]->Prepare(*token_bucket::MakeLimit({1, 1h}, 10));
  Request first({.key = Key("api", "ann"), .limit = limit, .cost = 8, .lease = 100ms});
  nodes_[0]->Ask(first);
  ASSERT_TRUE(first.allowed()) << first.status();
  EXPECT_EQ(first.claim().good_for, 100ms);
  Request second({.key = Key("api", "ann"), .limit = limit, .cost = 7, .lease = 100ms});
  nodes_[1]->Ask(second);
  EXPECT_FALSE(second.allowed());
  EXPECT_EQ(second.decision().remaining, 1U);
  EXPECT_EQ(second.claim().good_for, 0ms);
  for (const std::uint64_t part : {1, 4, 1}) nodes_[0]->Undo(first, part);
  EXPECT_TRUE(
      nodes_[0]->AwaitThat([](const RedisCounters& c) { return c.undos_waiting.value() == 0; }));
  nodes_[1]->Ask(second);
  EXPECT_TRUE(second.allowed()) << second.decision().remaining;
}

}  // namespace
}  // namespace sluice::redis
