// The gateway with counters in a store that answers later: when the test says so.
#include "sluice/store/testing/shared_store.h"

#include "tests/gateway/gateway_fixture.h"

namespace sluice::gateway {
namespace {

using ::testing::HasSubstr;

// Outlives the gateway's rules, whose limits it keeps.
struct SharedCounters {
  std::unique_ptr<MemoryStore> counters =
      *MemoryStore::Open({.max_keys = 10'000}, ManualClock().Read());
  SharedStore shared{*counters, ManualClock().Read()};
};

class SharedStoreTest : private SharedCounters, public GatewayTest {
 protected:
  SharedStoreTest() : GatewayTest(/*loops=*/1) { remote_ = &shared; }

  static Rule Api(std::uint64_t burst, OnStoreFailure on_failure = OnStoreFailure::kClosed) {
    Rule rule = MakeRule("api", HeaderSource("K"), Bucket(1, 1min, burst));
    rule.on_store_failure = on_failure;
    return rule;
  }
  static std::string Request(const std::string& path = "/v1/orders") {
    return "GET " + path + " HTTP/1.1\r\nHost: a\r\nK: ann\r\n\r\n";
  }
  // On the loop, which is the store's.
  template <class Work>
  void OnLoop(const Work& work) {
    loops_.OnEach([&](net::EventLoop&) { work(); });
  }
  std::size_t Waiting() {
    std::size_t waiting = 0;
    OnLoop([&] { waiting = shared.waiting(); });
    return waiting;
  }
  void AwaitQuestion() {
    Until([this] { return Waiting() == 1; });
  }
  void Answer() {
    OnLoop([this] { shared.Answer(clock_.Read()); });
  }
  std::uint64_t Left() {
    const Outcome& seen = LookShared();
    return seen.ClaimOf(seen.results[0])->decision.remaining;
  }
  // What the shared counters say, by a look of the loop's own.
  const Outcome& LookShared() {
    bool done = false;
    OnLoop([&] {
      static const std::vector<Field> headers = {{"K", "ann"}};
      (void)limiters_[0]->Check({.method = "GET", .target = "/", .headers = headers, .look = true},
                                outcome_, [&done] { done = true; });
      shared.Answer(clock_.Read());
    });
    EXPECT_TRUE(done);
    return outcome_;
  }
  void Fail(const absl::Status& why) {
    OnLoop([&] { shared.Fail(why); });
  }
};

TEST_F(SharedStoreTest, ARequestWaitsForTheStoresAnswer) {
  StartWithOrders({Api(1)});
  RawClient client(port());
  client.Send(Request());
  AwaitQuestion();
  Answer();
  EXPECT_EQ(client.ReadResponse().status, 200);
  client.Send(Request());
  AwaitQuestion();
  Answer();
  const RawResponse denied = client.ReadResponse();
  EXPECT_EQ(denied.status, 429);
  EXPECT_THAT(denied.head, HasSubstr("Retry-After: 60\r\n"));
}

TEST_F(SharedStoreTest, ARuleThatFailsClosedIsA429OfItsOwnKind) {
  StartWithOrders({Api(1)});
  RawClient client(port());
  client.Send(Request());
  AwaitQuestion();
  Fail(absl::DeadlineExceededError("late"));
  const RawResponse denied = client.ReadResponse();
  EXPECT_EQ(denied.status, 429);
  EXPECT_THAT(denied.head, HasSubstr("Retry-After: 1\r\n"));
  EXPECT_THAT(denied.body, HasSubstr("temporary-reduced-capacity"));
}

TEST_F(SharedStoreTest, RequestsThatFollowOnTheConnectionWaitForTheirTurn) {
  StartWithOrders({Api(5)});
  RawClient client(port());
  client.Send(Request() + Request() + Request());
  for (int i = 0; i < 3; ++i) {
    AwaitQuestion();
    Answer();
    EXPECT_EQ(client.ReadResponse().status, 200);
  }
  EXPECT_EQ(Left(), 2u);
}

TEST_F(SharedStoreTest, AShutdownWhileTheStoreIsAskedGivesBackWhatItCharged) {
  StartWithOrders({Api(5)});
  RawClient client(port());
  client.Send(Request());
  AwaitQuestion();
  std::thread drain([this] { gateway_->Drain(std::chrono::milliseconds{1}); });
  // The session is broken off, and then hears what the store says.
  EXPECT_EQ(client.ReadToEnd(), "");
  Answer();
  drain.join();
  EXPECT_EQ(Left(), 5u);
}

}  // namespace
}  // namespace sluice::gateway
