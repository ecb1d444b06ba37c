// The gateway's port over TLS: what a client sees, and what it can do wrong.
#include <algorithm>
#include <csignal>
#include <memory>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "tests/gateway/tls_fixture.h"

namespace sluice::gateway {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class TlsGatewayTest : public TlsFixture {
 protected:
  explicit TlsGatewayTest(std::size_t loops = 2) : TlsFixture(loops) {
    UseCertificates({authority_.Issue({.names = {"site.test"}, .common_name = "site"})});
  }
  void UseCertificates(const std::vector<KeyPair>& pairs,
                       net::TlsVersion min_version = net::TlsVersion::k12) {
    options_.tls = Load(pairs, min_version);
  }
  // Answers `count` requests of one connection.
  std::thread ServeByHand(int count, std::string_view answer = kOk) {
    return std::thread([this, count, answer] {
      RawClient connection(upstream_.Accept());
      for (int i = 0; i < count; ++i) {
        connection.ReadUntil("\r\n\r\n");
        connection.Send(answer);
      }
    });
  }
};

TEST_F(TlsGatewayTest, AnswersOverTlsAndTellsTheUpstreamSo) {
  StartByHand();
  TlsClient client(port(), Trusting());
  ASSERT_TRUE(client.Handshake()) << client.why();
  EXPECT_EQ(client.version(), TLS1_3_VERSION);
  EXPECT_EQ(client.protocol(), "");
  client.Send("GET / HTTP/1.1\r\nHost: site.test\r\nX-Forwarded-Proto: http\r\n\r\n");
  RawClient upstream(upstream_.Accept());
  const std::string head = upstream.ReadUntil("\r\n\r\n");
  EXPECT_THAT(head, HasSubstr("\r\nX-Forwarded-Proto: https\r\n"));
  EXPECT_THAT(head, Not(HasSubstr("Proto: http\r\n")));
  upstream.Send(kOk);
  const RawResponse response = client.ReadResponse();
  EXPECT_EQ(response.status, 200);
  EXPECT_EQ(response.body, "ok");
  EXPECT_EQ(gateway_->counters().tls_full, 1U);
  EXPECT_EQ(gateway_->counters().tls_failures, 0U);
}

TEST_F(TlsGatewayTest, WritesTheSchemeIntoForwarded) {
  rule_options_.client_address.header = ForwardedHeader::kForwarded;
  StartByHand();
  TlsClient client(port(), Trusting());
  ASSERT_TRUE(client.Handshake()) << client.why();
  client.Send(kGet);
  RawClient upstream(upstream_.Accept());
  EXPECT_THAT(upstream.ReadUntil("\r\n\r\n"), HasSubstr(";proto=https\r\n"));
}

TEST_F(TlsGatewayTest, DeniesAndKeepsTheConnection) {
  StartByHand({MakeRule("api", HeaderSource("K"), Window(2, 1min))});
  std::thread upstream = ServeByHand(2);
  TlsClient client(port(), Trusting());
  ASSERT_TRUE(client.Handshake()) << client.why();
  for (const int status : {200, 200, 429, 429}) EXPECT_EQ(client.Ask(kGet).status, status);
  upstream.join();
  EXPECT_EQ(gateway_->counters().tls_full, 1U);
}

TEST_F(TlsGatewayTest, AnswersPipelinedRequestsInOrder) {
  StartWithOrders({});
  TlsClient client(port(), Trusting());
  ASSERT_TRUE(client.Handshake()) << client.why();
  const std::string get = "GET /v1/orders/x HTTP/1.1\r\nHost: a\r\n\r\n";
  const std::string missing = "DELETE /none HTTP/1.1\r\nHost: a\r\n\r\n";
  client.Send(get + missing + get + missing);
  const int found = client.ReadResponse().status;
  EXPECT_EQ(client.ReadResponse().status, 404);
  EXPECT_EQ(client.ReadResponse().status, found);
  EXPECT_EQ(client.ReadResponse().status, 404);
}

TEST_F(TlsGatewayTest, CarriesLongBodiesBothWays) {
  StartByHand();
  const std::string content = Pattern(5'000'003);
  for (const bool chunked : {false, true}) {
    SCOPED_TRACE(chunked);
    std::thread upstream([&] {
      RawClient connection(upstream_.Accept());
      const std::string head = connection.ReadUntil("\r\n\r\n");
      std::string got;
      if (chunked) {
        while (true) {
          const std::string line = connection.ReadUntil("\r\n");
          const std::size_t size = std::stoul(line, nullptr, 16);
          got += connection.ReadExactly(size + 2).substr(0, size);
          if (size == 0) break;
        }
        std::string out = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
        for (std::size_t at = 0; at < got.size(); at += 70'001) {
          const std::string piece = got.substr(at, 70'001);
          std::ostringstream size;
          size << std::hex << piece.size();
          out += size.str() + "\r\n" + piece + "\r\n";
        }
        connection.Send(out + "0\r\n\r\n");
      } else {
        got = connection.ReadExactly(content.size());
        connection.Send("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: " +
                        std::to_string(got.size()) + "\r\n\r\n" + got);
      }
      EXPECT_TRUE(got == content);
    });
    TlsClient client(port(), Trusting());
    ASSERT_TRUE(client.Handshake()) << client.why();
    std::thread sender([&] {
      const std::string head = "POST / HTTP/1.1\r\nHost: a\r\n";
      if (!chunked) {
        client.Send(head + "Content-Length: " + std::to_string(content.size()) + "\r\n\r\n");
        client.Send(content);
        return;
      }
      client.Send(head + "Transfer-Encoding: chunked\r\n\r\n");
      std::ostringstream size;
      size << std::hex << content.size();
      client.Send(size.str() + "\r\n" + content + "\r\n0\r\n\r\n");
    });
    sender.join();
    const RawResponse response = client.ReadResponse();
    upstream.join();
    EXPECT_EQ(response.status, 200);
    EXPECT_TRUE(response.complete);
    EXPECT_TRUE(response.body == content);
  }
}

TEST_F(TlsGatewayTest, ShowsTheCertificateThatTheClientAsksFor) {
  UseCertificates({authority_.Issue({.names = {"first.test"}, .common_name = "first"}),
                   authority_.Issue({.names = {"*.wild.test"}, .common_name = "wild"}),
                   authority_.Issue({.names = {"www.wild.test"}, .common_name = "exact"})});
  StartByHand();
  for (const int version : {TLS1_2_VERSION, TLS1_3_VERSION}) {
    const std::pair<std::string, std::string> rows[] = {{"first.test", "first"},
                                                        {"a.wild.test", "wild"},
                                                        {"WWW.wild.test", "exact"},
                                                        {"unknown.test", "first"},
                                                        {"", "first"}};
    for (const auto& [name, shown] : rows) {
      TlsClient client(port(), {.server_name = name, .max_version = version});
      ASSERT_TRUE(client.Handshake()) << client.why();
      EXPECT_EQ(client.peer_name(), shown) << name;
    }
  }
}

// One context made of several, each loaded by itself: whose own contexts are gone.
TEST_F(TlsGatewayTest, ShowsCertificatesThatWereJoined) {
  const auto alone = [this](const char* name) {
    return Load(std::vector<KeyPair>{authority_.Issue({.names = {std::string(name) + ".test"},
                                                       .common_name = name,
                                                       .through_intermediate = true})});
  };
  options_.tls = net::TlsServerContext::Join({alone("first"), alone("second"), alone("third")});
  StartWithOrders({});
  for (const int version : {TLS1_2_VERSION, TLS1_3_VERSION}) {
    for (const std::string name : {"first", "second", "third"}) {
      TlsOptions options = Trusting(name + ".test");
      options.max_version = version;
      TlsClient client(port(), options);
      ASSERT_TRUE(client.Handshake()) << client.why();
      EXPECT_EQ(client.peer_name(), name);
      EXPECT_EQ(client.Ask("GET /none HTTP/1.1\r\nHost: a\r\n\r\n").status, 404);
      TlsClient again(port(), options);
      if (client.tickets() == 0) continue;
      again.Resume(client);
      ASSERT_TRUE(again.Handshake()) << again.why();
      EXPECT_TRUE(again.resumed());
    }
  }
}

TEST_F(TlsGatewayTest, SpeaksHttp1OrSaysThatItDoesNot) {
  StartByHand();
  TlsOptions options = Trusting();
  options.protocols = "\x02h2\x08http/1.1";
  TlsClient both(port(), options);
  ASSERT_TRUE(both.Handshake()) << both.why();
  EXPECT_EQ(both.protocol(), "http/1.1");
  for (const std::string_view other :
       {std::string_view("\x02h2"), std::string_view("\x08http/1.0")}) {
    options.protocols = other;
    TlsClient client(port(), options);
    EXPECT_FALSE(client.Handshake());
    EXPECT_THAT(client.why(), HasSubstr("no application protocol"));
  }
  Until([this] { return gateway_->counters().tls_failures == 2; });
}

TEST_F(TlsGatewayTest, RefusesVersionsBelowTheLowest) {
  UseCertificates({authority_.Issue({.names = {"site.test"}})}, net::TlsVersion::k13);
  StartByHand();
  TlsOptions options = Trusting();
  options.max_version = TLS1_2_VERSION;
  TlsClient old(port(), options);
  EXPECT_FALSE(old.Handshake());
  EXPECT_THAT(old.why(), HasSubstr("protocol version"));
  TlsClient now(port(), Trusting());
  EXPECT_TRUE(now.Handshake()) << now.why();
}

TEST_F(TlsGatewayTest, ResumesByTicketOnEveryLoop) {
  StartWithOrders({});
  for (const int version : {TLS1_2_VERSION, TLS1_3_VERSION}) {
    TlsOptions options = Trusting();
    options.max_version = version;
    std::unique_ptr<TlsClient> before;
    for (int i = 0; i < 8; ++i) {
      auto client = std::make_unique<TlsClient>(port(), options);
      if (before) client->Resume(*before);  // whichever loop gave the ticket
      ASSERT_TRUE(client->Handshake()) << client->why();
      EXPECT_EQ(client->resumed(), i > 0);
      // TLS 1.3 sends its tickets behind the handshake, each for one use.
      EXPECT_EQ(client->Ask("GET /none HTTP/1.1\r\nHost: a\r\n\r\n").status, 404);
      if (client->tickets() > 0) before = std::move(client);
    }
  }
  EXPECT_EQ(gateway_->counters().tls_full, 2U);
  EXPECT_EQ(gateway_->counters().tls_resumed, 14U);
}

TEST_F(TlsGatewayTest, TellsWhoComesWithoutTlsOfIt) {
  StartByHand();
  for (const std::string method : {"GET", "POST", "OPTIONS", "PATCH", "CONNECT"}) {
    RawClient client(port());
    const RawResponse response = client.Ask(method + " / HTTP/1.1\r\nHost: a\r\n\r\n");
    EXPECT_EQ(response.status, 400) << method;
    EXPECT_THAT(response.body, HasSubstr("https://"));
    EXPECT_EQ(response.Field("Connection"), "close");
    EXPECT_TRUE(response.Has("X-Request-Id"));
    EXPECT_TRUE(client.Ended());
  }
  EXPECT_EQ(gateway_->counters().requests, 0U);
  EXPECT_EQ(gateway_->counters().tls_failures, 5U);
}

TEST_F(TlsGatewayTest, ClosesOnWhatIsNoTls) {
  StartByHand();
  std::string noise = Pattern(5'000);
  for (int seed = 0; seed < 40; ++seed) {
    std::rotate(noise.begin(), noise.begin() + 97, noise.end());
    noise[0] =
        static_cast<char>(seed % 2 == 0 ? 0x16 : noise[0] | 0x80);  // a record of a handshake
    if (seed % 4 == 0) noise[1] = 3;                                // of SSL 3 or later
    RawClient client(port());
    client.Send(noise);
    client.EndWriting();
    client.ReadToEnd();
  }
  Until([this] { return gateway_->counters().connections == 0; });
  EXPECT_EQ(gateway_->counters().tls_failures, 40U);
}

TEST_F(TlsGatewayTest, OutlivesAHandshakeThatIsCutAnywhere) {
  StartByHand();
  const std::string hello = TlsClient(port(), Trusting()).FirstFlight();
  ASSERT_GT(hello.size(), 100U);
  for (std::size_t size = 0; size < hello.size(); size += size < 12 ? 1 : 7) {
    RawClient client(port());
    client.Send(hello.substr(0, size));
    if (size % 2 == 0) {
      client.Reset();
    } else {
      client.EndWriting();
      client.ReadToEnd();
    }
  }
  {
    TlsClient leaves(port(), Trusting());  // after the server's first flight
    leaves.SendPlain(leaves.FirstFlight());
    EXPECT_FALSE(leaves.Silent(20s));
  }
  Until([this] { return gateway_->counters().connections == 0; });
  TlsClient client(port(), Trusting());
  EXPECT_TRUE(client.Handshake()) << client.why();
}

TEST_F(TlsGatewayTest, WaitsForAHandshakeNoLongerThanForAHead) {
  options_.header_timeout = 200ms;
  StartByHand();
  const std::string hello = TlsClient(port(), Trusting()).FirstFlight();
  RawClient silent(port());
  EXPECT_EQ(silent.ReadToEnd(), "");
  RawClient stalled(port());
  stalled.Send(hello.substr(0, 50));
  EXPECT_EQ(stalled.ReadToEnd(), "");
  RawClient slow(port());
  for (std::size_t at = 0; at < hello.size() && slow.Silent(5ms); ++at)
    slow.Send(hello.substr(at, 1));
  Until([this] { return gateway_->counters().connections == 0; });
  // Who said nothing at all is not counted.
  EXPECT_EQ(gateway_->counters().tls_failures, 2U);
  EXPECT_EQ(gateway_->counters().tls_full, 0U);
}

TEST_F(TlsGatewayTest, TakesAHandshakeByteByByte) {
  StartByHand();
  TlsClient client(port(), Trusting());
  for (const char c : client.FirstFlight()) client.SendPlain({&c, 1});
  ASSERT_TRUE(client.Handshake()) << client.why();
  std::thread upstream = ServeByHand(1);
  EXPECT_EQ(client.Ask(kGet).status, 200);
  upstream.join();
}

TEST_F(TlsGatewayTest, RenegotiatesNothingAndChangesKeys) {
  StartWithOrders({});
  TlsOptions options = Trusting();
  TlsClient now(port(), options);
  ASSERT_TRUE(now.Handshake()) << now.why();
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(now.UpdateKeys());
    EXPECT_EQ(now.Ask("GET /none HTTP/1.1\r\nHost: a\r\n\r\n").status, 404);
  }
  options.max_version = TLS1_2_VERSION;
  TlsClient old(port(), options);
  ASSERT_TRUE(old.Handshake()) << old.why();
  EXPECT_EQ(old.Ask("GET /none HTTP/1.1\r\nHost: a\r\n\r\n").status, 404);
  EXPECT_FALSE(old.Renegotiate());
  EXPECT_THAT(old.why(), HasSubstr("no renegotiation"));
}

// An answer that ends with the connection is whole only if TLS says so.
TEST_F(TlsGatewayTest, EndsAnAnswerOfUnknownLengthByTls) {
  StartByHand();
  const std::string_view get = "GET / HTTP/1.0\r\nHost: a\r\n\r\n";
  for (const bool whole : {true, false}) {
    SCOPED_TRACE(whole);
    std::thread upstream([&] {
      RawClient connection(upstream_.Accept());
      connection.ReadUntil("\r\n\r\n");
      connection.Send("HTTP/1.1 200 OK\r\n\r\nhalf");
      if (!whole) connection.Reset();
    });
    TlsClient client(port(), Trusting());
    ASSERT_TRUE(client.Handshake()) << client.why();
    const RawResponse response = client.Ask(get);
    upstream.join();
    EXPECT_EQ(response.complete, whole);
  }
}

TEST_F(TlsGatewayTest, SendsASmallAnswerAsOneRecord) {
  StartByHand();
  TlsOptions options = Trusting();
  options.max_version = TLS1_2_VERSION;  // 1.3 has records that are no content
  TlsClient client(port(), options);
  ASSERT_TRUE(client.Handshake()) << client.why();
  const std::string answer = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1770\r\n" +
                             std::string(6'000, 'x') + "\r\n0\r\n\r\n";
  std::thread upstream = ServeByHand(3, answer);
  // What comes from the upstream at once is more with each answer: its buffer grows.
  for (int i = 0; i < 2; ++i) EXPECT_EQ(client.Ask(kGet).body.size(), 6'000U);
  const int before = client.records();
  EXPECT_EQ(client.Ask(kGet).body.size(), 6'000U);
  upstream.join();
  EXPECT_EQ(client.records() - before, 1);
}

TEST_F(TlsGatewayTest, EndsALongAnswerByTlsThoughTheClientIsSlow) {
  StartByHand();
  const std::string content = Pattern(4'000'000);
  std::thread upstream([&] {
    RawClient connection(upstream_.Accept());
    connection.ReadUntil("\r\n\r\n");
    connection.Send("HTTP/1.1 200 OK\r\n\r\n" + content);
  });
  TlsClient client(port(), Trusting());
  const int bytes = 100'000;
  ::setsockopt(client.socket(), SOL_SOCKET, SO_RCVBUF, &bytes, sizeof(bytes));
  ASSERT_TRUE(client.Handshake()) << client.why();
  const RawResponse response = client.Ask("GET / HTTP/1.0\r\nHost: a\r\n\r\n");
  upstream.join();
  EXPECT_TRUE(response.body == content);
  EXPECT_TRUE(response.complete);
}

// SSL_write() on a socket of OpenSSL's own would end this process by SIGPIPE, unless somebody (Asio
// does) has it ignored.
TEST_F(TlsGatewayTest, OutlivesClientsThatVanishWhileItWrites) {
  StartByHand();
  const auto before = std::signal(SIGPIPE, SIG_DFL);
  for (int i = 0; i < 5; ++i) {
    TlsClient client(port(), Trusting());
    ASSERT_TRUE(client.Handshake()) << client.why();
    client.Send(kGet);
    RawClient upstream(upstream_.Accept());
    upstream.ReadUntil("\r\n\r\n");
    upstream.Send("HTTP/1.1 200 OK\r\nContent-Length: 100000000\r\n\r\n");
    client.ReadExactly(10);
    client.CutWriting();  // after an end a reset is EPIPE, not ECONNRESET
    client.Reset();
    while (upstream.Send(std::string(100'000, 'x'))) {
    }
  }
  Until([this] { return gateway_->counters().client_left == 5; });
  std::signal(SIGPIPE, before);
}

TEST_F(TlsGatewayTest, SaysThatAnIdleConnectionEnds) {
  options_.idle_timeout = 100ms;
  StartWithOrders({});
  TlsClient client(port(), Trusting());
  ASSERT_TRUE(client.Handshake()) << client.why();
  EXPECT_EQ(client.Ask("GET /none HTTP/1.1\r\nHost: a\r\n\r\n").status, 404);
  EXPECT_TRUE(client.Ended());
}

TEST_F(TlsGatewayTest, AnswersAClientThatHasSaidAll) {
  StartByHand();
  TlsClient client(port(), Trusting());
  ASSERT_TRUE(client.Handshake()) << client.why();
  client.Send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nhi");
  client.EndWriting();
  RawClient upstream(upstream_.Accept());
  upstream.ReadUntil("hi");
  upstream.Send(kOk);
  EXPECT_EQ(client.ReadResponse().body, "ok");
  EXPECT_TRUE(client.Ended());
}

// On one loop it is known in which order connections hear of the drain: as they came.
class TlsDrainTest : public TlsGatewayTest {
 protected:
  TlsDrainTest() : TlsGatewayTest(/*loops=*/1) {}

  // Until the gateway drains, and has told the connections that were there before.
  void BeginToDrain(std::chrono::milliseconds limit) {
    RawClient last(port());
    Until([this] { return gateway_->counters().connections == clients_.size() + 1; });
    drain_ = std::thread([this, limit] { gateway_->Drain(limit); });
    EXPECT_EQ(last.ReadToEnd(), "");
  }

  // Before the drain begins each has sent a part of its first bytes.
  void BeginHandshake(const TlsOptions& options) {
    clients_.push_back(std::make_unique<TlsClient>(port(), options));
    const std::string hello = clients_.back()->FirstFlight();
    clients_.back()->SendPlain(hello.substr(0, 50));
    rest_.push_back(hello.substr(50));
  }
  TlsClient& EndHandshake(std::size_t i) {
    clients_[i]->SendPlain(rest_[i]);
    EXPECT_TRUE(clients_[i]->Handshake()) << clients_[i]->why();
    return *clients_[i];
  }

  std::vector<std::unique_ptr<TlsClient>> clients_;
  std::vector<std::string> rest_;
  std::thread drain_;
};

// Who has begun with a handshake has a request, and sends it behind the handshake's end.
TEST_F(TlsDrainTest, DrainsBetweenHandshakeAndAnswer) {
  StartByHand();
  RawClient silent(port());  // ended at once
  TlsClient idle(port(), Trusting());
  ASSERT_TRUE(idle.Handshake()) << idle.why();
  idle.UpdateKeys();  // which is no request
  TlsClient busy(port(), Trusting());
  ASSERT_TRUE(busy.Handshake()) << busy.why();
  busy.Send(kGet);
  RawClient upstream(upstream_.Accept());
  upstream.ReadUntil("\r\n\r\n");
  std::thread drain([this] { gateway_->Drain(20s); });
  EXPECT_EQ(silent.ReadToEnd(), "");
  EXPECT_TRUE(idle.Ended());
  upstream.Send(kOk);
  const RawResponse response = busy.ReadResponse();
  EXPECT_EQ(response.body, "ok");
  EXPECT_EQ(response.Field("Connection"), "close");
  EXPECT_TRUE(busy.Ended());
  drain.join();
}

TEST_F(TlsDrainTest, AnswersTheRequestBehindAHandshake) {
  StartByHand();
  for (const int version : {TLS1_2_VERSION, TLS1_3_VERSION}) {
    TlsOptions options = Trusting();
    options.max_version = version;
    BeginHandshake(options);
  }
  BeginToDrain(20s);
  for (std::size_t i = 0; i < clients_.size(); ++i) {
    TlsClient& client = EndHandshake(i);
    client.Send(kGet);
    RawClient upstream(upstream_.Accept());
    upstream.ReadUntil("\r\n\r\n");
    upstream.Send(kOk);
    const RawResponse response = client.ReadResponse();
    EXPECT_EQ(response.status, 200);
    EXPECT_EQ(response.Field("Connection"), "close");
    EXPECT_TRUE(client.Ended());
  }
  drain_.join();
}

TEST_F(TlsDrainTest, WaitsForThatRequestNoLongerThanForAHead) {
  options_.header_timeout = 3s;
  StartByHand();
  BeginHandshake(Trusting());
  BeginToDrain(1h);
  EXPECT_TRUE(EndHandshake(0).Ended());
  drain_.join();
}

TEST_F(TlsGatewayTest, AbortsHandshakesWritesAndReads) {
  StartByHand();
  const std::string hello = TlsClient(port(), Trusting()).FirstFlight();
  RawClient stalled(port());
  stalled.Send(hello.substr(0, 50));
  TlsClient writing(port(), Trusting());
  ASSERT_TRUE(writing.Handshake()) << writing.why();
  writing.Send(kGet);
  RawClient upstream(upstream_.Accept());
  upstream.ReadUntil("\r\n\r\n");
  std::thread pour([&] {  // more than all buffers hold
    upstream.Send("HTTP/1.1 200 OK\r\nContent-Length: 100000000\r\n\r\n");
    while (upstream.Send(std::string(100'000, 'x'))) {
    }
  });
  Until([this] { return gateway_->counters().connections == 2; });
  writing.ReadExactly(1'000);
  gateway_->Drain(0ms);
  pour.join();
  EXPECT_FALSE(writing.ReadResponse().complete);
}

TEST_F(TlsGatewayTest, ReplacesCertificatesUnderOpenConnections) {
  StartWithOrders({});
  const std::string_view get = "GET /none HTTP/1.1\r\nHost: a\r\n\r\n";
  TlsClient before(port(), Trusting());
  ASSERT_TRUE(before.Handshake()) << before.why();
  TlsClient halfway(port(), Trusting());
  const std::string flight = halfway.FirstFlight();
  halfway.SendPlain(flight.substr(0, 50));
  Until([this] { return gateway_->counters().connections >= 2; });
  gateway_->ReplaceTls(
      Load(std::vector<KeyPair>{authority_.Issue({.names = {"site.test"}, .common_name = "new"})}));
  options_.tls.reset();
  halfway.SendPlain(flight.substr(50));
  ASSERT_TRUE(halfway.Handshake()) << halfway.why();
  EXPECT_EQ(halfway.peer_name(), "site");
  EXPECT_EQ(halfway.Ask(get).status, 404);
  EXPECT_EQ(before.Ask(get).status, 404);
  for (int i = 0; i < 4; ++i) {
    TlsClient after(port(), Trusting());
    ASSERT_TRUE(after.Handshake()) << after.why();
    EXPECT_EQ(after.peer_name(), "new");
    EXPECT_EQ(after.Ask(get).status, 404);
  }
}

TEST_F(TlsGatewayTest, JoinsConnectionsAfterAnUpgrade) {
  StartByHand();
  const std::string content = Pattern(3'000'000);
  TlsClient client(port(), Trusting());
  ASSERT_TRUE(client.Handshake()) << client.why();
  client.Send(
      "GET /chat HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\nearly");
  RawClient upstream(upstream_.Accept());
  EXPECT_THAT(upstream.ReadUntil("\r\n\r\n"), HasSubstr("Upgrade: websocket"));
  upstream.Send(
      "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\nfirst");
  EXPECT_EQ(client.ReadResponse().status, 101);
  EXPECT_EQ(client.ReadExactly(5), "first");
  EXPECT_EQ(upstream.ReadExactly(5), "early");
  // Both directions at once.
  std::thread down([&] { upstream.Send(content); });
  std::thread up([&] { EXPECT_TRUE(upstream.ReadExactly(content.size()) == content); });
  client.Send(content);
  EXPECT_TRUE(client.ReadExactly(content.size()) == content);
  down.join();
  up.join();
  client.UpdateKeys();
  client.Send("still here");
  EXPECT_EQ(upstream.ReadExactly(10), "still here");
  // What one side has said in full the other hears so, and may still answer.
  client.EndWriting();
  EXPECT_TRUE(upstream.Ended());
  upstream.Send("last words");
  upstream.EndWriting();
  EXPECT_EQ(client.ReadExactly(10), "last words");
  EXPECT_TRUE(client.Ended());
}

TEST_F(TlsGatewayTest, TellsTheClientOfATunnelThatBrokeOff) {
  StartByHand();
  TlsClient client(port(), Trusting());
  ASSERT_TRUE(client.Handshake()) << client.why();
  client.Send("GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n");
  RawClient upstream(upstream_.Accept());
  upstream.ReadUntil("\r\n\r\n");
  upstream.Send("HTTP/1.1 101 X\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n");
  EXPECT_EQ(client.ReadResponse().status, 101);
  upstream.Reset();
  EXPECT_FALSE(client.Ended());  // no orderly end
}

}  // namespace
}  // namespace sluice::gateway
