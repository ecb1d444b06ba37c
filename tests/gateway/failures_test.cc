// What goes wrong behind the gateway, and how it ends.
#include "tests/gateway/gateway_fixture.h"

namespace sluice::gateway {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

const std::string kOk = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
const std::string kGet = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";

TEST_F(GatewayTest, AnUpstreamThatIsNotThereIsA502) {
  upstream_.Close();
  StartByHand({MakeRule("r", HeaderSource("K"), Window(5, 1min))});
  const RawResponse response = Get("/");
  EXPECT_EQ(response.status, 502);
  EXPECT_EQ(response.Field("Content-Type"), "application/problem+json");
  EXPECT_THAT(response.Field("RateLimit"), HasSubstr("r=4"));  // admitted, so charged
  EXPECT_EQ(gateway_->counters().upstream_errors, 1U);
}

TEST_F(GatewayTest, AnUpstreamThatTalksNonsenseIsA502) {
  StartByHand();
  for (const std::string& nonsense : {
           std::string("SSH-2.0-x\r\n\r\n"),
           std::string("HTTP/1.1 200 OK\nContent-Length: 2\n\nok"),
           std::string("HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nok"),
           std::string("HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n"),
           std::string("HTTP/1.1 101 Switching\r\nUpgrade: x\r\n\r\n"),
           std::string("HTTP/1.1 200 OK\r\nX: " + std::string(40'000, 'x') + "\r\n\r\n"),
           std::string("HTTP/1.1 200 O"),
           std::string(),
       }) {
    SCOPED_TRACE(nonsense.substr(0, 40));
    RawClient client(port());
    client.Send(kGet);
    RawClient upstream(upstream_.Accept());
    upstream.ReadUntil("\r\n\r\n");
    upstream.Send(nonsense);
    upstream.EndWriting();
    EXPECT_EQ(client.ReadResponse().status, 502);
  }
}

TEST_F(GatewayTest, AnUpstreamThatTakesTooLongIsA504) {
  options_.response_timeout = 50ms;
  StartByHand();
  RawClient client(port());
  client.Send(kGet);
  RawClient upstream(upstream_.Accept());
  EXPECT_EQ(client.ReadResponse().status, 504);
  // The connection to the client goes on.
  client.Send(kGet);
  RawClient next(upstream_.Accept());
  next.ReadUntil("\r\n\r\n");
  next.Send(kOk);
  EXPECT_EQ(client.ReadResponse().body, "ok");
}

TEST_F(GatewayTest, ABodyThatIsTooSlowIsTheClientsFault) {
  options_.body_timeout = 50ms;
  options_.response_timeout = 300ms;
  StartByHand();
  const std::string post = "POST / HTTP/1.1\r\nHost: a\r\n";
  const struct {
    std::string begin;
    std::string drip;  // framing of a chunk: each byte is well in time, and none is content
  } rows[] = {
      {post + "Content-Length: 5\r\n\r\nabc", ""},
      {post + "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n", ""},
      {post + "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n5;", "x"},
      {post + "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nX: ", "x"},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.begin);
    RawClient client(port());
    client.Send(row.begin);
    RawClient upstream(upstream_.Accept());
    upstream.ReadUntil("\nabc");
    EXPECT_TRUE(client.Drip(row.drip));
    const RawResponse response = client.ReadResponse();
    EXPECT_EQ(response.status, 408);
    EXPECT_EQ(response.Field("Connection"), "close");
    EXPECT_TRUE(client.Ended());
    EXPECT_THAT(upstream.ReadToEnd(), Not(HasSubstr("0\r\n\r\n")));  // the body never became whole
  }
  EXPECT_EQ(gateway_->counters().upstream_errors, 0U);
}

TEST_F(GatewayTest, TheUpstreamsTimeBeginsWhenItHasTheWholeRequest) {
  options_.response_timeout = 50ms;
  StartByHand();
  RawClient client(port());
  client.Send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 6\r\n\r\nabc");
  RawClient upstream(upstream_.Accept());
  upstream.ReadUntil("\nabc");
  upstream.Send("HTTP/1.1 103 Early Hints\r\n\r\n");
  EXPECT_EQ(client.ReadResponse().status, 103);
  EXPECT_TRUE(client.Silent(300ms));  // the client is allowed body_timeout
  client.Send("def");
  EXPECT_EQ(upstream.ReadExactly(3), "def");
  EXPECT_EQ(client.ReadResponse().status, 504);
}

TEST_F(GatewayTest, AnUpstreamThatTakesNoMoreOfABodyIsA504) {
  options_.response_timeout = 50ms;
  StartByHand();
  RawClient client(port());
  client.Send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100000000\r\n\r\n");
  RawClient upstream(upstream_.Accept());
  upstream.ReadUntil("\r\n\r\n");
  // More than the sockets on the way can hold; the rest is never asked for.
  std::thread sender([&] { client.Send(std::string(std::size_t{32} << 20, 'x')); });
  EXPECT_EQ(client.ReadResponse().status, 504);
  sender.join();
  EXPECT_EQ(gateway_->counters().upstream_errors, 1U);
}

TEST_F(GatewayTest, AnAnswerThatBreaksOffIsSeenToBreakOff) {
  StartByHand();
  for (const std::string head :
       {"Content-Length: 10\r\n\r\nabc", "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n",
        "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\nzz\r\n"}) {
    SCOPED_TRACE(head);
    RawClient client(port());
    client.Send(kGet);
    RawClient upstream(upstream_.Accept());
    upstream.ReadUntil("\r\n\r\n");
    upstream.Send("HTTP/1.1 200 OK\r\n" + head);
    upstream.EndWriting();
    const RawResponse response = client.ReadResponse();
    EXPECT_EQ(response.status, 200);
    EXPECT_EQ(response.body, "abc");
    EXPECT_FALSE(response.complete);
  }
}

TEST_F(GatewayTest, AKeptConnectionThatDiedCostsNoRequest) {
  StartByHand();
  RawClient client(port());
  client.Send(kGet);
  {
    RawClient first(upstream_.Accept());
    first.ReadUntil("\r\n\r\n");
    first.Send(kOk);
    EXPECT_EQ(client.ReadResponse().status, 200);
  }
  // It is closed now.
  client.Send(kGet);
  {
    RawClient second(upstream_.Accept());
    EXPECT_THAT(second.ReadUntil("\r\n\r\n"), HasSubstr("GET / "));
    second.Send(kOk);
    EXPECT_EQ(client.ReadResponse().status, 200);
  }
  client.Send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nhi");
  RawClient third(upstream_.Accept());
  EXPECT_THAT(third.ReadUntil("hi"), HasSubstr("POST / "));
  third.Send(kOk);
  EXPECT_EQ(client.ReadResponse().status, 200);
}

TEST_F(GatewayTest, BytesThatNobodyAskedForAreNeverAnAnswer) {
  StartByHand();
  RawClient client(port());
  client.Send("HEAD / HTTP/1.1\r\nHost: a\r\n\r\n");
  RawClient first(upstream_.Accept());
  first.ReadUntil("\r\n\r\n");
  first.Send("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n");
  EXPECT_EQ(client.ReadResponse(/*to_head=*/true).status, 200);
  // A body after all, in the form of an answer.
  first.Send("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil");
  client.Send(kGet);
  RawClient second(upstream_.Accept());
  second.ReadUntil("\r\n\r\n");
  second.Send(kOk);
  EXPECT_EQ(client.ReadResponse().body, "ok");
}

TEST_F(GatewayTest, AResetIsNotTheEndOfAnAnswer) {
  StartByHand();
  RawClient client(port());
  client.Send(kGet);
  RawClient upstream(upstream_.Accept());
  upstream.ReadUntil("\r\n\r\n");
  upstream.Send("HTTP/1.1 200 OK\r\n\r\nabc");
  EXPECT_THAT(client.ReadUntil("\nabc\r\n"), HasSubstr("chunked"));
  upstream.Reset();
  EXPECT_EQ(client.ReadToEnd(), "");  // no last chunk
}

TEST_F(GatewayTest, AnUpstreamThatSaysCloseIsTakenAtItsWord) {
  StartByHand();
  RawClient client(port());
  client.Send(kGet);
  RawClient first(upstream_.Accept());
  first.ReadUntil("\r\n\r\n");
  first.Send("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok");
  EXPECT_EQ(client.ReadResponse().body, "ok");
  client.Send(kGet);
  RawClient second(upstream_.Accept());
  second.ReadUntil("\r\n\r\n");
  second.Send(kOk);
  EXPECT_EQ(client.ReadResponse().body, "ok");
}

TEST_F(GatewayTest, AnUpstreamThatDiesWithARequestIsAskedOnceMoreAtMost) {
  StartByHand();
  RawClient client(port());
  client.Send(kGet);
  RawClient first(upstream_.Accept());
  first.ReadUntil("\r\n\r\n");
  first.Send(kOk);
  EXPECT_EQ(client.ReadResponse().status, 200);
  client.Send(kGet);
  first.ReadUntil("\r\n\r\n");
  first.Close();
  {
    RawClient second(upstream_.Accept());
    second.ReadUntil("\r\n\r\n");
  }
  EXPECT_EQ(client.ReadResponse().status, 502);
  EXPECT_EQ(gateway_->counters().retries, 1U);
}

TEST_F(GatewayTest, ARequestWaitsForAFreeConnection) {
  options_.upstream_connections = 2;  // one for each loop
  StartByHand();
  std::vector<std::unique_ptr<RawClient>> clients;
  for (int i = 0; i < 3; ++i) {  // two of them at least share a loop
    clients.push_back(std::make_unique<RawClient>(port()));
    clients.back()->Send(kGet);
  }
  // One connection after the other, each kept for the next request of its loop or left alone.
  std::vector<std::thread> upstreams;
  for (int i = 0; i < 2; ++i) {
    upstreams.emplace_back([&] {
      const int socket = upstream_.Accept();
      if (socket < 0) return;
      RawClient upstream(socket);
      while (upstream.ReadUntil("\r\n\r\n").ends_with("\r\n\r\n")) upstream.Send(kOk);
    });
  }
  for (auto& client : clients) EXPECT_EQ(client->ReadResponse().status, 200);
  gateway_->Drain(0ms);
  ::shutdown(upstream_.socket(), SHUT_RDWR);
  for (std::thread& upstream : upstreams) upstream.join();
}

TEST_F(GatewayTest, ARequestDoesNotWaitForAFreeConnectionForEver) {
  options_.upstream_connections = 2;
  options_.connect_timeout = 50ms;
  StartByHand();
  std::vector<std::unique_ptr<RawClient>> clients;
  for (int i = 0; i < 3; ++i) {
    clients.push_back(std::make_unique<RawClient>(port()));
    clients.back()->Send(kGet);
  }
  Until([&] { return gateway_->counters().upstream_errors > 0; });
  gateway_->Drain(0ms);
  int busy = 0;
  for (auto& client : clients) busy += client->ReadResponse().status == 503 ? 1 : 0;
  EXPECT_GE(busy, 1);
}

TEST_F(GatewayTest, DrainAnswersWhatWasAsked) {
  StartByHand();
  RawClient busy(port());
  busy.Send(kGet);
  RawClient upstream(upstream_.Accept());
  upstream.ReadUntil("\r\n\r\n");
  // So many that each loop has one of them: when all have ended, every loop drains.
  std::vector<std::unique_ptr<RawClient>> idle;
  for (int i = 0; i < 20; ++i) idle.push_back(std::make_unique<RawClient>(port()));
  Until([&] { return gateway_->counters().connections == idle.size() + 1; });
  std::thread drain([&] { gateway_->Drain(10s); });
  for (const auto& client : idle) EXPECT_TRUE(client->Ended());
  upstream.Send(kOk);
  const RawResponse response = busy.ReadResponse();
  EXPECT_EQ(response.body, "ok");
  EXPECT_EQ(response.Field("Connection"), "close");
  drain.join();
}

TEST_F(GatewayTest, DrainIsBounded) {
  StartByHand();
  RawClient busy(port());
  busy.Send(kGet);
  RawClient upstream(upstream_.Accept());
  upstream.ReadUntil("\r\n\r\n");
  gateway_->Drain(50ms);
  EXPECT_EQ(gateway_->counters().connections, 0U);
}

TEST_F(GatewayTest, AClientThatLeavesIsNotWaitedFor) {
  StartByHand();
  RawClient client(port());
  client.Send(kGet);
  RawClient upstream(upstream_.Accept());
  upstream.ReadUntil("\r\n\r\n");
  client.Close();
  EXPECT_EQ(upstream.ReadToEnd(), "");
  Until([&] { return gateway_->counters().client_left == 1; });
}

}  // namespace
}  // namespace sluice::gateway
