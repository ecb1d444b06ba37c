// The store on a real server: what is asked is decided as in memory, goes out together, comes back
// once.
#include "sluice/store/redis/redis_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "sluice/net/testing/redis_server.h"
#include "sluice/store/redis/script_call.h"
#include "sluice/store/redis/testing/store_on_loop.h"

namespace sluice::redis {
namespace {

using namespace std::chrono_literals;
using net::testing::RedisServer;
using ::testing::HasSubstr;
using testing::Key;
using testing::LimitPtr;
using testing::Request;
using testing::StoreOnLoop;
using testing::ToSocket;
using testing::Want;

class RedisStoreTest : public ::testing::Test {
 protected:
  // Five, of which none is paid back during a test.
  LimitPtr Bucket(std::uint64_t burst = 5) {
    return store_.Prepare(*token_bucket::MakeLimit({1, 1h}, burst));
  }
  LimitPtr Slots(std::int64_t limit) { return store_.Prepare(*concurrency::MakeLimit(limit, 0s)); }
  bool Allowed(const Want& want) {
    Request request(want);
    store_.Ask(request);
    EXPECT_TRUE(request.status().ok()) << request.status();
    return request.allowed();
  }
  // How often the server has carried out that command.
  std::int64_t CallsOf(std::string_view command) {
    const std::string info(server_.Ask({"INFO", "commandstats"}).text());
    const std::string name = "cmdstat_" + std::string(command) + ":calls=";
    const std::size_t at = info.find(name);
    return at == std::string::npos ? 0 : std::stoll(info.substr(at + name.size()));
  }
  std::set<std::string> Keys() {
    const net::RedisReply reply = server_.Ask({"KEYS", "*"});
    std::set<std::string> keys;
    for (std::size_t i = 0; i < reply.size(); ++i) keys.emplace(reply[i].text());
    return keys;
  }

  RedisServer server_;
  StoreOnLoop store_{ToSocket(server_)};
};

TEST_F(RedisStoreTest, CountsUntilTheLimitAndTellsWhatIsLeft) {
  const Want want{.key = Key("api", "ann"), .limit = Bucket()};
  for (std::uint64_t left = 5; left-- > 0;) {
    Request request(want);
    store_.Ask(request);
    ASSERT_TRUE(request.status().ok()) << request.status();
    EXPECT_TRUE(request.allowed());
    EXPECT_EQ(request.decision().remaining, left);
    EXPECT_EQ(request.claim().receipt.units, 1u);
  }
  Request request(want);
  store_.Ask(request);
  EXPECT_TRUE(request.status().ok()) << request.status();
  EXPECT_FALSE(request.allowed());
  EXPECT_EQ(request.decision().verdict, Verdict::kLimited);
  EXPECT_GT(request.decision().retry_after, 0s);
  EXPECT_EQ(request.claim().receipt.units, 0u);
  EXPECT_TRUE(Allowed({.key = Key("api", "bob"), .limit = want.limit})) << "his own";
}

TEST_F(RedisStoreTest, ChargesAllClaimsOfARequestOrNone) {
  const Want wide{.key = Key("wide", "ann"), .limit = Bucket(3)};
  const Want narrow{.key = Key("narrow", "ann"), .limit = Bucket(1)};
  Request both({wide, narrow});
  store_.Ask(both);
  EXPECT_TRUE(both.allowed()) << both.status();
  store_.Ask(both);
  EXPECT_FALSE(both.allowed());
  EXPECT_TRUE(both.decision(0).allowed());
  EXPECT_FALSE(both.decision(1).allowed());
  EXPECT_EQ(both.claim(0).receipt.units, 0u);
  EXPECT_TRUE(Allowed(wide));
  EXPECT_TRUE(Allowed(wide));
  EXPECT_FALSE(Allowed(wide)) << "the denied one charged nothing";
}

TEST_F(RedisStoreTest, WhatIsAskedInOneTurnIsOneCall) {
  const LimitPtr limit = Bucket();
  EXPECT_TRUE(Allowed({.key = Key("api", "first"), .limit = limit}));
  std::vector<std::unique_ptr<Request>> requests;
  std::vector<Request*> all;
  for (int i = 0; i < 3 * 32 + 1; ++i) {
    requests.push_back(
        std::make_unique<Request>(Want{.key = Key("api", std::to_string(i)), .limit = limit}));
    all.push_back(requests.back().get());
  }
  const std::vector<Request*> some(all.begin(), all.begin() + 32);
  const std::int64_t before = CallsOf("evalsha");
  store_.AskAll(some);
  EXPECT_EQ(CallsOf("evalsha") - before, 1);
  store_.AskAll(all);
  EXPECT_EQ(CallsOf("evalsha") - before, 1 + 4);
  for (const Request* request : all) EXPECT_TRUE(request->allowed()) << request->status();
  EXPECT_EQ(store_.counters().groups.value(), 1u + 32 + 97);
  EXPECT_EQ(store_.counters().calls.value(), 1u + 1 + 4);
  std::uint64_t timed = 0;
  for (std::size_t i = 0; i < RedisHistogram::kBuckets; ++i) {
    timed += store_.counters().waits[i];
  }
  EXPECT_EQ(timed, 1u + 32 + 97);
}

TEST(RedisHistogramTest, EachIsInTheFirstBucketThatHoldsIt) {
  RedisHistogram times;
  Duration sum{0};
  for (const Duration bound : RedisHistogram::kBounds) {
    times.Add(bound);
    times.Add(bound + 1ns);
    sum += 2 * bound + 1ns;
  }
  times.Add(-5us);
  times.Add(24h);
  constexpr std::size_t kLast = RedisHistogram::kBuckets - 1;
  for (std::size_t i = 0; i <= kLast; ++i) EXPECT_EQ(times[i], 2u) << i;
  EXPECT_EQ(times.sum(), sum + 24h);
}

TEST_F(RedisStoreTest, KeysAreNamedByWhatLiesUnderThem) {
  const std::string key = Key("api", "ann");
  Request request({{.key = key, .limit = Bucket()},
                   {.key = key, .limit = Bucket(), .block = true},
                   {.key = key, .limit = Slots(1)}});
  store_.Ask(request);
  EXPECT_TRUE(request.allowed()) << request.status();
  std::set<std::string> expected;
  for (const KeyKind kind : {KeyKind::kCounter, KeyKind::kBlock, KeyKind::kSlots}) {
    std::string name;
    AppendKeyName({}, kind, key, &name);
    expected.insert(name);
  }
  EXPECT_EQ(Keys(), expected);
}

TEST_F(RedisStoreTest, OneWrongKeyHarmsNoOtherRequestOfItsCall) {
  const LimitPtr limit = Bucket(1);
  std::string wrong;
  AppendKeyName({}, KeyKind::kCounter, Key("api", "wrong"), &wrong);
  server_.Ask({"HSET", wrong, "a", "b"});
  Request before(Want{.key = Key("api", "before"), .limit = limit});
  Request bad(
      {{.key = Key("api", "good"), .limit = limit}, {.key = Key("api", "wrong"), .limit = limit}});
  Request after(Want{.key = Key("api", "after"), .limit = limit});
  store_.AskAll({&before, &bad, &after});
  EXPECT_TRUE(before.allowed()) << before.status();
  EXPECT_TRUE(after.allowed()) << after.status();
  EXPECT_EQ(bad.status().code(), absl::StatusCode::kDataLoss) << bad.status();
  EXPECT_THAT(std::string(bad.status().message()), HasSubstr("WRONGTYPE"));
  EXPECT_EQ(bad.claim(0).receipt.units, 0u);
  EXPECT_TRUE(Allowed({.key = Key("api", "good"), .limit = limit})) << "nothing of it was charged";
  EXPECT_EQ(store_.counters().calls.value(), 2u);
}

TEST_F(RedisStoreTest, UndoGivesBackOnceWhatWasTaken) {
  const Want want{.key = Key("api", "ann"), .limit = Bucket(), .cost = 4};
  Request request(want);
  store_.Ask(request);
  ASSERT_TRUE(request.allowed()) << request.status();
  store_.Undo(request, 3);
  Request next({.key = want.key, .limit = want.limit});
  store_.Ask(next);
  EXPECT_EQ(next.decision().remaining, 3u) << next.status();
  EXPECT_EQ(store_.counters().undos.value(), 1u);
}

TEST_F(RedisStoreTest, UndosOfOneTurnGoTogetherAndBeforeWhatIsAsked) {
  const Want want{.key = Key("exports", "ann"), .limit = Slots(40)};
  std::vector<std::unique_ptr<Request>> held;
  std::vector<Request*> all;
  for (int i = 0; i < 40; ++i) {
    held.push_back(std::make_unique<Request>(want));
    all.push_back(held.back().get());
  }
  store_.AskAll(all);
  Request more(want);
  store_.Ask(more);
  EXPECT_FALSE(more.allowed()) << "all are held";
  const std::int64_t before = CallsOf("evalsha");
  store_.OnLoop([&](RedisRemoteStore& store) {
    store_.SendHere(more);
    for (const Request* request : all) store.Undo(request->claim(), 1);
  });
  ASSERT_TRUE(store_.Await({&more}));
  EXPECT_TRUE(more.allowed()) << more.status();
  EXPECT_EQ(more.decision().remaining, 39u);
  EXPECT_EQ(CallsOf("evalsha") - before, 2 + 1);
}

TEST_F(RedisStoreTest, ASlotIsHeldOnByRenewing) {
  const Want want{.key = Key("exports", "ann"),
                  .limit = store_.Prepare(*concurrency::MakeLimit(1, 1h))};
  Request held(want);
  store_.Ask(held);
  std::string name;
  AppendKeyName({}, KeyKind::kSlots, want.key, &name);
  const auto end = [&] {
    return std::string(server_.Ask({"ZRANGE", name, "1", "1", "WITHSCORES"})[1].text());
  };
  const std::string before = end();
  EXPECT_NE(before, "");
  store_.Renew(held);
  EXPECT_TRUE(store_.AwaitThat([](const RedisCounters& c) { return c.renewals.value() == 1; }));
  Request more(want);
  store_.Ask(more);
  EXPECT_FALSE(more.allowed());
  EXPECT_GT(std::stoll(end()), std::stoll(before));
}

TEST_F(RedisStoreTest, ASlotThatIsHeldOnAndReleasedInOneTurnIsFree) {
  const Want want{.key = Key("exports", "ann"),
                  .limit = store_.Prepare(*concurrency::MakeLimit(1, 1h))};
  Request held(want);
  store_.Ask(held);
  store_.OnLoop([&](RedisRemoteStore& store) {
    store.Renew(held.claim());
    store.Undo(held.claim(), 1);
  });
  EXPECT_TRUE(store_.AwaitThat([](const RedisCounters& c) { return c.undos.value() == 1; }));
  Request more(want);
  store_.Ask(more);
  EXPECT_TRUE(more.allowed()) << more.status();
}

TEST_F(RedisStoreTest, AScriptThatTheServerLostIsLoadedOnceAndAskedAgain) {
  const LimitPtr limit = Bucket();
  EXPECT_TRUE(Allowed({.key = Key("api", "first"), .limit = limit}));
  server_.Ask({"SCRIPT", "FLUSH"});
  std::vector<std::unique_ptr<Request>> requests;
  std::vector<Request*> all;
  for (int i = 0; i < 50 * 32; ++i) {
    requests.push_back(
        std::make_unique<Request>(Want{.key = Key("api", std::to_string(i)), .limit = limit}));
    all.push_back(requests.back().get());
  }
  const std::uint64_t loads = store_.counters().script_loads.value();
  store_.AskAll(all);
  for (const Request* request : all) {
    ASSERT_TRUE(request->allowed()) << request->status();
    EXPECT_EQ(request->decision().remaining, 4u) << "charged once";
  }
  EXPECT_EQ(store_.counters().script_loads.value() - loads, 1u);
}

TEST_F(RedisStoreTest, AStateUnderOtherNumbersIsConverted) {
  const Want old{.key = Key("api", "ann"), .limit = Bucket(5), .cost = 4};
  ASSERT_TRUE(Allowed(old));
  Request other({.key = old.key, .limit = store_.Prepare(*token_bucket::MakeLimit({2, 1h}, 5))});
  store_.Ask(other);
  EXPECT_TRUE(other.allowed()) << other.status();
  EXPECT_EQ(other.decision().remaining, 0u);
  EXPECT_EQ(store_.counters().again.value(), 1u);
}

TEST_F(RedisStoreTest, NothingIsLeftOfARequestWhoseDeadlineHasPassedBeforeItWasSent) {
  const Want want{.key = Key("api", "ann"), .limit = Bucket()};
  ASSERT_TRUE(Allowed(want));
  const std::int64_t before = CallsOf("evalsha");
  Request late(want);
  store_.Ask(late, -1ms);
  EXPECT_EQ(late.status().code(), absl::StatusCode::kDeadlineExceeded) << late.status();
  EXPECT_EQ(CallsOf("evalsha"), before);
  // Nor with others that have time left.
  Request calm({.key = Key("api", "bob"), .limit = want.limit});
  store_.OnLoop([&](RedisRemoteStore&) {
    store_.SendHere(late, -1ms);
    store_.SendHere(calm);
  });
  ASSERT_TRUE(store_.Await({&late, &calm}));
  EXPECT_TRUE(calm.allowed()) << calm.status();
  EXPECT_EQ(late.status().code(), absl::StatusCode::kDeadlineExceeded) << late.status();
  store_.Ask(late);
  EXPECT_EQ(late.decision().remaining, 3u);
  EXPECT_EQ(store_.counters().waiting.value(), 0u);
}

TEST_F(RedisStoreTest, EachRequestOfACallEndsAtItsOwnDeadline) {
  const LimitPtr limit = Bucket();
  ASSERT_TRUE(Allowed({.key = Key("api", "first"), .limit = limit}));
  Request hasty(Want{.key = Key("api", "hasty"), .limit = limit});
  Request calm(Want{.key = Key("api", "calm"), .limit = limit});
  server_.Pause();
  store_.OnLoop([&](RedisRemoteStore&) {
    store_.SendHere(calm, 20s);
    store_.SendHere(hasty, 100ms);
  });
  ASSERT_TRUE(store_.Await({&hasty}));
  EXPECT_EQ(hasty.status().code(), absl::StatusCode::kDeadlineExceeded) << hasty.status();
  EXPECT_GE(hasty.waited(), 100ms);
  server_.Resume();
  ASSERT_TRUE(store_.Await({&calm}));
  EXPECT_TRUE(calm.allowed()) << calm.status();
  // What was asked too late was charged all the same.
  Request again(Want{.key = Key("api", "hasty"), .limit = limit});
  store_.Ask(again);
  EXPECT_EQ(again.decision().remaining, 3u);
  EXPECT_EQ(store_.counters().calls.value(), 3u);
  EXPECT_EQ(store_.counters().waiting.value(), 0u);
}

TEST_F(RedisStoreTest, SlotsOfARequestThatCameTooLateAreReleased) {
  const Want want{.key = Key("exports", "ann"), .limit = Slots(1)};
  ASSERT_TRUE(Allowed({.key = Key("exports", "first"), .limit = want.limit}));
  Request late(want);
  server_.Pause();
  store_.Ask(late, 100ms);
  EXPECT_EQ(late.status().code(), absl::StatusCode::kDeadlineExceeded) << late.status();
  server_.Resume();
  EXPECT_TRUE(Allowed(want)) << "nobody holds it";
}

// Its call is still awaited by others, and read with the limits of all.
TEST_F(RedisStoreTest, AnAnswerAfterTheDeadlineOutlivesTheRules) {
  Request first({.key = Key("api", "first"), .limit = Bucket()});
  Request calm({.key = Key("api", "calm"), .limit = Bucket()});
  store_.Ask(first);
  server_.Pause();
  {
    Request late({{.key = Key("a", "x"), .limit = Bucket(1'000)},
                  {.key = Key("b", "x"), .limit = Slots(1)}});
    store_.OnLoop([&](RedisRemoteStore&) {
      store_.SendHere(late, 100ms);
      store_.SendHere(calm);
    });
    ASSERT_TRUE(store_.Await({&late}));
    EXPECT_EQ(late.status().code(), absl::StatusCode::kDeadlineExceeded) << late.status();
  }
  server_.Resume();
  ASSERT_TRUE(store_.Await({&calm}));
  EXPECT_TRUE(calm.allowed()) << calm.status();
  EXPECT_EQ(store_.counters().waiting.value(), 0u);
}

TEST_F(RedisStoreTest, BeyondTheBoundRequestsAreRefused) {
  RedisStoreOptions options = ToSocket(server_);
  options.max_waiting = 2;
  StoreOnLoop store(options);
  const Want want{.key = Key("api", "ann"), .limit = Bucket()};
  Request a(want), b(want), c(want);
  store.AskAll({&a, &b, &c});
  EXPECT_TRUE(a.allowed()) << a.status();
  EXPECT_TRUE(b.allowed()) << b.status();
  EXPECT_EQ(c.status().code(), absl::StatusCode::kResourceExhausted) << c.status();
  store.Ask(c);
  EXPECT_TRUE(c.allowed()) << c.status();
}

TEST_F(RedisStoreTest, WhoWaitsWhenTheStoreIsClosedIsToldSo) {
  const Want want{.key = Key("api", "ann"), .limit = Bucket()};
  ASSERT_TRUE(Allowed(want));
  server_.Pause();
  Request a(want), b(want);
  store_.Send({&a});
  store_.OnLoop([&](RedisRemoteStore&) {
    store_.SendHere(b);
    store_.DestroyHere();
  });
  ASSERT_TRUE(store_.Await({&a, &b}));
  EXPECT_EQ(a.status().code(), absl::StatusCode::kCancelled) << a.status();
  EXPECT_EQ(b.status().code(), absl::StatusCode::kCancelled) << b.status();
}

TEST_F(RedisStoreTest, LimitsThatItCanNotHoldAreRefused) {
  store_.OnLoop([](RedisRemoteStore& store) {
    const Limit large = *fixed_window::MakeLimit(std::int64_t{1} << 51, 1s);
    EXPECT_EQ(store.Prepare(large).status().code(), absl::StatusCode::kInvalidArgument);
  });
}

}  // namespace
}  // namespace sluice::redis
