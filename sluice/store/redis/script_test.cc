// The script on a real server, by the server's own clock: times to live, what a denial leaves, and
// what one request that is wrong does to the others in its call.
#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "sluice/store/redis/testing/script_server.h"

namespace sluice::redis {
namespace {

using testing::Clock;
using testing::ScriptServer;
using namespace std::chrono_literals;

ScriptLimit Made(const absl::StatusOr<ScriptLimit>& limit) {
  EXPECT_TRUE(limit.ok()) << limit.status();
  return *limit;
}
ScriptLimit Bucket(std::int64_t count, Duration period, std::uint64_t burst) {
  return Made(ScriptLimit::Make(*token_bucket::MakeLimit({count, period}, burst)));
}
ScriptLimit Fixed(std::int64_t limit, Duration window) {
  return Made(ScriptLimit::Make(*fixed_window::MakeLimit(limit, window)));
}
ScriptLimit Log(std::int64_t limit, Duration window) {
  return Made(ScriptLimit::Make(*sliding_window_log::MakeLimit(limit, window, true)));
}
ScriptLimit Slots(std::int64_t limit, Duration ttl) {
  return Made(ScriptLimit::Make(*concurrency::MakeLimit(limit, ttl)));
}
ScriptLimit Day(std::int64_t limit) {
  return Made(
      ScriptLimit::Make(*calendar::MakeLimit(limit, calendar::Period::kDay, "Europe/Berlin")));
}

// One limit of each algorithm, none of which pays back during a test.
std::vector<std::pair<std::string, ScriptLimit>> OneOfEach() {
  return {
      {"token", Bucket(5, 1h, 5)},
      {"leaky", Made(ScriptLimit::Make(*leaky_bucket::MakeLimit({5, 1h}, 4, 1h)))},
      {"fixed", Fixed(5, 24h)},
      {"first-hit", Made(ScriptLimit::Make(
                        *fixed_window::MakeLimit(5, 1500ms, fixed_window::Align::kFirstHit)))},
      {"counter", Made(ScriptLimit::Make(*sliding_window_counter::MakeLimit(5, 24h)))},
      {"strict", Made(ScriptLimit::Make(*sliding_window_strict::MakeLimit(5, 1h, 16)))},
      {"log", Log(5, 1h)},
      {"calendar", Day(5)},
      {"slots", Slots(5, 1h)},
      {"slots-for-ever", Slots(5, 0s)},
  };
}

class ScriptTest : public ::testing::Test {
 protected:
  ScriptTest() : server_(Clock::kServer) { server_.own_clock = ServerNow(); }

  Now ServerNow() {
    const net::RedisReply time = server_.Ask({"TIME"});
    return NowOf(std::stoll(std::string(time[0].text())) * 1'000'000 +
                 std::stoll(std::string(time[1].text())));
  }

  ScriptClaim Claim(std::string_view key, const ScriptLimit& limit, std::uint64_t cost = 1) {
    return {.key = key, .limit = &limit, .cost = cost, .slot = ++last_slot_};
  }
  // One request of one claim.
  ScriptGroup::State Ask(ScriptClaim& claim) {
    ScriptGroup group{.claims = {&claim, 1}};
    server_.Decide({&group, 1});
    status_ = group.status;
    return group.state;
  }
  bool Charge(std::string_view key, const ScriptLimit& limit, std::uint64_t cost = 1) {
    ScriptClaim claim = Claim(key, limit, cost);
    EXPECT_EQ(Ask(claim), ScriptGroup::State::kDone) << status_;
    return claim.decision.allowed();
  }
  std::int64_t Ttl(std::string_view key) { return server_.Ask({"PTTL", key}).integer(); }
  std::string Dump(std::string_view key) { return std::string(server_.Ask({"DUMP", key}).text()); }
  // How many commands have changed something.
  std::int64_t Dirty() {
    const std::string info(server_.Ask({"INFO", "persistence"}).text());
    const std::string_view name = "rdb_changes_since_last_save:";
    return std::stoll(info.substr(info.find(name) + name.size()));
  }

  ScriptServer server_;
  std::uint64_t last_slot_ = 0;
  absl::Status status_;
};

TEST_F(ScriptTest, EveryKeyLivesAsLongAsItsStateMattersAndHardlyLonger) {
  for (const auto& [name, limit] : OneOfEach()) {
    SCOPED_TRACE(name);
    ScriptClaim claim = Claim(name, limit, 2);
    claim.kind = ClaimKind::kSoft;
    // Also beyond the capacity.
    for (const std::uint64_t cost : {2, 2, 5, 5, 5}) {
      claim.cost = cost;
      claim.slot = ++last_slot_;
      ASSERT_EQ(Ask(claim), ScriptGroup::State::kDone) << status_;
      const std::int64_t ttl = Ttl(name);
      Duration matters = claim.decision.reset_after;
      Duration most = LifetimeOf(limit.limit());
      if (std::holds_alternative<concurrency::Limit>(limit.limit())) {
        matters = most > 0s ? most : ScriptLimit::kSlotBound;
        most = matters;
      }
      // Between the decision and our question the clock goes on; it is asked to a millisecond.
      EXPECT_GT(ttl, (matters - 2s) / 1ms);
      EXPECT_GT(ttl, 0);
      EXPECT_LE(ttl, matters / 1ms + 3);
      EXPECT_LE(ttl, most / 1ms + 3);
    }
  }
}

// A time to live in another unit, or with a fraction, is one that others got wrong.
TEST_F(ScriptTest, TimesToLiveAreWholeMillisecondsWhateverTheWindow) {
  for (const Duration window : {1s, 60s, 3600s, 86'400s}) {
    ASSERT_TRUE(Charge("whole", Fixed(1000, window)));
    EXPECT_LE(Ttl("whole"), window / 1ms + 3);
    EXPECT_NE(Ttl("whole"), -1);
    server_.Ask({"DEL", "whole"});
  }
  for (const Duration window : {Duration(600'001ms), Duration(1500ms), Duration(1'234'567'891ns)}) {
    const auto first_hit = fixed_window::Align::kFirstHit;
    const ScriptLimit limit =
        Made(ScriptLimit::Make(*fixed_window::MakeLimit(1000, window, first_hit)));
    ASSERT_TRUE(Charge("odd", limit));
    EXPECT_GT(Ttl("odd"), window / 1ms - 1000);
    EXPECT_LE(Ttl("odd"), window / 1ms + 3);
    server_.Ask({"DEL", "odd"});
  }
}

TEST_F(ScriptTest, AWaitOfLessThanASecondIsToldExactly) {
  // As a block of 900 ms is kept: a bucket of nanoseconds that a denial empties.
  const ScriptLimit limit = Bucket(1'000'000'000, 1s, 900'000'000);
  ASSERT_TRUE(Charge("block", limit, 900'000'000));
  ScriptClaim look = Claim("block", limit, 900'000'000);
  look.kind = ClaimKind::kLook;
  ASSERT_EQ(Ask(look), ScriptGroup::State::kDone);
  EXPECT_FALSE(look.decision.allowed());
  EXPECT_GT(look.decision.retry_after, 0ns);
  EXPECT_LE(look.decision.retry_after, 900ms);
}

TEST_F(ScriptTest, AShortStateLivesAMillisecondAtLeast) {
  const ScriptLimit limit = Bucket(1'000'000, 1s, 1000);
  ASSERT_TRUE(Charge("short", limit));
  const std::int64_t ttl = Ttl("short");
  EXPECT_TRUE(ttl == -2 || (ttl >= 0 && ttl <= 3)) << ttl;  // gone, or about to go
}

TEST_F(ScriptTest, WhatIsGivenBackLeavesNoKeyThatLivesForEver) {
  for (const auto& [name, limit] : OneOfEach()) {
    SCOPED_TRACE(name);
    ScriptClaim first = Claim(name, limit, 2);
    ScriptClaim second = Claim(name, limit, 1);
    ASSERT_EQ(Ask(first), ScriptGroup::State::kDone) << status_;
    ASSERT_EQ(Ask(second), ScriptGroup::State::kDone) << status_;
    const std::int64_t before = Ttl(name);
    for (ScriptClaim* claim : {&second, &first}) {
      ScriptUndo undo{.key = name,
                      .limit = claim->limit,
                      .receipt = claim->receipt,
                      .units = claim->receipt.units};
      server_.Undo({&undo, 1});
      EXPECT_TRUE(undo.status.ok()) << undo.status;
      EXPECT_TRUE(undo.given_back);
      const std::int64_t ttl = Ttl(name);
      EXPECT_NE(ttl, -1);
      EXPECT_LE(ttl, before + 3);
    }
    EXPECT_TRUE(Charge(name, limit, 5)) << "all of it came back";
    EXPECT_FALSE(Charge(name, limit, 1));
  }
}

TEST_F(ScriptTest, AnUndoThatIsMarkedIsDoneOnceHoweverOftenItIsSent) {
  for (const auto& [name, limit] : OneOfEach()) {
    SCOPED_TRACE(name);
    ScriptClaim first = Claim(name, limit, 2);
    ScriptClaim second = Claim(name, limit, 1);
    ASSERT_EQ(Ask(first), ScriptGroup::State::kDone) << status_;
    ASSERT_EQ(Ask(second), ScriptGroup::State::kDone) << status_;
    const std::string mark = "mark of " + name;
    ScriptUndo undos[2];
    undos[0] = {.key = name,
                .limit = &limit,
                .receipt = second.receipt,
                .units = 1,
                .mark = mark,
                .mark_life = 80s};
    undos[1] = undos[0];
    server_.Undo(undos);  // in one call, and then in another
    server_.Undo({undos, 1});
    for (const ScriptUndo& undo : undos) {
      EXPECT_TRUE(undo.status.ok()) << undo.status;
      EXPECT_TRUE(undo.given_back);
    }
    EXPECT_GT(Ttl(mark), 70'000);
    EXPECT_LE(Ttl(mark), 80'000);
    ScriptClaim look = Claim(name, limit, 0);
    ASSERT_EQ(Ask(look), ScriptGroup::State::kDone) << status_;
    EXPECT_EQ(look.decision.remaining, 3u) << "2 of 5 stay charged";
  }
}

TEST_F(ScriptTest, MarkedUndosAndOthersGoInOneCall) {
  const ScriptLimit limit = Fixed(10, 24h);
  ScriptClaim claims[3] = {Claim("a", limit, 3), Claim("b", limit, 3), Claim("c", limit, 3)};
  ScriptUndo undos[3];
  for (std::size_t i = 0; i < 3; ++i) {
    ASSERT_EQ(Ask(claims[i]), ScriptGroup::State::kDone) << status_;
    undos[i] = {.key = claims[i].key, .limit = &limit, .receipt = claims[i].receipt, .units = 3};
  }
  undos[0].mark = "mark a";
  undos[2].mark = "mark c";
  undos[0].mark_life = undos[2].mark_life = 1h;
  server_.Undo(undos);
  for (const ScriptUndo& undo : undos) {
    EXPECT_TRUE(undo.given_back) << undo.status;
    EXPECT_TRUE(Charge(undo.key, limit, 10));
  }
  EXPECT_GT(Ttl("mark a"), 0);
  EXPECT_GT(Ttl("mark c"), 0);
  EXPECT_EQ(server_.Ask({"DBSIZE"}).integer(), 5);
}

// It writes nothing, and may come again.
TEST_F(ScriptTest, AnUndoOfNothingLeavesNoMark) {
  const ScriptLimit limit = Bucket(5, 1h, 5);
  ScriptClaim claim = Claim("gone", limit, 2);
  ASSERT_EQ(Ask(claim), ScriptGroup::State::kDone) << status_;
  server_.Ask({"DEL", "gone"});
  ScriptUndo undo{.key = "gone",
                  .limit = &limit,
                  .receipt = claim.receipt,
                  .units = 2,
                  .mark = "mark",
                  .mark_life = 1h};
  server_.Undo({&undo, 1});
  EXPECT_TRUE(undo.status.ok()) << undo.status;
  EXPECT_FALSE(undo.given_back);
  EXPECT_EQ(server_.Ask({"DBSIZE"}).integer(), 0);
}

// A forced charge may take fewer units than it was asked for. Who did not hear how many knows only
// those.
TEST_F(ScriptTest, ASlotIsFoundByItsIdThoughItHasFewerUnits) {
  const ScriptLimit limit = Slots(3, 1h);
  ASSERT_TRUE(Charge("slots", limit, 3));
  ScriptClaim forced = Claim("slots", limit, 8);
  forced.kind = ClaimKind::kSoft;
  ASSERT_EQ(Ask(forced), ScriptGroup::State::kDone) << status_;
  ASSERT_EQ(forced.receipt.units, 3u);
  Receipt receipt = forced.receipt;
  receipt.units = 8;
  ScriptUndo undo{.key = "slots", .limit = &limit, .receipt = receipt, .units = 8};
  server_.Undo({&undo, 1});
  EXPECT_TRUE(undo.given_back) << undo.status;
  ScriptClaim look = Claim("slots", limit, 0);
  ASSERT_EQ(Ask(look), ScriptGroup::State::kDone) << status_;
  EXPECT_EQ(server_.Ask({"ZRANGE", "slots", "0", "0"})[0].text(), "1n 3");
  server_.Undo({&undo, 1});
  EXPECT_FALSE(undo.given_back) << "once";
}

// Or a receipt from before could meet a key that began anew, and give back what others spent.
TEST_F(ScriptTest, AKeyOnWhichSomethingWasUndoneLivesAsLongAsItsReceipts) {
  const ScriptLimit limit = Bucket(10, 10min, 10);
  ScriptClaim first = Claim("undone", limit, 5);
  ScriptClaim second = Claim("undone", limit, 5);
  ASSERT_EQ(Ask(first), ScriptGroup::State::kDone);
  ASSERT_EQ(Ask(second), ScriptGroup::State::kDone);
  const std::int64_t before = Ttl("undone");
  ScriptUndo undo{.key = "undone", .limit = &limit, .receipt = first.receipt, .units = 5};
  server_.Undo({&undo, 1});
  EXPECT_GT(Ttl("undone"), before - 2000);
  ASSERT_TRUE(Charge("undone", limit));
  EXPECT_GT(Ttl("undone"), before - 2000) << "also after the next charge";
}

TEST_F(ScriptTest, ADeniedRequestWritesNothing) {
  for (const auto& [name, limit] : OneOfEach()) {
    if (name == "first-hit") continue;  // its window may end meanwhile
    SCOPED_TRACE(name);
    const bool queue = name == "leaky";  // has room for any cost, or for none
    ASSERT_TRUE(Charge(name, limit, queue ? 5 : 4));
    const std::string state = Dump(name);
    const std::int64_t dirty = Dirty();
    EXPECT_FALSE(Charge(name, limit, 2));
    EXPECT_FALSE(Charge(name, limit, 100)) << "nor one that can never pass";
    EXPECT_FALSE(Charge(absl::StrCat(name, "-new"), limit, 100));
    std::array<ScriptClaim, 3> claims = {Claim(name, limit, 1), Claim("other", limit, 100),
                                         Claim("shadow", limit, 1)};
    claims[2].kind = ClaimKind::kShadow;
    ScriptGroup group{.claims = claims};
    server_.Decide({&group, 1});
    EXPECT_FALSE(group.allowed);
    ScriptClaim look = Claim(name, limit, 1);
    look.kind = ClaimKind::kLook;
    ASSERT_EQ(Ask(look), ScriptGroup::State::kDone);
    EXPECT_EQ(look.decision.allowed(), !queue);
    EXPECT_EQ(Dump(name), state);
    EXPECT_EQ(Dirty(), dirty);
    EXPECT_EQ(server_.Ask({"EXISTS", "other", "shadow"}).integer(), 0);
  }
}

TEST_F(ScriptTest, WhatIsWrongWithOneRequestHarmsNoOther) {
  const ScriptLimit bucket = Bucket(5, 1h, 5);
  const ScriptLimit log = Log(5, 1h);
  const ScriptLimit slots = Slots(5, 1h);
  server_.Ask({"HSET", "hash", "a", "1"});
  server_.Ask({"SET", "garbage", "999"});
  server_.Ask({"SET", "cut", absl::StrCat(std::string(bucket.prefix()), "12x")});
  server_.Ask({"SET", "later", "2t5/36e11/5 60393374075798"});
  server_.Ask({"RPUSH", "list", "what", "ever"});
  server_.Ask(
      {"RPUSH", "events", absl::StrCat(std::string(log.prefix()), "99999999999999 1"), "x"});
  server_.Ask({"ZADD", "set", "1", "a"});
  const struct {
    std::string_view key;
    const ScriptLimit& limit;
  } wrong[] = {{"hash", bucket},  {"hash", log},   {"hash", slots},   {"garbage", bucket},
               {"garbage", log},  {"cut", bucket}, {"later", bucket}, {"later", log},
               {"list", bucket},  {"list", log},   {"events", log},   {"set", slots},
               {"garbage", slots}};
  for (const auto& [key, limit] : wrong) {
    SCOPED_TRACE(key);
    const std::string before = Dump(key);
    // In the wrong request the first claim would have room: it must not be charged either.
    std::array<ScriptClaim, 4> claims = {Claim("left", bucket), Claim("beside", bucket),
                                         Claim(key, limit), Claim("right", bucket)};
    std::array<ScriptGroup, 3> groups = {ScriptGroup{.claims = std::span(claims).first(1)},
                                         ScriptGroup{.claims = std::span(claims).subspan(1, 2)},
                                         ScriptGroup{.claims = std::span(claims).last(1)}};
    server_.Decide(groups);
    EXPECT_TRUE(groups[0].allowed);
    EXPECT_TRUE(groups[2].allowed);
    EXPECT_EQ(groups[1].state, ScriptGroup::State::kFailed);
    EXPECT_EQ(groups[1].status.code(), absl::StatusCode::kDataLoss) << groups[1].status;
    EXPECT_FALSE(groups[1].allowed);
    EXPECT_EQ(claims[1].receipt.units, 0U);
    EXPECT_EQ(server_.Ask({"EXISTS", "beside"}).integer(), 0);
    EXPECT_EQ(Dump(key), before) << "it is not ours to overwrite";
    server_.Ask({"DEL", "left", "right"});
  }
}

// Issue of others: a counter that lost its time to live denied for ever.
TEST_F(ScriptTest, AKeyThatLostItsTimeToLiveGetsOneWithTheNextCharge) {
  const ScriptLimit limit = Bucket(1000, 1s, 5);
  ASSERT_TRUE(Charge("persisted", limit, 5));
  server_.Ask({"PERSIST", "persisted"});
  server_.Ask({"SET", "persisted", absl::StrCat(std::string(limit.prefix()), "1")});
  ASSERT_EQ(Ttl("persisted"), -1);
  EXPECT_TRUE(Charge("persisted", limit, 5)) << "what it owed is paid back long ago";
  EXPECT_NE(Ttl("persisted"), -1);
}

TEST_F(ScriptTest, AScriptThatIsGoneIsToldApart) {
  const ScriptLimit limit = Bucket(5, 1h, 5);
  server_.Ask({"SCRIPT", "FLUSH"});
  ScriptClaim claim = Claim("key", limit);
  ScriptGroup group{.claims = {&claim, 1}};
  EXPECT_EQ(server_.DecideOnce({&group, 1}).code(), absl::StatusCode::kFailedPrecondition);
  server_.LoadScript();
  ASSERT_TRUE(server_.DecideOnce({&group, 1}).ok());
  EXPECT_EQ(claim.decision.remaining, 4U);
}

TEST_F(ScriptTest, AServerThatRefusesToWriteIsUnavailableAndStillDenies) {
  const ScriptLimit limit = Bucket(5, 1h, 5);
  for (const bool full : {true, false}) {
    SCOPED_TRACE(full ? "no memory" : "a replica");
    server_.Ask({"FLUSHALL"});
    ASSERT_TRUE(Charge("full", limit, 5));
    if (full) {
      server_.Ask({"CONFIG", "SET", "maxmemory", "1"});
    } else {
      server_.Ask({"REPLICAOF", "127.0.0.1", "1"});
    }
    std::array<ScriptClaim, 3> claims = {Claim("new", limit), Claim("newer", limit),
                                         Claim("full", limit)};
    std::array<ScriptGroup, 2> groups = {ScriptGroup{.claims = std::span(claims).first(2)},
                                         ScriptGroup{.claims = std::span(claims).last(1)}};
    server_.Decide(groups);
    EXPECT_EQ(groups[0].state, ScriptGroup::State::kFailed);
    EXPECT_EQ(groups[0].status.code(), absl::StatusCode::kUnavailable) << groups[0].status;
    EXPECT_EQ(groups[1].state, ScriptGroup::State::kDone);
    EXPECT_FALSE(groups[1].allowed);
    server_.Ask({"CONFIG", "SET", "maxmemory", "0"});
    server_.Ask({"REPLICAOF", "NO", "ONE"});
    EXPECT_EQ(server_.Ask({"EXISTS", "new", "newer"}).integer(), 0);
  }
}

TEST_F(ScriptTest, EdgesForAWrongTimeAreSentAgain) {
  const ScriptLimit limit = Day(5);
  server_.own_clock = NowOf(ServerNow().wall.time_since_epoch() / 1us + 400LL * 86'400'000'000);
  ScriptClaim claim = Claim("day", limit);
  ScriptGroup group{.claims = {&claim, 1}};
  ASSERT_TRUE(server_.DecideOnce({&group, 1}).ok());
  EXPECT_EQ(group.state, ScriptGroup::State::kAgain);
  EXPECT_LT(server_.call().clock_offset(), -399 * 24h);
  ASSERT_TRUE(server_.DecideOnce({&group, 1}).ok());
  EXPECT_EQ(group.state, ScriptGroup::State::kDone);
  EXPECT_EQ(claim.decision.remaining, 4U);
}

TEST_F(ScriptTest, AConversionIsKeptOnlyWithAChargeAndOnlyOfTheStateThatWasConverted) {
  const ScriptLimit small = Bucket(10, 1h, 10);
  const ScriptLimit large = Bucket(20, 1h, 20);
  ASSERT_TRUE(Charge("key", small, 8));
  const std::string state = Dump("key");
  EXPECT_FALSE(Charge("key", large, 13));
  EXPECT_EQ(Dump("key"), state);

  ScriptClaim claim = Claim("key", large);
  ScriptGroup group{.claims = {&claim, 1}};
  ASSERT_TRUE(server_.DecideOnce({&group, 1}).ok());
  ASSERT_EQ(group.state, ScriptGroup::State::kAgain);
  ASSERT_TRUE(Charge("key", small));  // by a node that has the old rules still
  ASSERT_TRUE(server_.DecideOnce({&group, 1}).ok());
  ASSERT_EQ(group.state, ScriptGroup::State::kAgain) << "what it converted is no more";
  ASSERT_TRUE(server_.DecideOnce({&group, 1}).ok());
  ASSERT_EQ(group.state, ScriptGroup::State::kDone);
  EXPECT_EQ(claim.decision.remaining, 10U);  // of 20, less 8, 1 and 1
  EXPECT_GT(Ttl("key"), 0);
}

TEST_F(ScriptTest, ASlotIsHeldOnAndComesBackOnce) {
  const ScriptLimit limit = Slots(2, 1h);
  ScriptClaim two = Claim("slots", limit, 2);
  ASSERT_EQ(Ask(two), ScriptGroup::State::kDone);
  ScriptRenewal renewal{.key = "slots", .limit = &limit, .receipt = two.receipt};
  server_.Renew({&renewal, 1});
  EXPECT_TRUE(renewal.held);
  EXPECT_FALSE(Charge("slots", limit));
  ScriptUndo undo{.key = "slots", .limit = &limit, .receipt = two.receipt, .units = 2};
  server_.Undo({&undo, 1});
  EXPECT_TRUE(undo.given_back);
  EXPECT_TRUE(Charge("slots", limit, 2));
  server_.Undo({&undo, 1});
  EXPECT_FALSE(undo.given_back) << "a second time frees nobody else's";
}

TEST_F(ScriptTest, ASlotThatTheServerLostIsTakenAgainByItsHolderWhateverTheRoom) {
  const ScriptLimit limit = Slots(2, 1h);
  ScriptClaim two = Claim("slots", limit, 2);
  ASSERT_EQ(Ask(two), ScriptGroup::State::kDone);
  server_.Ask({"FLUSHALL"});
  ASSERT_TRUE(Charge("slots", limit)) << "somebody came meanwhile";
  ScriptRenewal renewal{.key = "slots", .limit = &limit, .receipt = two.receipt};
  server_.Renew({&renewal, 1});
  EXPECT_TRUE(renewal.status.ok()) << renewal.status;
  EXPECT_FALSE(renewal.held);
  EXPECT_FALSE(Charge("slots", limit)) << "three run";
  EXPECT_GT(Ttl("slots"), 3'000'000);
  server_.Renew({&renewal, 1});
  EXPECT_TRUE(renewal.held);
  ScriptUndo undo{.key = "slots", .limit = &limit, .receipt = two.receipt, .units = 2};
  server_.Undo({&undo, 1});
  EXPECT_TRUE(undo.given_back);
  EXPECT_TRUE(Charge("slots", limit)) << "one runs";
  EXPECT_FALSE(Charge("slots", limit)) << "two run";
}

TEST_F(ScriptTest, ThirtyTwoRequestsGoInOneCall) {
  const ScriptLimit limit = Bucket(5, 1h, 5);
  std::vector<ScriptClaim> claims(ScriptCall::kMostGroups, Claim("same", limit));
  std::vector<ScriptGroup> groups;
  for (ScriptClaim& claim : claims) groups.push_back({.claims = {&claim, 1}});
  server_.Decide(groups);
  for (std::size_t i = 0; i < groups.size(); ++i) EXPECT_EQ(groups[i].allowed, i < 5) << i;
}

// What was undone is counted on the key, and a key that was lost counts from nothing.
TEST(ScriptAtATimeTest, AReceiptThatMeetsAKeyThatBeganAnewGivesBackLessAndNeverMore) {
  ScriptServer server(Clock::kManual);
  const ScriptLimit limit = Made(ScriptLimit::Make(*token_bucket::MakeLimit({10, 1s}, 10)));
  const auto charge = [&](std::int64_t ms) {
    server.SetTime(1'781'000'000'000'000 + ms * 1000);
    ScriptClaim claim{.key = "key", .limit = &limit, .cost = 10};
    ScriptGroup group{.claims = {&claim, 1}};
    server.Decide({&group, 1});
    EXPECT_TRUE(group.allowed);
    return claim.receipt;
  };
  const auto give_back = [&](const Receipt& receipt) {
    ScriptUndo undo{.key = "key", .limit = &limit, .receipt = receipt, .units = receipt.units};
    server.Undo({&undo, 1});
    EXPECT_TRUE(undo.given_back);
  };
  give_back(charge(0));
  const Receipt old = charge(0);
  server.Ask({"DEL", "key"});
  (void)charge(600);
  give_back(old);  // 6 of its 10 units are paid back by now
  ScriptClaim look{.key = "key", .limit = &limit, .cost = 0};
  ScriptGroup group{.claims = {&look, 1}};
  server.Decide({&group, 1});
  EXPECT_EQ(look.decision.remaining, 4U);
}

// The key is there still, but its window is over: counted from one again, in the same step.
TEST(ScriptAtATimeTest, AWindowThatEndedIsRenewedTogetherWithItsCount) {
  ScriptServer server(Clock::kManual);
  const ScriptLimit limit =
      Made(ScriptLimit::Make(*fixed_window::MakeLimit(3, 1s, fixed_window::Align::kFirstHit)));
  std::string verdicts;
  for (const std::int64_t ms : {0, 0, 0, 999, 1000, 1001, 1999, 1999, 2000}) {
    server.SetTime(1'781'000'000'000'000 + ms * 1000);
    ScriptClaim claim{.key = "key", .limit = &limit};
    ScriptGroup group{.claims = {&claim, 1}};
    server.Decide({&group, 1});
    verdicts += group.allowed ? 'A' : 'D';
  }
  EXPECT_EQ(verdicts, "AAADAAADA");
}

}  // namespace
}  // namespace sluice::redis
