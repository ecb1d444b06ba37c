// Upstreams over TLS: whom the gateway believes, and what it does with whom it does not.
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "sluice/base/log.h"
#include "tests/gateway/tls_fixture.h"

namespace sluice::gateway {
namespace {

using net::TlsClientContext;
using ::testing::HasSubstr;

class TlsUpstreamTest : public TlsFixture {
 protected:
  TlsUpstreamTest() : TlsFixture(/*loops=*/1) {}
  ~TlsUpstreamTest() override { log::SetSink(nullptr); }

  // Every upstream is this process; its address is 127.0.0.1.
  void AddUpstream(const RawListener& listener, TlsClientContext::Options options) {
    options_.upstreams.push_back({.address = {"127.0.0.1", listener.port()}, .tls = Load(options)});
  }
  void StartTrusting(TlsClientContext::Options options = {}) {
    if (options.verify) options.ca_file = authority_.ca_file();
    AddUpstream(upstream_, std::move(options));
    Start({}, upstream_.port());
  }
  [[nodiscard]] KeyPair Good() { return authority_.Issue({.names = {"127.0.0.1"}}); }
  // The upstream's end of the next connection, with this certificate.
  [[nodiscard]] std::unique_ptr<TlsClient> Accept(const KeyPair& pair) const {
    return std::make_unique<TlsClient>(upstream_.Accept(),
                                       TlsOptions{.server = true, .pair = pair});
  }
  void KeepLog() {
    {
      const std::lock_guard lock(mutex_);
      log_.clear();
    }
    log::SetSink([this](std::string_view line) {
      const std::lock_guard lock(mutex_);
      log_.append(line).append("\n");
    });
  }
  [[nodiscard]] std::string Log() {
    const std::lock_guard lock(mutex_);
    return log_;
  }

  std::mutex mutex_;
  std::string log_;
};

TEST_F(TlsUpstreamTest, AsksAnUpstreamThatProvesItsAddress) {
  StartTrusting();
  RawClient client(port());
  client.Send(kGet);
  const auto upstream = Accept(Good());
  ASSERT_TRUE(upstream->Handshake()) << upstream->why();
  EXPECT_EQ(upstream->asked_name(), "");  // an address is no name to ask for
  EXPECT_THAT(upstream->ReadUntil("\r\n\r\n"), HasSubstr("X-Forwarded-Proto: http\r\n"));
  upstream->Send(kOk);
  EXPECT_EQ(client.ReadResponse().body, "ok");
  // The connection is kept, whatever TLS has to say meanwhile.
  ASSERT_TRUE(upstream->UpdateKeys());
  client.Send(kGet);
  upstream->ReadUntil("\r\n\r\n");
  upstream->Send(kOk);
  EXPECT_EQ(client.ReadResponse().body, "ok");
  EXPECT_EQ(gateway_->counters().retries, 0U);
}

TEST_F(TlsUpstreamTest, AZoneIsNoPartOfTheAddressThatIsProved) {
  StartTrusting({.server_name = "::1%lo"});
  for (const bool impostor : {true, false}) {
    SCOPED_TRACE(impostor);
    RawClient client(port());
    client.Send(kGet);
    const auto upstream = Accept(authority_.Issue({.names = {impostor ? "::2" : "::1"}}));
    EXPECT_EQ(upstream->Handshake(), !impostor);
    if (!impostor) {
      upstream->ReadUntil("\r\n\r\n");
      upstream->Send(kOk);
    }
    EXPECT_EQ(client.ReadResponse().status, impostor ? 502 : 200);
  }
}

TEST_F(TlsUpstreamTest, WhoseNameCannotBeCheckedIsNotAsked) {
  StartTrusting({.server_name = "." + std::string(300, 'a')});
  RawClient client(port());
  client.Send(kGet);
  const auto upstream = Accept(Good());
  EXPECT_FALSE(upstream->Handshake());
  EXPECT_EQ(client.ReadResponse().status, 502);
}

TEST_F(TlsUpstreamTest, AsksForTheNameThatItIsTold) {
  StartTrusting({.server_name = "api.test"});
  RawClient client(port());
  client.Send(kGet);
  const auto upstream = Accept(authority_.Issue({.names = {"api.test"}}));
  ASSERT_TRUE(upstream->Handshake()) << upstream->why();
  EXPECT_EQ(upstream->asked_name(), "api.test");
  upstream->ReadUntil("\r\n\r\n");
  upstream->Send(kOk);
  EXPECT_EQ(client.ReadResponse().status, 200);
}

TEST_F(TlsUpstreamTest, SendsNothingToOneThatIsNotWhoItShouldBe) {
  const struct {
    TestAuthority::Wanted wanted;
    bool by_stranger;
    std::string why;
  } rows[] = {
      {{.names = {"127.0.0.1"}, .not_after = TestAuthority::kYear2001},
       false,
       "certificate has expired"},
      {{.names = {"127.0.0.1"}, .not_before = TestAuthority::kYear2099},
       false,
       "certificate is not yet valid"},
      {{.names = {"127.0.0.1"}, .self_signed = true}, false, "self-signed certificate"},
      {{.names = {"10.0.0.1", "other.test"}}, false, "IP address mismatch"},
      {{.common_name = "127.0.0.1"}, false, "IP address mismatch"},
      {{.names = {"127.0.0.1"}}, true, "unable to get local issuer certificate"},
  };
  options_.upstream_health.failures = 1;
  StartTrusting();
  TestAuthority stranger;
  for (const auto& row : rows) {
    SCOPED_TRACE(row.why);
    KeepLog();
    RawClient client(port());
    client.Send(kGet);
    const auto upstream = Accept((row.by_stranger ? stranger : authority_).Issue(row.wanted));
    // In TLS 1.3 the server is done first.
    if (upstream->Handshake()) {
      EXPECT_EQ(upstream->ReadToEnd(), "");
      EXPECT_THAT(upstream->why(), HasSubstr("alert"));
    }
    EXPECT_EQ(client.ReadResponse().status, 502);
    // Told when it goes to rest; an answer brings it back.
    EXPECT_THAT(Log(), HasSubstr("upstream fails"));
    EXPECT_THAT(Log(), HasSubstr(row.why));
    client.Send(kGet);
    // Who has given a ticket need not prove who it is again.
    TlsClient good(upstream_.Accept(), {.server = true, .pair = Good(), .tickets = false});
    ASSERT_TRUE(good.Handshake()) << good.why();
    good.ReadUntil("\r\n\r\n");
    good.Send("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok");
    EXPECT_EQ(client.ReadResponse().status, 200);
  }
  EXPECT_EQ(gateway_->counters().upstreams[0].failures, std::size(rows));
}

TEST_F(TlsUpstreamTest, TriesTheNextUpstreamWhenOneCannotBeVerified) {
  RawListener second;
  AddUpstream(upstream_, {.ca_file = authority_.ca_file()});
  AddUpstream(second, {.ca_file = authority_.ca_file()});
  Start({}, 0);
  const KeyPair unknown = authority_.Issue({.names = {"127.0.0.1"}, .self_signed = true});
  const KeyPair known = Good();
  std::thread bad([&] { static_cast<void>(Accept(unknown)->Handshake()); });
  RawClient client(port());
  client.Send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nhi");
  TlsClient good(second.Accept(), {.server = true, .pair = known});
  ASSERT_TRUE(good.Handshake()) << good.why();
  good.ReadUntil("hi");
  good.Send(kOk);
  EXPECT_EQ(client.ReadResponse().status, 200);
  bad.join();
  EXPECT_EQ(gateway_->counters().upstreams[0].failures, 1U);
  EXPECT_EQ(gateway_->counters().upstreams[1].failures, 0U);
}

TEST_F(TlsUpstreamTest, BelievesAnybodyWhenItIsToldTo) {
  StartTrusting({.verify = false});
  RawClient client(port());
  client.Send(kGet);
  const auto upstream = Accept(authority_.Issue(
      {.names = {"other.test"}, .not_after = TestAuthority::kYear2001, .self_signed = true}));
  ASSERT_TRUE(upstream->Handshake()) << upstream->why();
  upstream->ReadUntil("\r\n\r\n");
  upstream->Send(kOk);
  EXPECT_EQ(client.ReadResponse().status, 200);
}

TEST_F(TlsUpstreamTest, ShowsACertificateToAnUpstreamThatAsksForOne) {
  const KeyPair ours = authority_.Issue({.common_name = "sluice"});
  StartTrusting({.certificate_file = ours.certificate_file, .key_file = ours.key_file});
  RawClient client(port());
  client.Send(kGet);
  TlsClient upstream(upstream_.Accept(),
                     {.server = true, .pair = Good(), .ca_file = authority_.ca_file()});
  ASSERT_TRUE(upstream.Handshake()) << upstream.why();
  EXPECT_EQ(upstream.peer_name(), "sluice");
  upstream.ReadUntil("\r\n\r\n");
  upstream.Send(kOk);
  EXPECT_EQ(client.ReadResponse().status, 200);
}

TEST_F(TlsUpstreamTest, TellsWhyAnUpstreamDoesNotBelieveUs) {
  options_.upstream_health.failures = 1;
  StartTrusting();
  KeepLog();
  RawClient client(port());
  client.Send(kGet);
  TlsClient upstream(upstream_.Accept(),
                     {.server = true, .pair = Good(), .ca_file = authority_.ca_file()});
  EXPECT_FALSE(upstream.Handshake());
  EXPECT_EQ(client.ReadResponse().status, 502);
  EXPECT_THAT(Log(), HasSubstr("certificate required"));
}

TEST_F(TlsUpstreamTest, ResumesWithTheTicketOfTheConnectionBefore) {
  StartTrusting();
  const KeyPair pair = Good();
  for (const int version : {TLS1_2_VERSION, TLS1_3_VERSION}) {
    for (int i = 0; i < 3; ++i) {
      RawClient client(port());
      client.Send(kGet);
      TlsClient upstream(upstream_.Accept(),
                         {.server = true, .pair = pair, .max_version = version});
      ASSERT_TRUE(upstream.Handshake()) << upstream.why();
      EXPECT_EQ(upstream.resumed(), i > 0);
      upstream.ReadUntil("\r\n\r\n");
      upstream.Send("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok");
      EXPECT_EQ(client.ReadResponse().status, 200);
      EXPECT_TRUE(upstream.Ended());  // told by TLS
    }
  }
}

// Without a length the answer ends with the connection, and it is whole only if TLS says so.
TEST_F(TlsUpstreamTest, PassesOnOnlyWholeAnswersAsWhole) {
  StartTrusting();
  const KeyPair pair = Good();
  for (const bool whole : {true, false}) {
    SCOPED_TRACE(whole);
    RawClient client(port());
    client.Send(kGet);
    const auto upstream = Accept(pair);
    ASSERT_TRUE(upstream->Handshake()) << upstream->why();
    upstream->ReadUntil("\r\n\r\n");
    upstream->Send("HTTP/1.1 200 OK\r\n\r\nhalf");
    if (whole) upstream->EndWriting();
    upstream->CutWriting();
    const RawResponse response = client.ReadResponse();
    EXPECT_EQ(response.status, 200);
    EXPECT_EQ(response.body, "half");
    EXPECT_EQ(response.complete, whole);
  }
}

TEST_F(TlsUpstreamTest, CarriesLongBodiesBothWays) {
  StartTrusting();
  const std::string content = Pattern(5'000'003);
  const KeyPair pair = Good();
  std::thread upstream([&] {
    const auto connection = Accept(pair);
    ASSERT_TRUE(connection->Handshake()) << connection->why();
    connection->ReadUntil("\r\n\r\n");
    EXPECT_TRUE(connection->ReadExactly(content.size()) == content);
    connection->Send("HTTP/1.1 200 OK\r\nContent-Length: " + std::to_string(content.size()) +
                     "\r\n\r\n" + content);
  });
  RawClient client(port());
  client.Send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: " + std::to_string(content.size()) +
              "\r\n\r\n");
  client.Send(content);
  EXPECT_TRUE(client.ReadResponse().body == content);
  upstream.join();
}

TEST_F(TlsUpstreamTest, SendsOnceMoreWhatMetAConnectionThatHadEnded) {
  StartTrusting();
  const KeyPair pair = Good();
  RawClient client(port());
  client.Send(kGet);
  auto upstream = Accept(pair);
  ASSERT_TRUE(upstream->Handshake()) << upstream->why();
  upstream->ReadUntil("\r\n\r\n");
  upstream->Send(kOk);
  EXPECT_EQ(client.ReadResponse().status, 200);
  upstream->EndWriting();  // by TLS alone
  client.Send(kGet);
  const auto next = Accept(pair);
  ASSERT_TRUE(next->Handshake()) << next->why();
  next->ReadUntil("\r\n\r\n");
  next->Send(kOk);
  EXPECT_EQ(client.ReadResponse().status, 200);
  EXPECT_EQ(gateway_->counters().upstreams[0].failures, 0U);
}

TEST_F(TlsUpstreamTest, WaitsForAHandshakeNoLongerThanForAConnection) {
  options_.connect_timeout = 200ms;
  StartTrusting();
  RawClient client(port());
  EXPECT_EQ(client.Ask(kGet).status, 504);  // the kernel accepts, nobody speaks
  const RawClient accepted(upstream_.Accept());
}

TEST_F(TlsUpstreamTest, RefusesAnUpstreamThatSpeaksNoTls) {
  options_.upstream_health.failures = 1;
  StartTrusting();
  KeepLog();
  RawClient client(port());
  client.Send(kGet);
  RawClient upstream(upstream_.Accept());
  upstream.Send("HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n");
  EXPECT_EQ(client.ReadResponse().status, 502);
  EXPECT_THAT(Log(), HasSubstr("wrong version number"));
}

TEST_F(TlsUpstreamTest, EndsAHandshakeWhoseClientHasLeft) {
  StartTrusting();
  {
    RawClient client(port());
    client.Send(kGet);
    const RawClient upstream(upstream_.Accept());
    client.Close();
    Until([this] { return gateway_->counters().connections == 0; });
  }
  EXPECT_EQ(gateway_->counters().client_left, 1U);
  EXPECT_EQ(gateway_->counters().upstreams[0].failures, 0U);
}

TEST_F(TlsUpstreamTest, ChecksItsHealthOverTls) {
  options_.health_check = {.path = "/up", .every = 10ms, .timeout = 20s, .failures = 1};
  StartTrusting();
  TlsClient upstream(upstream_.Accept(), {.server = true, .pair = Good(), .tickets = false});
  ASSERT_TRUE(upstream.Handshake()) << upstream.why();
  EXPECT_THAT(upstream.ReadUntil("\r\n\r\n"), HasSubstr("GET /up HTTP/1.1\r\n"));
  upstream.Send("HTTP/1.1 204 No Content\r\n\r\n");
  EXPECT_TRUE(upstream.Ended());
  Until([this] { return gateway_->counters().upstreams[0].checks_passed == 1; });
  KeepLog();
  const auto impostor = Accept(authority_.Issue({.names = {"other.test"}}));
  if (impostor->Handshake()) {
    EXPECT_EQ(impostor->ReadToEnd(), "");
  }
  Until([this] { return gateway_->counters().upstreams[0].checks_failed > 0; });
  Until([this] { return Log().find("upstream is down") != std::string::npos; });
}

TEST_F(TlsUpstreamTest, JoinsTwoConnectionsOverTlsAfterAnUpgrade) {
  const KeyPair site = authority_.Issue({.names = {"site.test"}});
  options_.tls = Load(std::vector<KeyPair>{site});
  StartTrusting();
  const std::string content = Pattern(2'000'000);
  TlsClient client(port(), Trusting());
  ASSERT_TRUE(client.Handshake()) << client.why();
  client.Send("GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n");
  const auto upstream = Accept(Good());
  ASSERT_TRUE(upstream->Handshake()) << upstream->why();
  upstream->ReadUntil("\r\n\r\n");
  upstream->Send("HTTP/1.1 101 X\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\nfirst words");
  EXPECT_EQ(client.ReadResponse().status, 101);
  EXPECT_EQ(client.ReadExactly(11), "first words");
  std::thread down([&] {
    EXPECT_TRUE(client.ReadExactly(content.size()) == content);
    client.Send(content);
    client.EndWriting();
  });
  upstream->Send(content);
  EXPECT_TRUE(upstream->ReadExactly(content.size()) == content);
  down.join();
  EXPECT_TRUE(upstream->Ended());
  upstream->Send("last words");
  upstream->EndWriting();
  EXPECT_EQ(client.ReadExactly(10), "last words");
  EXPECT_TRUE(client.Ended());
}

}  // namespace
}  // namespace sluice::gateway
