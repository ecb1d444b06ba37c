// The gateway's settings are replaced while requests are under way.
#include <future>
#include <stop_token>

#include "absl/status/status.h"
#include "tests/gateway/gateway_fixture.h"

namespace sluice::gateway {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

constexpr std::string_view kGet = "GET /v1/orders HTTP/1.1\r\nHost: a\r\nK: ann\r\n\r\n";
const std::string kOk = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

// upstream_ is in force first, other_ after MoveOn().
class ReloadTest : public GatewayTest {
 protected:
  ReloadTest() : GatewayTest(/*loops=*/1) {}

  void Reload() {
    auto settings = gateway_->Prepare(options_);
    ASSERT_TRUE(settings.ok()) << settings.status();
    gateway_->Use(*std::move(settings));
  }
  void MoveOn() {
    options_.upstreams = {{.address = {"127.0.0.1", other_.port()}}};
    Reload();
  }
  // The next request to one of the two, answered; its connection.
  static std::unique_ptr<RawClient> Answer(const RawListener& upstream) {
    auto connection = std::make_unique<RawClient>(upstream.Accept());
    AnswerOn(*connection);
    return connection;
  }
  static void AnswerOn(RawClient& connection) {
    EXPECT_THAT(connection.ReadUntil("\r\n\r\n"), HasSubstr("GET /v1/orders"));
    connection.Send(kOk);
  }
  [[nodiscard]] std::uint64_t Requests(std::uint16_t upstream_port) const {
    const std::string name = "127.0.0.1:" + std::to_string(upstream_port);
    for (const auto& counts : gateway_->counters().upstreams) {
      if (counts.name == name) return counts.requests;
    }
    return 0;
  }

  RawListener other_;
};

TEST_F(ReloadTest, TheNextRequestOnAnOpenConnectionGoesToTheNewUpstream) {
  StartByHand();
  RawClient client(port());
  client.Send(kGet);
  const auto before = Answer(upstream_);
  EXPECT_EQ(client.ReadResponse().body, "ok");
  MoveOn();
  EXPECT_TRUE(before->Ended());  // it was kept, and nobody will use it again
  client.Send(kGet);
  const auto after = Answer(other_);
  EXPECT_EQ(client.ReadResponse().body, "ok");
}

TEST_F(ReloadTest, ARequestUnderWayEndsWhereItBegan) {
  StartByHand();
  RawClient client(port());
  client.Send(kGet);
  RawClient connection(upstream_.Accept());
  connection.ReadUntil("\r\n\r\n");
  MoveOn();
  connection.Send(kOk);
  EXPECT_EQ(client.ReadResponse().body, "ok");
  EXPECT_TRUE(connection.Ended());  // it is not kept
}

TEST_F(ReloadTest, ALongBodyAndALongAnswerGoOn) {
  StartByHand();
  RawClient client(port());
  client.Send("POST /up HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n01234");
  RawClient connection(upstream_.Accept());
  EXPECT_THAT(connection.ReadUntil("01234"), HasSubstr("POST /up"));
  MoveOn();
  client.Send("56789");
  EXPECT_EQ(connection.ReadUntil("56789"), "56789");
  connection.Send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n");
  client.ReadUntil("ab");
  Reload();
  connection.Send("2\r\ncd\r\n0\r\n\r\n");
  EXPECT_THAT(client.ReadUntil("\r\n0\r\n\r\n"), HasSubstr("cd"));
  client.Send(kGet);
  Answer(other_);
  EXPECT_EQ(client.ReadResponse().status, 200);
}

TEST_F(ReloadTest, ATunnelGoesOn) {
  StartByHand();
  RawClient client(port());
  client.Send("GET / HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n");
  RawClient connection(upstream_.Accept());
  connection.ReadUntil("\r\n\r\n");
  connection.Send("HTTP/1.1 101 ok\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n");
  EXPECT_EQ(client.ReadResponse().status, 101);
  MoveOn();
  client.Send("ping");
  EXPECT_EQ(connection.ReadExactly(4), "ping");
  connection.Send("pong");
  EXPECT_EQ(client.ReadExactly(4), "pong");
  connection.Close();
  EXPECT_TRUE(client.Ended());
}

TEST_F(ReloadTest, AHeldRequestEndsUnderTheSettingsItMet) {
  // So long that all the rest has happened by then.
  const Limit pace = *leaky_bucket::MakeLimit({.count = 1, .period = 2s}, 5, 10s);
  StartByHand({MakeRule("pace", HeaderSource("K"), pace)});
  RawClient first(port());
  first.Send(kGet);
  const auto connection = Answer(upstream_);
  EXPECT_EQ(first.ReadResponse().status, 200);
  RawClient held(port());
  held.Send(kGet);
  Until([this] { return gateway_->counters().requests == 2; });
  MoveOn();
  EXPECT_TRUE(connection->Ended());
  Answer(upstream_);
  EXPECT_EQ(held.ReadResponse().status, 200);
}

TEST_F(ReloadTest, SlotsComeBackHoweverARequestEnds) {
  StartByHand({MakeRule("slots", HeaderSource("K"), Slots(3))});
  const auto held = [this] { return store_->Stats(clock_.Read()).concurrency_slots_used; };
  RawClient answered(port());
  answered.Send(kGet);
  RawClient first(upstream_.Accept());
  first.ReadUntil("\r\n\r\n");
  RawClient left(port());
  left.Send(kGet);
  RawClient second(upstream_.Accept());
  second.ReadUntil("\r\n\r\n");
  RawClient failed(port());
  failed.Send(kGet);
  RawClient third(upstream_.Accept());
  third.ReadUntil("\r\n\r\n");
  EXPECT_EQ(Get("/v1/orders").status, 429);
  MoveOn();
  EXPECT_EQ(held(), 3u);
  first.Send(kOk);
  EXPECT_EQ(answered.ReadResponse().status, 200);
  left.Close();
  third.Close();
  EXPECT_EQ(failed.ReadResponse().status, 502);
  Until([&] { return held() == 0; });
  answered.Send(kGet);
  Answer(other_);
  EXPECT_EQ(answered.ReadResponse().status, 200);
  Until([&] { return held() == 0; });
}

TEST_F(ReloadTest, WhatStaysTheSameKeepsItsConnections) {
  StartByHand();
  RawClient client(port());
  client.Send(kGet);
  const auto connection = Answer(upstream_);
  EXPECT_EQ(client.ReadResponse().status, 200);
  options_.response_timeout = 10s;
  Reload();
  client.Send(kGet);
  AnswerOn(*connection);
  EXPECT_EQ(client.ReadResponse().status, 200);
}

TEST_F(ReloadTest, TheBoundOfConnectionsHoldsForOldAndNewTogether) {
  options_.upstream_connections = 1;
  options_.connect_timeout = 1s;  // also for those that find a place
  StartByHand();
  RawClient first(port());
  first.Send(kGet);
  RawClient connection(upstream_.Accept());
  connection.ReadUntil("\r\n\r\n");
  MoveOn();
  RawClient second(port());
  EXPECT_EQ(second.Ask(kGet).status, 503);
  connection.Send(kOk);
  EXPECT_EQ(first.ReadResponse().status, 200);
  second.Send(kGet);
  Answer(other_);
  EXPECT_EQ(second.ReadResponse().status, 200);
}

// Three kept connections, then a bound of two; and one in use, which then ends, under a bound of
// one.
TEST_F(ReloadTest, ASmallerBoundHoldsForWhatIsKeptAndWhatIsStillToBe) {
  options_.upstream_connections = 3;
  StartByHand();
  std::vector<std::unique_ptr<RawClient>> clients;
  std::vector<std::unique_ptr<RawClient>> ends;
  for (int i = 0; i < 3; ++i) {
    clients.push_back(std::make_unique<RawClient>(port()));
    clients.back()->Send(kGet);
    ends.push_back(std::make_unique<RawClient>(upstream_.Accept()));
    ends.back()->ReadUntil("\r\n\r\n");
  }
  ends[2]->Send(kOk);
  EXPECT_EQ(clients[2]->ReadResponse().status, 200);
  options_.upstream_connections = 2;
  Reload();
  EXPECT_TRUE(ends[2]->Ended()) << "two are in use, so none may be kept";
  options_.upstream_connections = 1;
  Reload();
  ends[0]->Send(kOk);
  EXPECT_EQ(clients[0]->ReadResponse().status, 200);
  EXPECT_TRUE(ends[0]->Ended()) << "the one place there is is taken";
  ends[1]->Send(kOk);
  EXPECT_EQ(clients[1]->ReadResponse().status, 200);
  clients[0]->Send(kGet);
  AnswerOn(*ends[1]);
  EXPECT_EQ(clients[0]->ReadResponse().status, 200);
}

TEST_F(ReloadTest, AnOpenConnectionMeetsAllOtherSettingsWithItsNextRequest) {
  StartWithOrders({MakeRule("api", HeaderSource("K"), Window(5, 1min))});
  RawClient client(port());
  const RawResponse before = client.Ask(kGet);
  EXPECT_TRUE(before.Has("RateLimit"));
  options_.headers = {.draft_11 = false, .x_delta = true};
  options_.health_path = "/up";
  options_.cors = {.origins = {"https://app.example"}};
  options_.header_fields = 4;
  options_.body = transport::BodyForm::kJson;
  Reload();
  const RawResponse after = client.Ask(kGet);
  EXPECT_FALSE(after.Has("RateLimit"));
  EXPECT_EQ(after.Field("X-RateLimit-Remaining"), "3");
  const RawResponse health =
      client.Ask("GET /up HTTP/1.1\r\nHost: a\r\nOrigin: https://app.example\r\n\r\n");
  EXPECT_EQ(health.body, "ok\n");
  EXPECT_EQ(health.Field("Access-Control-Allow-Origin"), "https://app.example");
  for (int i = 0; i < 3; ++i) EXPECT_EQ(client.Ask(kGet).status, 200);
  const RawResponse denied = client.Ask(kGet);
  EXPECT_EQ(denied.status, 429);
  EXPECT_EQ(denied.Field("Content-Type"), "application/json");
  const RawResponse refused =
      client.Ask("GET / HTTP/1.1\r\nHost: a\r\nA: 1\r\nB: 1\r\nC: 1\r\nD: 1\r\n\r\n");
  EXPECT_EQ(refused.status, 431);
}

TEST_F(ReloadTest, ANewTimeIsThatOfTheNextRequestAndNotOfTheOneUnderWay) {
  StartByHand();
  RawClient first(port());
  first.Send(kGet);
  RawClient connection(upstream_.Accept());
  connection.ReadUntil("\r\n\r\n");
  options_.response_timeout = 50ms;
  Reload();
  RawClient second(port());
  EXPECT_EQ(second.Ask(kGet).status, 504);
  connection.Send(kOk);
  EXPECT_EQ(first.ReadResponse().status, 200);
}

TEST_F(ReloadTest, ANameThatNobodyKnowsChangesNothing) {
  StartByHand();
  options_.upstreams.push_back({.address = {"gone.example", 80}});
  options_.health_path = "/up";
  EXPECT_TRUE(absl::IsNotFound(gateway_->Prepare(options_).status()));
  RawClient client(port());
  client.Send("GET /up HTTP/1.1\r\nHost: a\r\n\r\n");
  RawClient connection(upstream_.Accept());
  EXPECT_THAT(connection.ReadUntil("\r\n\r\n"), HasSubstr("GET /up"));
  connection.Send(kOk);
  EXPECT_EQ(client.ReadResponse().body, "ok");
  EXPECT_EQ(gateway_->counters().upstreams.size(), 1u);
}

TEST_F(ReloadTest, AReloadThatWaitsForANameCanBeGivenUp) {
  const auto asked = std::make_shared<std::promise<void>>();
  const auto answer = std::make_shared<std::promise<void>>();
  resolve_ = [asked, answer](const net::HostPort& where) -> absl::StatusOr<Endpoints> {
    if (net::IsLiteral(where)) return net::Resolve(where);
    asked->set_value();
    answer->get_future().wait();
    return absl::NotFoundError("too late");
  };
  StartByHand();
  std::stop_source stop;
  std::thread other([&] {
    asked->get_future().wait();
    stop.request_stop();
  });
  options_.upstreams.push_back({.address = {"dead.example", 80}});
  EXPECT_TRUE(absl::IsCancelled(gateway_->Prepare(options_, stop.get_token()).status()));
  other.join();
  answer->set_value();
}

TEST_F(ReloadTest, CountersGoOnWhateverBecomesOfAName) {
  const auto one_more = [this](const RawListener& upstream) {
    RawClient client(port());
    client.Send(kGet);
    Answer(upstream);
    EXPECT_EQ(client.ReadResponse().status, 200);
  };
  StartByHand();
  const auto original = options_.upstreams;
  one_more(upstream_);
  MoveOn();
  one_more(other_);
  EXPECT_EQ(Requests(upstream_.port()), 1u);
  EXPECT_EQ(gateway_->counters().upstreams.size(), 2u);
  EXPECT_TRUE(gateway_->counters().upstreams[0].in_force);
  EXPECT_FALSE(gateway_->counters().upstreams[1].in_force);
  options_.upstreams = original;
  Reload();
  one_more(upstream_);
  EXPECT_EQ(Requests(upstream_.port()), 2u);
  EXPECT_EQ(Requests(other_.port()), 1u);
}

// What is said of upstreams that are gone is bounded, too.
TEST_F(ReloadTest, OfManyThatAreGoneTheLatestAreRemembered) {
  StartByHand();
  for (std::uint16_t i = 1; i <= 300; ++i) {
    options_.upstreams = {{.address = {"127.0.0.1", i}}};
    Reload();
  }
  const auto upstreams = gateway_->counters().upstreams;
  EXPECT_EQ(upstreams.size(), 257u);
  EXPECT_EQ(upstreams[1].name, "127.0.0.1:44");
  EXPECT_EQ(upstreams[256].name, "127.0.0.1:299");
}

}  // namespace
}  // namespace sluice::gateway
