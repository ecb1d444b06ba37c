// The store against nodes of a cluster that say what a test wants them to: redirects of each kind,
// in circles too, maps that lie, answers that are cut short, servers that are gone.
#include "sluice/store/redis/redis_cluster_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/base/steady_now.h"
#include "sluice/net/testing/raw_client.h"
#include "sluice/store/redis/redis_slots.h"
#include "sluice/store/redis/testing/fake_node.h"
#include "sluice/store/redis/testing/fake_redis.h"
#include "sluice/store/redis/testing/store_on_loop.h"

namespace sluice::redis {
namespace {

using namespace std::chrono_literals;
using testing::FakeNode;
using ::testing::HasSubstr;
using testing::Key;
using testing::LimitPtr;
using testing::MapOf;
using testing::Request;
using testing::SentTo;
using testing::StoreOnLoop;
using testing::Want;

std::string NameOf(std::string_view part) {
  std::string name;
  AppendKeyName({}, KeyKind::kCounter, Key("api", part), &name);
  return name;
}

// Of a call of these groups, one claim each.
std::string Answered(std::initializer_list<std::string_view> groups) {
  std::string answer = "*" + std::to_string(groups.size() + 1) + "\r\n:1780000000000000\r\n";
  for (const std::string_view group : groups) answer += group;
  return answer;
}
constexpr std::string_view kSlotTaken = "$4\r\n20 0\r\n";

std::uint64_t Redirects(const StoreOnLoop& store, Redirect::Kind kind) {
  return store.counters().redirects[static_cast<std::size_t>(kind)].value();
}

class RedisClusterStoreTest : public ::testing::Test {
 protected:
  RedisClusterOptions Options() {
    RedisClusterOptions options{.seeds = {a_.address()}};
    options.store.connection.jitter = [](Duration) { return Duration::zero(); };
    options.store.connection.max_silence = 20s;
    return options;
  }
  // All slots are a's, if nothing else is said.
  void Start() {
    a_.SetMap(MapOf({{0, 16383, &a_}}));
    b_.SetMap(MapOf({{0, 16383, &a_}}));
    Start(Options());
  }
  void Start(RedisClusterOptions options) {
    store_.emplace(std::move(options));
    EXPECT_TRUE(AwaitUp());
  }
  bool AwaitUp() {
    return store_->AwaitThat([&](const RedisCounters&) { return store_->health().up; });
  }
  Want Bucket(std::string_view part = "ann") {
    return {.key = Key("api", part),
            .limit = store_->Prepare(*token_bucket::MakeLimit({1, 1h}, 5))};
  }
  Want SlotOfOne() {
    return {.key = Key("api", "ann"), .limit = store_->Prepare(*concurrency::MakeLimit(1, 0s))};
  }
  absl::Status Ask(std::string_view part = "ann", Duration deadline = StoreOnLoop::kLong) {
    Request request(Bucket(part));
    store_->Ask(request, deadline);
    return request.status();
  }
  void ExpectUnavailable(const absl::Status& status, std::string_view why) {
    EXPECT_TRUE(absl::IsUnavailable(status)) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(std::string(why)));
  }

  const std::uint16_t slot_ = SlotOf(NameOf("ann"));
  FakeNode a_;
  FakeNode b_;
  std::optional<StoreOnLoop> store_;
};

TEST_F(RedisClusterStoreTest, WhatHasMovedIsFollowedAndRemembered) {
  Start();
  a_.Answer({SentTo("MOVED", slot_, b_)});
  EXPECT_TRUE(Ask().ok());
  EXPECT_EQ(b_.Calls(1)[0].keys, std::vector{NameOf("ann")});
  EXPECT_EQ(a_.calls(), 1u);
  EXPECT_TRUE(Ask().ok());
  EXPECT_EQ(b_.calls(), 1u) << "at once";
  EXPECT_EQ(Redirects(*store_, Redirect::Kind::kMoved), 1u);
  EXPECT_EQ(store_->counters().groups.value(), 2u);
  EXPECT_EQ(store_->counters().again.value(), 1u);
  // Another slot stays where it was.
  EXPECT_TRUE(Ask("bob").ok());
  EXPECT_EQ(a_.calls(), 2u);
}

TEST_F(RedisClusterStoreTest, AHostThatIsLeftOutIsThatOfWhoSaysSo) {
  Start();
  a_.Answer({"-MOVED " + std::to_string(slot_) + " :" + std::to_string(b_.port())});
  EXPECT_TRUE(Ask().ok());
  EXPECT_EQ(b_.calls(), 1u);
}

TEST_F(RedisClusterStoreTest, AskLeadsOneRequestElsewhereAndNothingElse) {
  Start();
  a_.Answer({SentTo("ASK", slot_, b_)});
  EXPECT_TRUE(Ask().ok());
  EXPECT_FALSE(a_.Calls(1)[0].asking);
  EXPECT_TRUE(b_.Calls(1)[0].asking);
  EXPECT_TRUE(Ask().ok());
  EXPECT_FALSE(a_.Calls(1)[0].asking);
  EXPECT_EQ(b_.calls(), 0u);
  EXPECT_EQ(Redirects(*store_, Redirect::Kind::kAsk), 1u);
}

TEST_F(RedisClusterStoreTest, OfACallThatIsSentElsewhereEachRequestGoesByItself) {
  Start();
  // Of one identity, so that they share a call: a slot that moves takes no call for keys of which
  // some are there and some are not.
  const LimitPtr limit = store_->Prepare(*token_bucket::MakeLimit({1, 1h}, 5));
  Request one({.key = Key("api", "ann"), .limit = limit});
  Request two({.key = Key("login", "ann"), .limit = limit});
  a_.Answer({"-TRYAGAIN Multiple keys request during rehashing of slot", SentTo("ASK", slot_, b_)});
  store_->AskAll({&one, &two});
  EXPECT_TRUE(one.allowed()) << one.status();
  EXPECT_TRUE(two.allowed()) << two.status();
  const auto calls = a_.Calls(3);
  EXPECT_EQ(calls[0].keys.size(), 2u);
  EXPECT_EQ(calls[1].keys.size(), 1u);
  EXPECT_EQ(calls[2].keys.size(), 1u);
  EXPECT_EQ(b_.Calls(1)[0].keys, calls[1].keys);
}

TEST_F(RedisClusterStoreTest, TryAgainIsTriedAgainUntilItWorksOrTheDeadlineComes) {
  Start();
  const std::string later = "-TRYAGAIN Multiple keys request during rehashing of slot";
  a_.Answer({later, later, later, later, later, later, later, later});
  EXPECT_TRUE(Ask().ok());
  EXPECT_EQ(a_.calls(), 9u) << "more often than a group is sent to others";
  EXPECT_EQ(Redirects(*store_, Redirect::Kind::kTryAgain), 8u);
  a_.AlwaysAnswer(later);
  Request request(Bucket());
  store_->Ask(request, 30ms);
  EXPECT_TRUE(absl::IsDeadlineExceeded(request.status())) << request.status();
  EXPECT_LT(a_.calls(), 9u + 12u) << "with pauses between";
  EXPECT_TRUE(store_->health().up) << "the server is well";
}

TEST_F(RedisClusterStoreTest, WhoWaitsForASlotThatMovesIsNotTakenForOneInACircle) {
  Start();
  const std::string ask = SentTo("ASK", slot_, b_);
  const std::string later = "-TRYAGAIN Multiple keys request during rehashing of slot";
  a_.Answer({ask, ask, ask, ask, ask, ask, ask, ask});
  b_.Answer({later, later, later, later, later, later, later});
  EXPECT_TRUE(Ask().ok());
  EXPECT_EQ(a_.calls(), 8u);
  EXPECT_EQ(b_.calls(), 8u);
}

TEST_F(RedisClusterStoreTest, AServerThatWasAskedNothingYetIsNotToBlame) {
  Start();
  net::testing::RawListener silent;  // is connected to, and says nothing
  for (int i = 0; i < 15; ++i) {
    const std::string part = std::to_string(i);
    a_.Answer({"-MOVED " + std::to_string(SlotOf(NameOf(part))) +
               " 127.0.0.1:" + std::to_string(silent.port())});
    const absl::Status status = Ask(part, 10ms);
    EXPECT_TRUE(absl::IsDeadlineExceeded(status)) << status;
  }
}

TEST_F(RedisClusterStoreTest, ACircleOfServersIsLeft) {
  Start();
  a_.AlwaysAnswer(SentTo("MOVED", slot_, b_));
  b_.AlwaysAnswer(SentTo("MOVED", slot_, a_));
  ExpectUnavailable(Ask(), "send it to one another");
  EXPECT_EQ(a_.calls() + b_.calls(), 6u);
  b_.AlwaysAnswer(SentTo("ASK", slot_, a_));
  ExpectUnavailable(Ask(), "send it to one another");
  EXPECT_EQ(a_.calls() + b_.calls(), 12u);
}

TEST_F(RedisClusterStoreTest, WhoIsSentToTheServerItComesFromPausesAndIsLeft) {
  Start();
  a_.AlwaysAnswer(SentTo("MOVED", slot_, a_));
  ExpectUnavailable(Ask(), "send it to one another");
  EXPECT_EQ(a_.calls(), 6u);
}

TEST_F(RedisClusterStoreTest, AServerThatIsNamedAndNotThereRefusesAlone) {
  Start();
  FakeNode gone;
  gone.Stop();
  a_.Answer({SentTo("MOVED", slot_, gone)});
  ExpectUnavailable(Ask(), "redis 127.0.0.1:" + std::to_string(gone.port()));
  EXPECT_TRUE(Ask("bob").ok());
}

TEST_F(RedisClusterStoreTest, AMapThatLiesIsPutRightByTheServersWord) {
  // It says that all is b's, who says that all is a's.
  a_.SetMap(MapOf({{0, 16383, &b_}}));
  b_.SetMap(MapOf({{0, 16383, &b_}}));
  RedisClusterOptions options = Options();
  options.look_soon = 10ms;
  Start(std::move(options));
  b_.AlwaysAnswer(SentTo("MOVED", slot_, a_));
  for (int i = 0; i < 50; ++i) EXPECT_TRUE(Ask().ok());
  EXPECT_EQ(a_.calls(), 50u);
}

TEST_F(RedisClusterStoreTest, WhereTheClusterIsDownNobodyIsAllowedAndTheMapIsLookedAt) {
  RedisClusterOptions options = Options();
  options.look_every = 1h;
  options.look_soon = 10ms;
  a_.SetMap(MapOf({{0, 16383, &a_}}));
  Start(std::move(options));
  EXPECT_TRUE(Ask().ok());
  const std::size_t before = a_.maps_told();
  a_.Answer({"-CLUSTERDOWN The cluster is down"});
  ExpectUnavailable(Ask(), "CLUSTERDOWN");
  EXPECT_TRUE(store_->AwaitThat([&](const RedisCounters&) { return a_.maps_told() > before; }));
  EXPECT_EQ(store_->counters().errors[static_cast<std::size_t>(ServerError::kClusterDown)].value(),
            1u);
}

TEST_F(RedisClusterStoreTest, WhatMayHaveBeenDoneIsNotSentAgain) {
  Start();
  for (const std::string_view cut : {"", "*2\r\n:17800", "-MOVED 1"}) {
    SCOPED_TRACE(cut);
    a_.Answer({std::string(FakeNode::kEnd) + std::string(cut)});
    ExpectUnavailable(Ask(), "redis 127.0.0.1");
    EXPECT_EQ(a_.Calls(1).size(), 1u);
    EXPECT_EQ(b_.calls(), 0u);
    EXPECT_TRUE(AwaitUp());
    EXPECT_TRUE(Ask().ok());
    EXPECT_EQ(a_.Calls(1).size(), 1u);
  }
}

TEST_F(RedisClusterStoreTest, ACallHoldsOneSlot) {
  Start();
  std::vector<std::unique_ptr<Request>> requests;
  std::vector<Request*> all;
  const LimitPtr limit = store_->Prepare(*token_bucket::MakeLimit({1, 1h}, 5));
  for (const std::string_view rule : {"api", "login", "search"}) {
    for (const std::string_view part : {"ann", "bob", "eve"}) {
      requests.push_back(std::make_unique<Request>(Want{.key = Key(rule, part), .limit = limit}));
      all.push_back(requests.back().get());
    }
  }
  store_->AskAll(all);
  for (const Request* request : all) EXPECT_TRUE(request->allowed()) << request->status();
  for (const FakeNode::Call& call : a_.Calls(3)) {
    EXPECT_EQ(call.keys.size(), 3u);
    for (const std::string& key : call.keys) EXPECT_EQ(SlotOf(key), SlotOf(call.keys[0]));
  }
  EXPECT_EQ(a_.calls(), 0u);
}

TEST_F(RedisClusterStoreTest, AGroupOverSeveralSlotsIsRefused) {
  Start();
  Request request({Bucket("ann"), Bucket("bob")});
  store_->Ask(request);
  EXPECT_TRUE(absl::IsInvalidArgument(request.status())) << request.status();
}

TEST_F(RedisClusterStoreTest, WhoAsksBeforeTheFirstMapWaitsForIt) {
  a_.SetMap(std::string(FakeNode::kSilence));
  store_.emplace(Options());
  Request early(Bucket());
  Request hasty(Bucket("bob"));
  store_->Send({&early});
  store_->Ask(hasty, 20ms);
  EXPECT_TRUE(absl::IsDeadlineExceeded(hasty.status())) << hasty.status();
  EXPECT_EQ(store_->healths(), 0u) << "nothing is known";
  EXPECT_TRUE(store_->AwaitThat([&](const RedisCounters&) { return a_.maps_told() > 0; }));
  a_.SetMap(MapOf({{0, 16383, &a_}}));
  store_->Await({&early});
  // The question that was not answered is asked again; by then this one may have been refused.
  EXPECT_TRUE(AwaitUp());
  EXPECT_TRUE(Ask().ok());
}

TEST_F(RedisClusterStoreTest, SeedsAreAskedUntilOneKnowsAMap) {
  FakeNode gone;
  gone.Stop();
  FakeNode single;  // of no cluster
  RedisClusterOptions options = Options();
  options.seeds = {gone.address(), single.address(), a_.address()};
  a_.SetMap(MapOf({{0, 16383, &b_}}));
  store_.emplace(std::move(options));
  Request early(Bucket());
  store_->Ask(early);
  EXPECT_TRUE(early.allowed()) << early.status();
  EXPECT_EQ(b_.calls(), 1u);
  EXPECT_GE(store_->counters().no_maps.value(), 1u);
  EXPECT_EQ(store_->Healths(1), net::testing::Lines{"up"}) << "not all of them had failed";
}

TEST_F(RedisClusterStoreTest, WhereNoSeedKnowsAMapRequestsAreRefusedAndItSaysWhy) {
  RedisClusterOptions options = Options();
  store_.emplace(std::move(options));
  Request early(Bucket());
  store_->Ask(early);
  ExpectUnavailable(early.status(), "cluster support disabled");
  EXPECT_FALSE(store_->health().up);
  EXPECT_THAT(store_->health().why, HasSubstr("no seed tells where the slots are: redis 127.0."));
  ExpectUnavailable(Ask(), "no seed tells");
  a_.SetMap(MapOf({{0, 16383, &a_}}));
  EXPECT_TRUE(AwaitUp());
  EXPECT_TRUE(Ask().ok());
  EXPECT_EQ(store_->Healths(2), (net::testing::Lines{"down", "up"}));
}

TEST_F(RedisClusterStoreTest, MapsThatCannotBeReadChangeNothing) {
  RedisClusterOptions options = Options();
  options.look_every = options.look_soon = 2ms;
  a_.SetMap(MapOf({{0, 16383, &a_}}));
  Start(std::move(options));
  const std::string address = std::to_string(a_.port());
  for (const std::string& map :
       {std::string("-NOPERM no"), std::string("+OK"), std::string("*0"), std::string("*1\r\n:1"),
        "*1\r\n*3\r\n:0\r\n:99999\r\n*2\r\n$9\r\n127.0.0.1\r\n:" + address}) {
    const std::uint64_t before = store_->counters().no_maps.value();
    a_.SetMap(map);
    EXPECT_TRUE(store_->AwaitThat(
        [&](const RedisCounters& counters) { return counters.no_maps.value() > before + 1; }));
    EXPECT_TRUE(Ask().ok());
  }
  EXPECT_TRUE(store_->health().up);
}

TEST_F(RedisClusterStoreTest, SlotsThatNobodyHasAreRefusedAndCounted) {
  a_.SetMap(MapOf({{0, slot_, &a_}}));
  store_.emplace(Options());
  EXPECT_TRUE(store_->AwaitThat([&](const RedisCounters&) { return store_->healths() > 0; }));
  EXPECT_TRUE(Ask().ok());
  int i = 0;
  while (SlotOf(NameOf(std::to_string(i))) <= slot_) ++i;
  ExpectUnavailable(Ask(std::to_string(i)), "has the key's slot");
  EXPECT_THAT(store_->health().why,
              HasSubstr("nobody decides on " + std::to_string(16383 - slot_) + " of 16384 slots"));
  EXPECT_EQ(store_->counters().slots_missing.value(), 16383u - slot_);
}

TEST_F(RedisClusterStoreTest, OnePrimaryThatIsGoneConcernsItsSlotsAlone) {
  // Ann's slot is b's.
  const std::string map = MapOf({{0, static_cast<std::uint16_t>(slot_ - 1), &a_},
                                 {slot_, slot_, &b_},
                                 {static_cast<std::uint16_t>(slot_ + 1), 16383, &a_}});
  a_.SetMap(map);
  b_.SetMap(map);
  RedisClusterOptions options = Options();
  options.look_soon = 5ms;
  Start(std::move(options));
  b_.Stop();
  EXPECT_TRUE(store_->AwaitThat([&](const RedisCounters&) { return !store_->health().up; }));
  EXPECT_THAT(store_->health().why, HasSubstr("nobody decides on 1 of 16384 slots: redis 127.0."));
  for (int i = 0; i < 30; ++i) {
    ExpectUnavailable(Ask(), "redis 127.0.0.1:" + std::to_string(b_.port()));
    EXPECT_TRUE(Ask("bob").ok()) << "the other's breaker stays closed";
  }
  // Another has the slot now.
  a_.SetMap(MapOf({{0, 16383, &a_}}));
  EXPECT_TRUE(AwaitUp());
  EXPECT_TRUE(Ask().ok());
  EXPECT_EQ(store_->counters().primaries.value(), 1u);
}

TEST_F(RedisClusterStoreTest, TheMapIsAskedForOneAtATimeHoweverManyAreSentElsewhere) {
  RedisClusterOptions options = Options();
  options.look_every = 1h;
  a_.SetMap(MapOf({{0, 16383, &a_}}));
  Start(std::move(options));
  EXPECT_TRUE(store_->AwaitThat([&](const RedisCounters& counters) {
    return counters.maps.value() == a_.maps_told() && a_.maps_told() > 0;
  }));
  const std::size_t before = a_.maps_told();
  const Time begin = SteadyNow();
  for (int i = 0; i < 200; ++i) {
    const std::string part = std::to_string(i);
    a_.Answer({SentTo("MOVED", SlotOf(NameOf(part)), b_)});
    EXPECT_TRUE(Ask(part).ok());
  }
  // Half of look_soon apart at least.
  const auto most = static_cast<std::size_t>((SteadyNow() - begin) / 250ms) + 1;
  EXPECT_LE(a_.maps_told() + b_.maps_told(), before + most);
  EXPECT_TRUE(store_->health().up);
}

TEST_F(RedisClusterStoreTest, WhatIsGivenBackFollowsItsKey) {
  Start();
  Request request(Bucket());
  store_->Ask(request);
  (void)a_.Calls(1);
  const struct {
    std::vector<std::string> a;
    std::vector<std::string> b;
    std::size_t of_a;  // calls
    std::size_t of_b;
    bool asking;
  } rows[] = {
      {{SentTo("ASK", slot_, b_)}, {}, 1, 1, true},
      {{"-TRYAGAIN x"}, {}, 2, 0, false},
      {{SentTo("MOVED", slot_, b_)}, {}, 1, 1, false},
      {{}, {SentTo("MOVED", slot_, a_)}, 1, 1, false},  // back again
  };
  for (const auto& row : rows) {
    const std::uint64_t before = store_->counters().undos.value();
    a_.Answer(row.a);
    b_.Answer(row.b);
    store_->Undo(request, 1);
    EXPECT_TRUE(store_->AwaitThat(
        [&](const RedisCounters& counters) { return counters.undos.value() == before + 1; }));
    for (const FakeNode::Call& call : a_.Calls(row.of_a)) EXPECT_EQ(call.mode, "u");
    for (const FakeNode::Call& call : b_.Calls(row.of_b)) EXPECT_EQ(call.asking, row.asking);
    EXPECT_EQ(a_.calls() + b_.calls(), 0u);
  }
  EXPECT_EQ(store_->counters().undos_dropped.value(), 0u);
  EXPECT_EQ(store_->counters().undos_waiting.value(), 0u);
}

TEST_F(RedisClusterStoreTest, AnUndoInASlotThatMovesGoesWithoutItsMark) {
  Start();
  Request request(Bucket());
  store_->Ask(request);
  (void)a_.Calls(1);
  // Two keys, of which one is missing, are never taken; one is.
  a_.Answer({"-TRYAGAIN x", "-TRYAGAIN x", SentTo("ASK", slot_, b_)});
  store_->Undo(request, 1);
  const auto calls = a_.Calls(3);
  EXPECT_EQ(calls[1].keys.size(), 2u);
  EXPECT_EQ(calls[2].keys.size(), 1u);
  EXPECT_EQ(b_.Calls(1)[0].keys.size(), 1u);
  EXPECT_TRUE(
      store_->AwaitThat([](const RedisCounters& counters) { return counters.undos.value() == 1; }));
}

TEST_F(RedisClusterStoreTest, ASlotIsHeldOnWhereItsKeyIs) {
  Start();
  Request request(SlotOfOne());
  a_.Answer({Answered({kSlotTaken}), SentTo("ASK", slot_, b_)});
  store_->Ask(request);
  EXPECT_TRUE(request.allowed()) << request.status();
  (void)a_.Calls(1);
  store_->Renew(request);
  EXPECT_EQ(a_.Calls(1)[0].mode, "r");
  const FakeNode::Call call = b_.Calls(1)[0];
  EXPECT_EQ(call.mode, "r");
  EXPECT_TRUE(call.asking);
}

TEST_F(RedisClusterStoreTest, WhatIsToBeGivenBackOutlivesItsServer) {
  const std::string both = MapOf({{0, 16382, &a_}, {16383, 16383, &b_}});
  a_.SetMap(both);
  b_.SetMap(both);
  RedisClusterOptions options = Options();
  options.look_soon = 5ms;
  options.keep_unused = 0s;
  Start(std::move(options));
  Request bucket(Bucket());
  Request slot(SlotOfOne());
  a_.Answer({Answered({testing::kCharged}), Answered({kSlotTaken})});
  store_->Ask(bucket);
  store_->Ask(slot);
  EXPECT_TRUE(bucket.allowed() && slot.allowed()) << slot.status();
  a_.Stop();
  EXPECT_TRUE(store_->AwaitThat([&](const RedisCounters&) { return !store_->health().up; }));
  store_->Undo(bucket, 1);
  store_->Undo(slot, 1);
  b_.SetMap(MapOf({{0, 16383, &b_}}));
  EXPECT_TRUE(
      store_->AwaitThat([](const RedisCounters& counters) { return counters.undos.value() == 2; }));
  for (const FakeNode::Call& call : b_.Calls(1)) EXPECT_EQ(call.mode, "u");
  EXPECT_EQ(store_->counters().undos_dropped.value(), 0u);
  EXPECT_TRUE(AwaitUp());
  EXPECT_EQ(store_->counters().primaries.value(), 1u);
}

TEST_F(RedisClusterStoreTest, ServersThatAreOnlyNamedAreFewAndGo) {
  RedisClusterOptions options = Options();
  options.keep_unused = 0s;
  options.look_soon = 2ms;
  a_.SetMap(MapOf({{0, 16383, &a_}}));
  Start(std::move(options));
  // Each names another that nobody has heard of.
  for (int i = 1; i <= 3000; ++i) {
    a_.Answer({"-ASK " + std::to_string(slot_) + " 127.1." + std::to_string(i / 100) + "." +
               std::to_string(i % 100) + ":1"});
    EXPECT_TRUE(absl::IsUnavailable(Ask("ann")));
  }
  EXPECT_TRUE(Ask().ok());
  EXPECT_TRUE(store_->health().up);
}

TEST_F(RedisClusterStoreTest, TheEndOfTheStoreEndsWhatWaitsWhereverItIs) {
  Start();
  const std::string later = "-TRYAGAIN x";
  Request pausing(Bucket("ann"));
  Request asked(Bucket("bob"));
  a_.Answer({later, later, later, later, later, later});
  store_->Send({&pausing});
  (void)a_.Calls(6);  // a pause of some milliseconds has begun, or will
  a_.AlwaysAnswer(std::string(FakeNode::kSilence));
  store_->Send({&asked});
  (void)a_.Calls(1);
  store_->Destroy();
  ASSERT_TRUE(store_->Await({&pausing, &asked}));
  EXPECT_TRUE(absl::IsCancelled(asked.status())) << asked.status();

  a_.SetMap(std::string(FakeNode::kSilence));
  store_.emplace(Options());
  Request homeless(Bucket());
  store_->Send({&homeless});
  store_->Destroy();
  ASSERT_TRUE(store_->Await({&homeless}));
  EXPECT_TRUE(absl::IsCancelled(homeless.status())) << homeless.status();
}

}  // namespace
}  // namespace sluice::redis
