// Two nodes, each with a store of its own, on one server: together they admit what one would.
//
// SLUICE_SHARED_SEED=N draws other interleavings.
#include <gmock/gmock.h>
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

// One of each algorithm that admits so many, of which none is paid back during a test.
std::vector<std::pair<std::string, Limit>> OneOfEach(std::int64_t units) {
  const auto burst = static_cast<std::uint64_t>(units);
  return {
      {"token", *token_bucket::MakeLimit({1, 1h}, burst)},
      {"leaky", *leaky_bucket::MakeLimit({1, 1h}, burst - 1, 1h * units)},
      {"fixed", *fixed_window::MakeLimit(units, 24h * 365)},
      {"first-hit", *fixed_window::MakeLimit(units, 1h, fixed_window::Align::kFirstHit)},
      {"counter", *sliding_window_counter::MakeLimit(units, 24h * 365)},
      {"strict", *sliding_window_strict::MakeLimit(units, 1h, 16)},
      {"log", *sliding_window_log::MakeLimit(units, 1h, true)},
      {"calendar", *calendar::MakeLimit(units, calendar::Period::kYear, "Europe/Berlin")},
      {"slots", *concurrency::MakeLimit(units, 1h)},
  };
}

class RedisStoreSharedTest : public ::testing::Test {
 protected:
  RedisStoreSharedTest() { RecordProperty("seed", static_cast<int>(Seed())); }

  // Asks that often, by turns of random length on random nodes, without waiting in between.
  std::vector<std::unique_ptr<Request>> AskAtRandom(const Want& want, std::size_t times) {
    std::vector<std::unique_ptr<Request>> requests;
    std::vector<std::vector<Request*>> of_node(nodes_.size());
    while (requests.size() < times) {
      const std::size_t node = random_() % nodes_.size();
      std::vector<Request*> turn;
      for (std::size_t i = 1 + random_() % 40; i > 0 && requests.size() < times; --i) {
        requests.push_back(std::make_unique<Request>(want));
        turn.push_back(requests.back().get());
      }
      nodes_[node]->Send(turn);
      of_node[node].insert(of_node[node].end(), turn.begin(), turn.end());
    }
    for (std::size_t node = 0; node < nodes_.size(); ++node) {
      EXPECT_TRUE(nodes_[node]->Await(of_node[node]));
    }
    return requests;
  }

  RedisServer server_;
  std::vector<std::unique_ptr<StoreOnLoop>> nodes_ = [&] {
    std::vector<std::unique_ptr<StoreOnLoop>> nodes;
    RedisStoreOptions options = ToSocket(server_);
    options.breaker.failures = 1'000'000;  // which would leave the server alone
    for (int i = 0; i < 2; ++i) nodes.push_back(std::make_unique<StoreOnLoop>(options));
    return nodes;
  }();
  std::mt19937 random_{Seed()};
};

TEST_F(RedisStoreSharedTest, NodesByTurnsCountTogether) {
  for (const auto& [name, limit] : OneOfEach(5)) {
    SCOPED_TRACE(name);
    const Want want{.key = Key(name, "ann"), .limit = nodes_[0]->Prepare(limit)};
    for (std::uint64_t asked = 1; asked <= 7; ++asked) {
      Request request(want);
      nodes_[asked % 2]->Ask(request);
      EXPECT_TRUE(request.status().ok()) << request.status();
      EXPECT_EQ(request.allowed(), asked <= 5);
      EXPECT_EQ(request.decision().remaining, asked <= 5 ? 5 - asked : 0);
    }
  }
}

TEST_F(RedisStoreSharedTest, WhateverTheOrderTheyAdmitExactlyTheLimit) {
  for (const auto& [name, limit] : OneOfEach(100)) {
    SCOPED_TRACE(name);
    const Want want{.key = Key(name, "ann"), .limit = nodes_[0]->Prepare(limit)};
    const auto requests = AskAtRandom(want, 400);
    std::size_t admitted = 0;
    for (const auto& request : requests) {
      ASSERT_TRUE(request->status().ok()) << request->status();
      admitted += request->allowed() ? 1 : 0;
    }
    EXPECT_EQ(admitted, 100u);
  }
}

TEST_F(RedisStoreSharedTest, WhatOneGivesBackTheOtherMayTake) {
  for (const auto& [name, limit] : OneOfEach(10)) {
    SCOPED_TRACE(name);
    const LimitPtr prepared = nodes_[0]->Prepare(limit);
    Request all({.key = Key(name, "ann"), .limit = prepared, .cost = 10});
    nodes_[0]->Ask(all);
    ASSERT_TRUE(all.allowed()) << all.status();
    nodes_[0]->Undo(all, 10);
    EXPECT_TRUE(
        nodes_[0]->AwaitThat([&](const RedisCounters& c) { return c.undos_waiting.value() == 0; }));
    Request other({.key = Key(name, "ann"), .limit = prepared, .cost = 10});
    nodes_[1]->Ask(other);
    EXPECT_TRUE(other.allowed()) << other.status();
  }
}

// A new generation of rules on one node, with the same numbers.
TEST_F(RedisStoreSharedTest, AReloadOnOneNodeBeginsNoNewCounter) {
  const Limit limit = *token_bucket::MakeLimit({5, 1min}, 5);
  LimitPtr first = nodes_[0]->Prepare(limit);
  LimitPtr second = nodes_[1]->Prepare(limit);
  std::size_t admitted = 0;
  for (int i = 0; i < 5; ++i) {
    Request a({.key = Key("api", "ann"), .limit = first});
    Request b({.key = Key("api", "ann"), .limit = second});
    nodes_[0]->Ask(a);
    nodes_[1]->Ask(b);
    admitted += (a.allowed() ? 1 : 0) + (b.allowed() ? 1 : 0);
    second = nodes_[1]->Prepare(limit);
  }
  EXPECT_EQ(admitted, 5u);
}

// Answers that come too late, and connections that end at any moment: what was admitted is given
// back by who was told, and all else by the store.
TEST_F(RedisStoreSharedTest, AfterAnyFailureNoSlotIsHeldByNobody) {
  const Want want{.key = Key("exports", "ann"),
                  .limit = nodes_[0]->Prepare(*concurrency::MakeLimit(30, 0s))};
  std::size_t late = 0;
  std::size_t lost = 0;
  for (int round = 0; round < 40; ++round) {
    for (const auto& node : nodes_) {
      EXPECT_TRUE(node->AwaitThat([&](const RedisCounters&) { return node->health().up; }));
    }
    std::vector<std::vector<std::unique_ptr<Request>>> asked(nodes_.size());
    const bool pauses = random_() % 2 == 0;
    if (pauses) server_.Pause();
    for (std::size_t node = 0; node < nodes_.size(); ++node) {
      for (std::size_t i = random_() % 40; i > 0; --i) {
        asked[node].push_back(std::make_unique<Request>(want));
        nodes_[node]->Send({asked[node].back().get()}, 5ms * (1 + random_() % 8));
      }
    }
    if (pauses) {
      // Some are late by then, and others not. One may have given up the connection, from which the
      // server reads all the same.
      const std::size_t node = random_() % nodes_.size();
      if (!asked[node].empty()) {
        EXPECT_TRUE(nodes_[node]->Await({asked[node].front().get()}));
      }
      if (random_() % 2 == 0) nodes_[random_() % nodes_.size()]->Pass(30s);
      server_.Resume();
    }
    std::size_t admitted = 0;
    for (std::size_t node = 0; node < nodes_.size(); ++node) {
      for (const auto& request : asked[node]) {
        ASSERT_TRUE(nodes_[node]->Await({request.get()}));
        const absl::StatusCode code = request->status().code();
        late += code == absl::StatusCode::kDeadlineExceeded ? 1 : 0;
        lost += code == absl::StatusCode::kUnavailable ? 1 : 0;
        admitted += request->allowed() ? 1 : 0;
      }
    }
    for (std::size_t node = 0; node < nodes_.size(); ++node) {
      for (const auto& request : asked[node]) {
        if (request->allowed()) nodes_[node]->Undo(*request, 1);
      }
    }
    EXPECT_LE(admitted, 30u);
  }
  EXPECT_GT(late, 0u);
  EXPECT_GT(lost, 0u);
  std::string name;
  AppendKeyName({}, KeyKind::kSlots, want.key, &name);
  EXPECT_TRUE(nodes_[0]->AwaitThat([&](const RedisCounters&) {
    for (const auto& node : nodes_) node->Pass(2s);
    const bool done = std::ranges::all_of(
        nodes_, [](const auto& node) { return node->counters().undos_waiting.value() == 0; });
    return done && server_.Ask({"EXISTS", name}).integer() == 0;
  }));
}

// Of a bucket that pays back while it is asked: in no stretch more than its header promises. An
// admission lies between asking and the answer, so what was both asked and answered within a
// stretch was admitted within it.
TEST_F(RedisStoreSharedTest, NoStretchHasMoreThanTheBucketPromises) {
  constexpr int kBurst = 20;
  constexpr auto kInterval = 2ms;
  const Want want{.key = Key("api", "ann"),
                  .limit = nodes_[0]->Prepare(*token_bucket::MakeLimit({1, kInterval}, kBurst))};
  std::vector<std::pair<Time, Time>> admitted;
  const Time end = SteadyNow() + 300ms;
  while (SteadyNow() < end) {
    for (const auto& request : AskAtRandom(want, 20)) {
      ASSERT_TRUE(request->status().ok()) << request->status();
      if (request->allowed()) {
        admitted.emplace_back(request->asked(), request->asked() + request->waited());
      }
    }
  }
  EXPECT_GT(admitted.size(), std::size_t{kBurst});
  for (const auto& [begin, unused] : admitted) {
    std::vector<Time> answers;
    for (const auto& [asked, answered] : admitted) {
      if (asked >= begin) answers.push_back(answered);
    }
    std::ranges::sort(answers);
    for (std::size_t i = 0; i < answers.size(); ++i) {
      // One more, for the clocks: ours does not step, and the server's is cut to microseconds.
      const auto most = kBurst + (answers[i] - begin) / kInterval + 1;
      ASSERT_LE(static_cast<std::int64_t>(i) + 1, most) << "in " << (answers[i] - begin).count();
    }
  }
}

}  // namespace
}  // namespace sluice::redis
