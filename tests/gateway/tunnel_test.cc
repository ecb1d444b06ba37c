// Requests that change the protocol, and the tunnels that come of them.
#include <poll.h>

#include <algorithm>

#include "tests/gateway/gateway_fixture.h"

namespace sluice::gateway {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

const std::string kUpgrade =
    "GET /chat HTTP/1.1\r\nHost: a\r\nK: ann\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n";
const std::string kGet = "GET / HTTP/1.1\r\nHost: a\r\nK: ann\r\n\r\n";
const std::string kOk = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
const std::string kSwitching =
    "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n";

// A tunnel whose two ends the test holds.
struct Tunnel {
  Tunnel(std::uint16_t port, const RawListener& listener)
      : client(port), upstream((client.Send(kUpgrade), listener.Accept())) {
    EXPECT_THAT(upstream.ReadUntil("\r\n\r\n"), HasSubstr("Upgrade: websocket\r\n"));
    upstream.Send(kSwitching);
    EXPECT_EQ(client.ReadResponse().status, 101);
  }

  RawClient client;
  RawClient upstream;
};

// What a socket takes until nobody has read for a while.
std::size_t SendUntilFull(RawClient& from, const std::string& bytes) {
  std::size_t sent = 0;
  pollfd room{.fd = from.socket(), .events = POLLOUT, .revents = 0};
  while (sent < bytes.size() && ::poll(&room, 1, 300) == 1) {
    const ssize_t size = ::send(from.socket(), bytes.data() + sent, bytes.size() - sent,
                                MSG_DONTWAIT | MSG_NOSIGNAL);
    if (size > 0) sent += static_cast<std::size_t>(size);
  }
  return sent;
}

std::string Numbers(std::size_t size) {
  std::string bytes;
  for (std::size_t i = 0; bytes.size() < size; ++i) bytes += std::to_string(i) + ",";
  return bytes;
}

TEST_F(GatewayTest, AnAgreedUpgradeJoinsTheTwoConnections) {
  StartByHand({MakeRule("api", HeaderSource("K"), Window(5, 1min))});
  RawClient client(port());
  client.Send(kUpgrade + "early from the client");
  RawClient upstream(upstream_.Accept());
  const std::string request = upstream.ReadUntil("\r\n\r\n");
  EXPECT_THAT(request, HasSubstr("\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"));
  EXPECT_THAT(request, HasSubstr("\r\nX-Forwarded-For: 127.0.0.1\r\n"));
  EXPECT_TRUE(upstream.Silent(30ms));  // it has not agreed yet
  upstream.Send("HTTP/1.1 103 Early Hints\r\n\r\n" + kSwitching + "early from the upstream");
  EXPECT_EQ(client.ReadResponse().status, 103);
  const RawResponse answer = client.ReadResponse();
  EXPECT_EQ(answer.status, 101);
  EXPECT_EQ(answer.Field("Connection"), "Upgrade");
  EXPECT_EQ(answer.Field("Upgrade"), "websocket");
  EXPECT_EQ(answer.Field("RateLimit"), "\"api\";r=4;t=60");
  EXPECT_EQ(answer.Field("X-Request-Id").size(), 32U);
  EXPECT_EQ(client.ReadExactly(23), "early from the upstream");
  EXPECT_EQ(upstream.ReadExactly(21), "early from the client");
  for (int i = 0; i < 3; ++i) {
    client.Send("GET / HTTP/1.1\r\n");
    EXPECT_EQ(upstream.ReadExactly(16), "GET / HTTP/1.1\r\n");
    upstream.Send(std::string("\0\xff\r\n\r\n", 6));
    EXPECT_EQ(client.ReadExactly(6), std::string("\0\xff\r\n\r\n", 6));
  }
  EXPECT_EQ(gateway_->counters().requests, 1U);
}

TEST_F(GatewayTest, EachSideOfATunnelMaySayAllBeforeTheOther) {
  // Before the tunnel, a client that holds a slot and says no more counts as gone.
  StartByHand({MakeRule("slots", HeaderSource("K"), Slots(10))});
  {
    Tunnel tunnel(port(), upstream_);
    tunnel.client.Send("last words");
    tunnel.client.EndWriting();
    EXPECT_EQ(tunnel.upstream.ReadToEnd(), "last words");
    tunnel.upstream.Send("noted");
    EXPECT_EQ(tunnel.client.ReadExactly(5), "noted");
    tunnel.upstream.Close();
    EXPECT_TRUE(tunnel.client.Ended());
  }
  {
    Tunnel tunnel(port(), upstream_);
    tunnel.upstream.Send("last words");
    tunnel.upstream.EndWriting();
    EXPECT_EQ(tunnel.client.ReadToEnd(), "last words");
    tunnel.client.Send("noted");
    EXPECT_EQ(tunnel.upstream.ReadExactly(5), "noted");
    tunnel.client.Close();
    EXPECT_TRUE(tunnel.upstream.Ended());
  }
  Until([&] { return gateway_->counters().connections == 0; });
}

TEST_F(GatewayTest, ARefusedUpgradeIsAnOrdinaryAnswer) {
  StartByHand();
  RawClient client(port());
  client.Send(kUpgrade + kGet);
  RawClient upstream(upstream_.Accept());
  upstream.ReadUntil("\r\n\r\n");
  upstream.Send("HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\nno");
  EXPECT_EQ(client.ReadResponse().body, "no");
  const std::string next = upstream.ReadUntil("\r\n\r\n");
  EXPECT_THAT(next, HasSubstr("GET / HTTP/1.1\r\n"));
  EXPECT_THAT(next, Not(HasSubstr("Upgrade")));
  upstream.Send(kSwitching);  // which this request did not ask for
  EXPECT_EQ(client.ReadResponse().status, 502);
}

TEST_F(GatewayTest, OnlyTheProtocolsThatAreAllowedCanBeChangedTo) {
  options_.upgrades = {"ssh"};
  StartByHand();
  RawClient client(port());
  client.Send(kUpgrade);
  {
    RawClient upstream(upstream_.Accept());
    EXPECT_THAT(upstream.ReadUntil("\r\n\r\n"), Not(HasSubstr("Upgrade")));
    upstream.Send(kOk);
    EXPECT_EQ(client.ReadResponse().status, 200);
    client.Send("GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: h2c, ssh\r\n\r\n");
    EXPECT_THAT(upstream.ReadUntil("\r\n\r\n"), HasSubstr("\r\nUpgrade: ssh\r\n"));
    upstream.Send("HTTP/1.1 101 Yes\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n");
    EXPECT_EQ(client.ReadResponse().status, 502);
  }
}

TEST_F(GatewayTest, ARequestForAnUpgradeHasNoBodyAndIsChargedLikeAnyOther) {
  StartByHand({MakeRule("api", HeaderSource("K"), Window(1, 1min))});
  RawClient wordy(port());
  for (const std::string body :
       {"Content-Length: 2\r\n\r\nab", "Transfer-Encoding: chunked\r\n\r\n"}) {
    RawClient client(port());
    EXPECT_EQ(client.Ask(kUpgrade.substr(0, kUpgrade.size() - 2) + body).status, 400);
  }
  EXPECT_EQ(gateway_->counters().requests, 0U);
  const Tunnel tunnel(port(), upstream_);
  RawClient denied(port());
  EXPECT_EQ(denied.Ask(kUpgrade).status, 429);
  const RawResponse again = denied.Ask(kUpgrade);  // on the same connection
  EXPECT_EQ(again.status, 429);
  EXPECT_EQ(again.Field("Content-Type"), "application/problem+json");
}

TEST_F(GatewayTest, ATunnelHoldsLittleOfWhatNobodyReads) {
  StartByHand();
  Tunnel tunnel(port(), upstream_);
  // What the kernel's buffers may take of it, and the gateway's 64 KiB, is far less than all.
  const std::string bytes = Numbers(std::size_t{64} << 20);
  for (const bool up : {true, false}) {
    RawClient& from = up ? tunnel.client : tunnel.upstream;
    RawClient& to = up ? tunnel.upstream : tunnel.client;
    const std::size_t taken = SendUntilFull(from, bytes);
    EXPECT_LT(taken, bytes.size() / 2);
    std::thread rest([&] { from.Send(std::string_view(bytes).substr(taken)); });
    // Meanwhile the other direction is free.
    to.Send("go on");
    EXPECT_EQ(from.ReadExactly(5), "go on");
    EXPECT_TRUE(to.ReadExactly(bytes.size()) == bytes);
    rest.join();
  }
}

TEST_F(GatewayTest, ATunnelHoldsItsSlotsHoweverItEnds) {
  StartByHand({MakeRule("slots", HeaderSource("K"), Slots(2))});
  const auto free = [&] { return Look("ann").claims[0].decision.remaining; };
  const struct {
    const char* what;
    std::function<void(Tunnel&)> end;
  } rows[] = {
      {"the client closes",
       [](Tunnel& tunnel) {
         tunnel.client.Close();
         tunnel.upstream.Close();
       }},
      {"the upstream closes",
       [](Tunnel& tunnel) {
         tunnel.upstream.Close();
         tunnel.client.Close();
       }},
      {"the client resets", [](Tunnel& tunnel) { tunnel.client.Reset(); }},
      {"the upstream resets", [](Tunnel& tunnel) { tunnel.upstream.Reset(); }},
      {"the client leaves while the upstream takes no more",
       [](Tunnel& tunnel) {
         SendUntilFull(tunnel.client, Numbers(std::size_t{64} << 20));
         tunnel.client.Reset();
         while (tunnel.upstream.Send("x")) std::this_thread::yield();
       }},
      {"the upstream resets what is on its way",
       [](Tunnel& tunnel) {
         tunnel.client.Send("x");
         tunnel.upstream.Reset();
       }},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.what);
    Tunnel tunnel(port(), upstream_);
    tunnel.client.Send("still there");
    EXPECT_EQ(tunnel.upstream.ReadExactly(11), "still there");
    EXPECT_EQ(free(), 1U);
    row.end(tunnel);
    Until([&] { return free() == 2; });
    Until([&] { return gateway_->counters().connections == 0; });
  }
  // Each came back once: two are free, and no third.
  const Tunnel first(port(), upstream_);
  const Tunnel second(port(), upstream_);
  EXPECT_EQ(Get("/").status, 429);
}

TEST_F(GatewayTest, ATunnelRenewsItsSlots) {
  StartByHand({MakeRule("slots", HeaderSource("K"), Slots(1, 150ms))});
  const Tunnel tunnel(port(), upstream_);
  for (int i = 0; i < 5; ++i) {
    clock_.Advance(140ms);
    EXPECT_EQ(Look("ann").answer, Answer::kLimited);
    Until([&] { return Look("ann").claims[0].decision.retry_after > 100ms; });
  }
}

TEST_F(GatewayTest, ATunnelThroughWhichNothingPassesEnds) {
  options_.tunnel_idle_timeout = 200ms;
  StartByHand();
  Tunnel tunnel(port(), upstream_);
  const auto begin = std::chrono::steady_clock::now();
  // Either direction keeps it open.
  for (int i = 0; std::chrono::steady_clock::now() < begin + 600ms; ++i) {
    RawClient& from = i % 2 == 0 ? tunnel.client : tunnel.upstream;
    RawClient& to = i % 2 == 0 ? tunnel.upstream : tunnel.client;
    from.Send("x");
    ASSERT_EQ(to.ReadExactly(1), "x");
  }
  EXPECT_TRUE(tunnel.client.Ended());
  EXPECT_TRUE(tunnel.upstream.Ended());
}

TEST_F(GatewayTest, ATunnelThatIsHalfClosedIsNotWaitedForAsLong) {
  options_.response_timeout = 50ms;
  StartByHand();
  Tunnel tunnel(port(), upstream_);
  EXPECT_TRUE(tunnel.client.Silent(300ms));
  tunnel.upstream.EndWriting();
  EXPECT_TRUE(tunnel.client.Ended());
  EXPECT_TRUE(tunnel.upstream.Ended());
}

TEST_F(GatewayTest, DrainEndsTunnelsAtItsBound) {
  StartByHand();
  Tunnel tunnel(port(), upstream_);
  std::thread drain([&] { gateway_->Drain(200ms); });
  tunnel.client.Send("in time");
  EXPECT_EQ(tunnel.upstream.ReadExactly(7), "in time");
  drain.join();
  EXPECT_TRUE(tunnel.client.Ended());
  EXPECT_TRUE(tunnel.upstream.Ended());
}

}  // namespace
}  // namespace sluice::gateway
