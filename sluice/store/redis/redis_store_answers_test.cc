// The store against a server that the test plays by hand: answers that are errors, or none of our
// script, and connections that end at the worst moment.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/base/steady_now.h"
#include "sluice/store/redis/redis_store.h"
#include "sluice/store/redis/script_call.h"
#include "sluice/store/redis/testing/fake_redis.h"
#include "sluice/store/redis/testing/store_on_loop.h"

namespace sluice::redis {
namespace {

using namespace std::chrono_literals;
using net::testing::Lines;
using testing::FakeRedis;
using ::testing::HasSubstr;
using testing::kCharged;
using testing::Key;
using testing::kFakeSha;
using testing::kNo;
using testing::kYes;
using testing::LimitPtr;
using testing::Request;
using testing::StoreOnLoop;
using testing::Want;

using Words = std::vector<std::string>;

class RedisStoreAnswersTest : public ::testing::Test {
 protected:
  // Connected, with the script loaded.
  void Start() { Start(server_.Options()); }
  void Start(RedisStoreOptions options) {
    store_.emplace(std::move(options));
    server_.AcceptAndLoad();
  }
  Want Bucket(std::string_view part = "ann") {
    return {.key = Key("api", part),
            .limit = store_->Prepare(*token_bucket::MakeLimit({1, 1h}, 5))};
  }
  Want Slot() {
    return {.key = Key("exports", "ann"), .limit = store_->Prepare(*concurrency::MakeLimit(1, 0s))};
  }
  // Sends the request, and answers its call with these bytes.
  const absl::Status& Ask(Request& request, std::string_view answer) {
    store_->Send({&request});
    call_ = server_.ReadCall();
    server_.Say(answer);
    EXPECT_TRUE(store_->Await({&request}));
    return request.status();
  }
  std::uint64_t Errors(ServerError error) const {
    return store_->counters().errors[static_cast<std::size_t>(error)].value();
  }

  FakeRedis server_;
  std::optional<StoreOnLoop> store_;
  Words call_;
};

TEST_F(RedisStoreAnswersTest, CallsTheScriptByTheNameThatTheServerGives) {
  store_.emplace(server_.Options());
  Request early(Bucket("early"));
  store_->Send({&early});
  server_.Accept();
  server_.SayLoaded();
  const Words call = server_.ReadCall();
  EXPECT_EQ(call[1], kFakeSha);
  EXPECT_THAT(call[3], HasSubstr("api:early"));
  server_.Answer({std::string(kCharged)});
  ASSERT_TRUE(store_->Await({&early}));
  EXPECT_TRUE(early.allowed()) << early.status();
  EXPECT_EQ(early.decision().remaining, 4u);
}

TEST_F(RedisStoreAnswersTest, OnALaterConnectionCallsGoRightBehindTheScript) {
  Start();
  server_.Close();
  server_.Accept();
  EXPECT_EQ(server_.Read()[0], "SCRIPT");
  EXPECT_TRUE(
      store_->AwaitThat([](const RedisCounters& c) { return c.script_loads.value() == 2; }));
  Request request(Bucket());
  store_->Send({&request});
  EXPECT_EQ(server_.ReadCall()[1], kFakeSha);
  server_.Say("$40\r\n" + std::string(kFakeSha) + "\r\n");
  server_.Answer({std::string(kCharged)});
  ASSERT_TRUE(store_->Await({&request}));
  EXPECT_TRUE(request.allowed()) << request.status();
}

TEST_F(RedisStoreAnswersTest, WhatTheServerRefusesIsToldInItsOwnWordsAndIsNoDenial) {
  const std::pair<std::string_view, ServerError> rows[] = {
      {"LOADING Redis is loading the dataset in memory", ServerError::kLoading},
      {"OOM command not allowed when used memory > 'maxmemory'.", ServerError::kOutOfMemory},
      {"BUSY Redis is busy running a script.", ServerError::kBusy},
      {"NOAUTH Authentication required.", ServerError::kNoAuth},
      {"NOPERM this user has no permissions to run the 'evalsha' command", ServerError::kNoPerm},
      {"ERR The user executing the script can't run this command or subcommand",
       ServerError::kNoPerm},
      {"MISCONF Redis is configured to save RDB snapshots", ServerError::kMisconf},
      {"CLUSTERDOWN Hash slot not served", ServerError::kClusterDown},
      {"MOVED 3999 127.0.0.1:6381", ServerError::kMoved},
      {"ASK 3999 127.0.0.1:6381", ServerError::kMoved},
      {"TRYAGAIN Multiple keys request during rehashing of slot", ServerError::kMoved},
      {"CROSSSLOT Keys in request don't hash to the same slot", ServerError::kMoved},
      {"ERR something else", ServerError::kOther},
  };
  RedisStoreOptions options = server_.Options();
  options.breaker.failures = 1000;
  Start(options);
  for (const auto& [text, error] : rows) {
    SCOPED_TRACE(text);
    const std::uint64_t before = Errors(error);
    // To the call as a whole, and of one group in it.
    Request request(Bucket());
    const std::string words = std::string(text) + "\r\n";
    const std::string whole = "-" + words;
    const std::string part =
        "*2\r\n:1780000000000000\r\n*2\r\n:4\r\n$" + std::to_string(text.size()) + "\r\n" + words;
    for (const std::string& answer : {whole, part}) {
      EXPECT_EQ(Ask(request, answer).code(), absl::StatusCode::kUnavailable) << request.status();
      EXPECT_EQ(std::string(request.status().message()), text);
      EXPECT_FALSE(request.allowed());
      EXPECT_EQ(request.claim().receipt.units, 0u);
    }
    EXPECT_EQ(Errors(error), before + 2);
  }
  EXPECT_EQ(store_->counters().connects.value(), 1u);
  // Nothing was done: no slot to be released either.
  Request slot(Slot());
  EXPECT_EQ(Ask(slot, "*2\r\n:1780000000000000\r\n*2\r\n:4\r\n$5\r\nOOM x\r\n").code(),
            absl::StatusCode::kUnavailable);
  EXPECT_EQ(store_->counters().undos_waiting.value(), 0u);
}

// It answers "-READONLY" on the connections that it had as a primary; by its name the address leads
// to the new primary.
TEST_F(RedisStoreAnswersTest, AConnectionToAReplicaIsMadeAnew) {
  for (const std::string_view why :
       {"READONLY You can't write against a read only replica.",
        "MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'."}) {
    SCOPED_TRACE(why);
    Start();
    Request request(Bucket());
    EXPECT_EQ(Ask(request, "-" + std::string(why) + "\r\n").code(), absl::StatusCode::kUnavailable);
    EXPECT_EQ(std::string(request.status().message()), why);
    EXPECT_TRUE(server_.Ended());
    server_.AcceptAndLoad();
    EXPECT_EQ(server_.ReadCall()[3], "r") << "a probe first";
    server_.Answer({});
    EXPECT_TRUE(store_->AwaitThat(
        [&](const RedisCounters&) { return store_->health().breaker == BreakerState::kHalfOpen; }));
    store_->Send({&request});
    (void)server_.ReadCall();
    server_.Answer({std::string(kCharged)});
    EXPECT_TRUE(store_->Await({&request}));
    EXPECT_TRUE(request.allowed()) << request.status();
    EXPECT_TRUE(store_->health().up);
    EXPECT_EQ(store_->counters().connects.value(), 2u);
  }
}

TEST_F(RedisStoreAnswersTest, WhatIsNoAnswerOfTheScriptIsDataLoss) {
  Start();
  const std::string time = ":1780000000000000\r\n";
  const std::string answers[] = {
      "+OK\r\n",
      ":12\r\n",
      "$-1\r\n",
      "*0\r\n",
      "*1\r\n" + time,
      "*2\r\n:12\r\n" + std::string(kCharged),
      "*3\r\n" + time + std::string(kCharged) + std::string(kCharged),
      "*2\r\n" + time + "*0\r\n",
      "*2\r\n" + time + "*1\r\n:1\r\n",
      "*2\r\n" + time + "*2\r\n:7\r\n$1\r\n2\r\n",
      "*2\r\n" + time + "*2\r\n:1\r\n$1\r\n9\r\n",
      "*2\r\n" + time + "*2\r\n:1\r\n:2\r\n",
      "*2\r\n" + time + "*3\r\n:1\r\n$1\r\n2\r\n$1\r\n2\r\n",
      "*2\r\n" + time + "$1\r\n9\r\n",
      "*2\r\n" + time + "$0\r\n\r\n",
      "*2\r\n" + time + ":2\r\n",
      "*2\r\n" + time + "*3\r\n:2\r\n:1\r\n$1\r\nx\r\n",
      "*2\r\n" + time + "*3\r\n:2\r\n:9\r\n$1\r\nx\r\n",
      "*2\r\n" + time + "*2\r\n:4\r\n$9\r\nDAMAGED x\r\n",
  };
  for (const std::string& answer : answers) {
    SCOPED_TRACE(answer);
    Request request(Bucket());
    EXPECT_EQ(Ask(request, answer).code(), absl::StatusCode::kDataLoss) << request.status();
    EXPECT_FALSE(request.allowed());
    EXPECT_EQ(request.claim().receipt.units, 0u);
  }
  // It was answered each time: the breaker has no part in it.
  EXPECT_TRUE(store_->health().up);
}

TEST_F(RedisStoreAnswersTest, AnAnswerThatTheAlgorithmDoesNotConfirmIsInternal) {
  Start();
  Request request(Bucket());
  // A bucket with room is said to have none.
  EXPECT_EQ(Ask(request, "*2\r\n:1780000000000000\r\n$1\r\n0\r\n").code(),
            absl::StatusCode::kInternal)
      << request.status();
  EXPECT_EQ(store_->counters().disagreements.value(), 1u);
}

TEST_F(RedisStoreAnswersTest, AGroupThatOthersPreventAllTheTimeIsGivenUp) {
  Start();
  Request request(Bucket());
  store_->Send({&request});
  for (int turn = 0; turn < ScriptCall::kMostTurns; ++turn) {
    (void)server_.ReadCall();
    server_.Answer({"*1\r\n:3\r\n"});
  }
  ASSERT_TRUE(store_->Await({&request}));
  EXPECT_EQ(request.status().code(), absl::StatusCode::kUnavailable) << request.status();
  EXPECT_THAT(std::string(request.status().message()), HasSubstr("others change"));
  EXPECT_EQ(store_->counters().again.value(), ScriptCall::kMostTurns - 1u);
}

TEST_F(RedisStoreAnswersTest, WhereTheScriptMayNotBeLoadedTheStoreIsDownAndSaysWhy) {
  store_.emplace(server_.Options());
  Request early(Bucket());
  store_->Send({&early});
  server_.Accept();
  (void)server_.Read();
  server_.Say("-NOPERM User ann has no permissions to run the 'script|load' command\r\n");
  ASSERT_TRUE(store_->Await({&early}));
  EXPECT_EQ(early.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(early.status().message()), HasSubstr("NOPERM"));
  EXPECT_THAT(store_->health().why, HasSubstr("NOPERM"));
  EXPECT_FALSE(store_->health().up);
  store_->Ask(early);
  EXPECT_THAT(std::string(early.status().message()), HasSubstr("NOPERM"));
  // It is tried again; by then somebody may have allowed it.
  store_->Pass(200ms);
  server_.SayLoaded();
  EXPECT_TRUE(store_->AwaitThat([&](const RedisCounters&) { return store_->health().up; }));
}

TEST_F(RedisStoreAnswersTest, AScriptThatIsNeverThereIsNotLoadedForEver) {
  Start();
  Request request(Bucket());
  store_->Send({&request});
  for (int turn = 0; turn < ScriptCall::kMostTurns; ++turn) {
    (void)server_.ReadCall();
    server_.Say("-NOSCRIPT No matching script.\r\n");
    server_.SayLoaded();
  }
  ASSERT_TRUE(store_->Await({&request}));
  EXPECT_EQ(request.status().code(), absl::StatusCode::kUnavailable) << request.status();
}

TEST_F(RedisStoreAnswersTest, ASlotThatWasLostWithItsConnectionIsReleasedTwice) {
  Start();
  Request request(Slot());
  store_->Send({&request});
  const Words call = server_.ReadCall();
  const std::string slot = call[call.size() - 2].substr(2);  // "1 id", and no conversions
  EXPECT_EQ(slot.size(), 16u);
  server_.Close();
  ASSERT_TRUE(store_->Await({&request}));
  EXPECT_EQ(request.status().code(), absl::StatusCode::kUnavailable) << request.status();
  server_.AcceptAndLoad();
  // The server may still read the old connection, after this one: it is looked for once more.
  for (int look = 0; look < 2; ++look) {
    const Words undo = server_.ReadCall();
    EXPECT_EQ(undo[4], "u");
    EXPECT_EQ(undo[3], call[3]) << "the key";
    EXPECT_THAT(undo, ::testing::Contains(slot));
    server_.Answer({std::string(kNo)});
    if (look == 0) {
      EXPECT_TRUE(server_.Silent(20ms));
      store_->Pass(2s);
    }
  }
  EXPECT_TRUE(
      store_->AwaitThat([](const RedisCounters& c) { return c.undos_waiting.value() == 0; }));
}

TEST_F(RedisStoreAnswersTest, AnUndoThatMayHaveBeenDoneIsNotDoneAgain) {
  Start();
  Request request(Bucket());
  store_->Send({&request});
  (void)server_.ReadCall();
  server_.Answer({std::string(kCharged)});
  ASSERT_TRUE(store_->Await({&request}));
  store_->Undo(request, 1);
  EXPECT_EQ(server_.ReadCall()[4], "u");
  server_.Close();
  server_.AcceptAndLoad();
  for (int i = 0; i < 2; ++i) {
    store_->Send({&request});
    EXPECT_EQ(server_.ReadCall()[4], "d") << "no undo before";
    server_.Answer({std::string(kCharged)});
    ASSERT_TRUE(store_->Await({&request}));
    store_->Pass(2s);
  }
  EXPECT_EQ(store_->counters().undos_dropped.value(), 1u);
  EXPECT_EQ(store_->counters().undos.value(), 0u);
}

TEST_F(RedisStoreAnswersTest, AnUndoThatMayHaveBeenDoneIsDoneAgainUnderItsMark) {
  RedisStoreOptions options = server_.Options();
  options.mark_undos = true;
  Start(options);
  Request request(Bucket());
  EXPECT_TRUE(Ask(request, "*2\r\n:1780000000000000\r\n" + std::string(kCharged)).ok());
  store_->Undo(request, 1);
  const Words undo = server_.ReadCall();
  EXPECT_EQ(undo[4 + 1], "u");
  EXPECT_THAT(undo[4], HasSubstr(":1u{")) << "the mark is a key";
  EXPECT_EQ(undo.back(), "80000");
  for (int i = 0; i < 3; ++i) {
    server_.Close();
    server_.AcceptAndLoad();
    EXPECT_TRUE(server_.Silent(5ms)) << "not at once";
    store_->Pass(1s);
    EXPECT_EQ(server_.ReadCall(), undo);
  }
  server_.Answer({std::string(kYes)});
  EXPECT_TRUE(store_->AwaitThat([](const RedisCounters& c) { return c.undos.value() == 1; }));
  EXPECT_EQ(store_->counters().undos_dropped.value(), 0u);
  EXPECT_TRUE(server_.Silent(5ms)) << "the mark stays: what was sent before may yet be read";
}

TEST_F(RedisStoreAnswersTest, EachUndoHasAMarkOfItsOwnAndSlotsHaveNone) {
  RedisStoreOptions options = server_.Options();
  options.mark_undos = true;
  Start(options);
  Request bucket(Bucket());
  Request slot(Slot());
  EXPECT_TRUE(Ask(bucket, "*2\r\n:1780000000000000\r\n" + std::string(kCharged)).ok());
  EXPECT_TRUE(Ask(slot, "*2\r\n:1780000000000000\r\n$4\r\n20 0\r\n").ok());
  store_->OnLoop([](RedisRemoteStore&) {});
  Words marks;
  for (int i = 0; i < 2; ++i) {
    store_->Undo(bucket, 1);
    const Words undo = server_.ReadCall();
    EXPECT_EQ(undo[2], "2");
    marks.push_back(undo[4]);
    server_.Answer({std::string(kYes)});
    EXPECT_EQ(server_.Read(), (Words{"DEL", undo[4]})) << "it is never sent again";
    server_.Say(":1\r\n");
  }
  EXPECT_NE(marks[0], marks[1]);
  store_->Undo(slot, 1);
  const Words undo = server_.ReadCall();
  EXPECT_EQ(undo[2], "1");
  EXPECT_EQ(undo.back(), "");
}

// What becomes worth nothing while nobody knows stays charged, for all that is known.
TEST_F(RedisStoreAnswersTest, AnUndoThatNobodyKnowsOfIsGivenUpWhenItIsWorthNothing) {
  RedisStoreOptions options = server_.Options();
  options.mark_undos = true;
  Start(options);
  Request request({.key = Key("api", "ann"),
                   .limit = store_->Prepare(*token_bucket::MakeLimit({1, 100ms}, 1))});
  EXPECT_TRUE(Ask(request, "*2\r\n:1780000000000000\r\n" + std::string(kCharged)).ok());
  store_->Undo(request, 1);
  (void)server_.ReadCall();
  server_.Close();
  const Time over = SteadyNow() + 300ms;  // it has rested, and waits for the server
  EXPECT_TRUE(store_->AwaitThat([&](const RedisCounters&) { return SteadyNow() > over; }));
  server_.AcceptAndLoad();
  EXPECT_TRUE(
      store_->AwaitThat([](const RedisCounters& c) { return c.undos_dropped.value() == 1; }));
  EXPECT_TRUE(server_.Silent(5ms));
}

TEST_F(RedisStoreAnswersTest, AnUndoThatWasRefusedIsDoneLater) {
  Start();
  Request request(Bucket());
  store_->Send({&request});
  (void)server_.ReadCall();
  server_.Answer({std::string(kCharged)});
  ASSERT_TRUE(store_->Await({&request}));
  store_->Undo(request, 1);
  const std::string refusals[] = {
      "-LOADING Redis is loading the dataset in memory\r\n",
      "*2\r\n:1780000000000000\r\n*2\r\n:4\r\n$5\r\nOOM x\r\n",
  };
  Words first;
  for (const std::string& refusal : refusals) {
    const Words undo = server_.ReadCall();
    if (first.empty()) first = undo;
    EXPECT_EQ(undo, first);
    server_.Say(refusal);
    EXPECT_TRUE(server_.Silent(5ms)) << "not at once";
    store_->Pass(500ms);
  }
  EXPECT_EQ(server_.ReadCall(), first);
  server_.Say("-NOSCRIPT No matching script.\r\n");
  server_.SayLoaded();
  EXPECT_EQ(server_.ReadCall(), first) << "at once";
  server_.Answer({std::string(kYes)});
  EXPECT_TRUE(store_->AwaitThat([](const RedisCounters& c) { return c.undos.value() == 1; }));
}

TEST_F(RedisStoreAnswersTest, UndosWaitForTheStoreUpToABoundOfWhichSlotsMayFillAll) {
  RedisStoreOptions options = server_.Options();
  options.max_undos_waiting = 4;
  Start(options);
  Request bucket(Bucket());
  Request slot(Slot());
  store_->Send({&bucket});
  (void)server_.ReadCall();
  server_.Answer({std::string(kCharged)});
  store_->Send({&slot});
  (void)server_.ReadCall();
  server_.Answer({"$4\r\n20 0\r\n"});
  ASSERT_TRUE(store_->Await({&bucket, &slot}));
  EXPECT_TRUE(bucket.allowed()) << bucket.status();
  EXPECT_TRUE(slot.allowed()) << slot.status();
  server_.Close();
  EXPECT_TRUE(store_->AwaitThat([&](const RedisCounters&) { return !store_->health().up; }));
  for (int i = 0; i < 3; ++i) store_->Undo(bucket, 1);
  EXPECT_EQ(store_->counters().undos_dropped.value(), 1u);
  for (int i = 0; i < 3; ++i) store_->Undo(slot, 1);
  EXPECT_EQ(store_->counters().undos_dropped.value(), 2u);
  server_.AcceptAndLoad();
  const Words undo = server_.ReadCall();
  EXPECT_EQ(undo[2], "4");
  server_.Answer(Words(4, std::string(kYes)));
  EXPECT_TRUE(store_->AwaitThat([](const RedisCounters& c) { return c.undos.value() == 4; }));
}

TEST_F(RedisStoreAnswersTest, UndosThatAreWorthNothingAnyMoreMakeRoom) {
  RedisStoreOptions options = server_.Options();
  options.max_undos_waiting = 2;
  Start(options);
  Request slot(
      {.key = Key("exports", "ann"), .limit = store_->Prepare(*concurrency::MakeLimit(1, 20ms))});
  EXPECT_TRUE(Ask(slot, "*2\r\n:1780000000000000\r\n$4\r\n20 0\r\n").ok());
  server_.Close();
  EXPECT_TRUE(store_->AwaitThat([&](const RedisCounters&) { return !store_->health().up; }));
  for (int i = 0; i < 2; ++i) store_->Undo(slot, 1);
  EXPECT_EQ(store_->counters().undos_waiting.value(), 2u);
  const Time over = SteadyNow() + 50ms;  // with the slot
  EXPECT_TRUE(store_->AwaitThat([&](const RedisCounters&) { return SteadyNow() > over; }));
  store_->Undo(slot, 1);
  EXPECT_EQ(store_->counters().undos_waiting.value(), 1u);
  EXPECT_EQ(store_->counters().undos_dropped.value(), 0u);
}

TEST_F(RedisStoreAnswersTest, TheStoreIsNotAskedWhileItDoesNotAnswer) {
  RedisStoreOptions options = server_.Options();
  options.breaker = {.failures = 3, .probe_deadline = 20s};
  Start(options);
  Request odd(Bucket());
  for (int i = 0; i < 5; ++i) {
    if (i == 2) {
      // Whatever it answers, it does: that begins anew.
      store_->Send({&odd});
      (void)server_.ReadCall();
      for (int late = 0; late < 2; ++late) server_.Answer({std::string(kCharged)});
      server_.Say("+OK\r\n");
      ASSERT_TRUE(store_->Await({&odd}));
      EXPECT_EQ(odd.status().code(), absl::StatusCode::kDataLoss) << odd.status();
      EXPECT_TRUE(store_->health().up);
    }
    Request request(Bucket());
    store_->Ask(request, 50ms);
    EXPECT_EQ(request.status().code(), absl::StatusCode::kDeadlineExceeded) << request.status();
    (void)server_.ReadCall();
  }
  EXPECT_FALSE(store_->health().up);
  EXPECT_EQ(store_->health().breaker, BreakerState::kOpen);
  Request refused(Bucket());
  store_->Ask(refused);
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kUnavailable) << refused.status();
  EXPECT_THAT(std::string(refused.status().message()), HasSubstr("did not answer in time"));
  EXPECT_EQ(store_->counters().groups.value(), 6u);
  // Replies come in order: those that are late first.
  for (int i = 0; i < 3; ++i) server_.Answer({std::string(kCharged)});
  EXPECT_EQ(server_.ReadCall()[3], "r");
  server_.Answer({});
  EXPECT_TRUE(store_->AwaitThat(
      [&](const RedisCounters&) { return store_->health().breaker == BreakerState::kHalfOpen; }));
  // One at a time.
  Request trial(Bucket());
  store_->Send({&trial});
  store_->Ask(refused);
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kUnavailable) << refused.status();
  (void)server_.ReadCall();
  server_.Answer({std::string(kCharged)});
  ASSERT_TRUE(store_->Await({&trial}));
  EXPECT_TRUE(trial.allowed()) << trial.status();
  EXPECT_TRUE(store_->health().up);
  EXPECT_EQ(store_->Healths(3), (Lines{"up", "down", "up"}));
  EXPECT_EQ(store_->healths(), 0u) << "told once for each change";
}

TEST_F(RedisStoreAnswersTest, AConnectionThatIsOneAnswerBehindIsLeft) {
  RedisStoreOptions options = server_.Options();
  options.breaker = {.failures = 1, .probe_every = 10ms, .probe_deadline = 20ms};
  Start(std::move(options));
  Request request(Bucket());
  store_->Send({&request}, 5ms);
  ASSERT_TRUE(store_->Await({&request}));
  EXPECT_TRUE(absl::IsDeadlineExceeded(request.status()));
  server_.ReadCall();
  for (int i = 0; i < 10; ++i) server_.ReadCall();  // probes; as if their answers came too late
  server_.AcceptAndLoad();                          // anew
  server_.ReadCall();                               // a probe
}

}  // namespace
}  // namespace sluice::redis
