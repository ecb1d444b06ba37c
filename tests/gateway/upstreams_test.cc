// Several upstreams: who gets what, and what happens when one is gone.
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/gateway/gateway_fixture.h"

namespace sluice::gateway {
namespace {

using namespace std::chrono_literals;

class UpstreamsTest : public GatewayTest {
 protected:
  UpstreamsTest() : GatewayTest(/*loops=*/1) {}  // each loop judges for itself
  ~UpstreamsTest() override {
    gateway_.reset();
    apis_.clear();
    ReleaseClosedPorts();
  }

  // One more Orders API; its port.
  std::uint16_t AddApi(std::uint16_t port = 0) {
    auto api = orders_api::OrdersApi::Start(loops_, {"127.0.0.1", port});
    // A port that was let go may be that of somebody's connection for a moment.
    Until([&] {
      if (!api.ok()) api = orders_api::OrdersApi::Start(loops_, {"127.0.0.1", port});
      return api.ok();
    });
    EXPECT_TRUE(api.ok()) << api.status();
    apis_.push_back(*std::move(api));
    return apis_.back()->endpoint().port();
  }
  // A port on which nobody listens: taken, so that nobody else gets it meanwhile.
  std::uint16_t ClosedPort() {
    const int taken = ::socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    auto* const any = reinterpret_cast<sockaddr*>(&address);
    EXPECT_EQ(::bind(taken, any, size), 0);
    EXPECT_EQ(::getsockname(taken, any, &size), 0);
    taken_.push_back(taken);
    return ntohs(address.sin_port);
  }
  void ReleaseClosedPorts() {
    for (const int taken : taken_) ::close(taken);
    taken_.clear();
  }

  void StartBefore(const std::vector<std::pair<std::uint16_t, std::uint32_t>>& ports_and_weights) {
    for (const auto& [port, weight] : ports_and_weights) {
      options_.upstreams.push_back({.address = {"127.0.0.1", port}, .weight = weight});
    }
    Start({}, 0);
  }
  // What the client gets when the upstream that the test plays says `answer` and closes.
  RawResponse AskByHand(std::string_view request, std::string_view answer) {
    RawClient client(port());
    client.Send(request);
    {
      RawClient connection(upstream_.Accept());
      connection.ReadUntil("\r\n\r\n");
      connection.Send(answer);
    }
    return client.ReadResponse();
  }
  [[nodiscard]] Gateway::UpstreamCounts Counts(std::size_t upstream) const {
    return gateway_->counters().upstreams.at(upstream);
  }

  std::vector<std::unique_ptr<orders_api::OrdersApi>> apis_;
  std::vector<int> taken_;
};

constexpr std::string_view kGet = "GET /v1/orders HTTP/1.1\r\nHost: a\r\n\r\n";
constexpr std::string_view kPost =
    "POST /v1/orders HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nhi";

TEST_F(UpstreamsTest, RequestsAreSharedByWeight) {
  const std::uint16_t heavy = AddApi();
  StartBefore({{heavy, 3}, {AddApi(), 1}});
  RawClient client(port());
  for (int i = 0; i < 8; ++i) EXPECT_EQ(client.Ask(kGet).status, 200);
  EXPECT_EQ(apis_[0]->requests(), 6u);
  EXPECT_EQ(apis_[1]->requests(), 2u);
  EXPECT_EQ(Counts(0).requests, 6u);
  EXPECT_EQ(Counts(1).requests, 2u);
}

TEST_F(UpstreamsTest, ARequestThatWasNotSentYetGoesToTheNextWhateverItsMethod) {
  StartBefore({{ClosedPort(), 1}, {AddApi(), 1}});
  RawClient client(port());
  for (int i = 0; i < 10; ++i) EXPECT_NE(client.Ask(kPost).status / 100, 5) << i;
  EXPECT_EQ(apis_[0]->requests(), 10u);
}

TEST_F(UpstreamsTest, AnUpstreamThatFailsInARowIsLeftAloneForAWhile) {
  options_.upstream_health = {.failures = 2, .rest = 1h};
  StartBefore({{ClosedPort(), 1}, {AddApi(), 1}});
  RawClient client(port());
  for (int i = 0; i < 20; ++i) EXPECT_EQ(client.Ask(kGet).status, 200);
  EXPECT_EQ(Counts(0).failures, 2u);
  EXPECT_EQ(Counts(0).resting_in, 1u);
  EXPECT_EQ(Counts(1).resting_in, 0u);
}

TEST_F(UpstreamsTest, AnUpstreamThatIsBackGetsItsShareAgain) {
  options_.upstream_health = {.failures = 1, .rest = 1ms};
  const std::uint16_t gone = ClosedPort();
  StartBefore({{gone, 1}, {AddApi(), 1}});
  RawClient client(port());
  EXPECT_EQ(client.Ask(kGet).status, 200);
  EXPECT_EQ(Counts(0).resting_in, 1u);
  ReleaseClosedPorts();
  AddApi(gone);
  Until([&] {
    EXPECT_EQ(client.Ask(kGet).status, 200);
    return apis_[1]->requests() > 0;
  });
  Until([&] { return Counts(0).resting_in == 0; });
}

TEST_F(UpstreamsTest, WhenAllAreGoneTheAnswerIs502) {
  options_.upstream_health = {.failures = 1, .rest = 1h};
  StartBefore({{ClosedPort(), 1}, {ClosedPort(), 1}});
  RawClient client(port());
  for (int i = 0; i < 3; ++i) EXPECT_EQ(client.Ask(kGet).status, 502);
}

TEST_F(UpstreamsTest, AnAnswerThatCannotBeReadCountsAsAFailure) {
  options_.upstream_health = {.failures = 1, .rest = 1h};
  StartBefore({{upstream_.port(), 1}, {AddApi(), 1}});
  EXPECT_EQ(AskByHand(kGet, "HTTP/1.1 nonsense\r\n\r\n").status, 502);
  EXPECT_EQ(Counts(0).failures, 1u);
  EXPECT_EQ(Counts(0).resting_in, 1u);
}

TEST_F(UpstreamsTest, AnAnswerThatBreaksOffCountsAsAFailure) {
  options_.upstream_health = {.failures = 1, .rest = 1h};
  StartBefore({{upstream_.port(), 1}, {AddApi(), 1}});
  EXPECT_FALSE(AskByHand(kGet, "HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\nabc").complete);
  Until([&] { return Counts(0).failures == 1; });
  EXPECT_EQ(Counts(0).resting_in, 1u);
}

TEST_F(UpstreamsTest, AnAnswerThatTheClientLeavesEndsARowOfFailures) {
  options_.upstream_health = {.failures = 2, .rest = 1h};
  StartBefore({{upstream_.port(), 1}});
  EXPECT_EQ(AskByHand(kGet, "HTTP/1.1 nonsense\r\n\r\n").status, 502);
  {
    RawClient client(port());
    client.Send(kGet);
    RawClient connection(upstream_.Accept());
    connection.ReadUntil("\r\n\r\n");
    connection.Send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n");
    client.ReadUntil("hi");
    client.Close();
    Until([&] { return gateway_->counters().client_left > 0; });
  }
  EXPECT_EQ(AskByHand(kGet, "HTTP/1.1 nonsense\r\n\r\n").status, 502);
  EXPECT_EQ(Counts(0).resting_in, 0u);
}

// Else whoever asks for the right nonsense could put every upstream to rest.
TEST_F(UpstreamsTest, AnUpgradeToSomethingElseIsNoFailureOfTheUpstream) {
  options_.upstream_health = {.failures = 1, .rest = 1h};
  StartBefore({{upstream_.port(), 1}});
  EXPECT_EQ(
      AskByHand("GET / HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n",
                "HTTP/1.1 101 Other\r\nConnection: upgrade\r\nUpgrade: other\r\n\r\n")
          .status,
      502);
  EXPECT_EQ(Counts(0).failures, 0u);
}

TEST_F(UpstreamsTest, TheHealthPathIsAnsweredWithoutAnyUpstreamOrLimit) {
  options_.health_path = "/.sluice/health";
  options_.upstreams = {{.address = {"127.0.0.1", ClosedPort()}}};
  Rule closed;
  closed.name = "closed";
  closed.deny = true;
  Start({closed}, 0);
  RawClient client(port());
  const RawResponse health = client.Ask("GET /.sluice/health?from=lb HTTP/1.1\r\nHost: a\r\n\r\n");
  EXPECT_EQ(health.body, "ok\n");
  EXPECT_TRUE(health.Has("X-Request-Id"));
  EXPECT_EQ(client.Ask("GET /.sluice/health/x HTTP/1.1\r\nHost: a\r\n\r\n").status, 403);
  EXPECT_EQ(gateway_->counters().requests, 1u);
}

TEST_F(UpstreamsTest, BeforeTheDrainConnectionsAreLetGoInOrder) {
  options_.health_path = "/ready";
  Rule closed;
  closed.name = "closed";
  closed.match.paths = {*PathPattern::Compile("/closed")};
  closed.deny = true;
  StartWithOrders({closed});
  const struct {
    std::string path;
    int before;
    int after;
  } rows[] = {{"/ready", 200, 503}, {"/closed", 403, 403}, {"/v1/orders", 200, 200}};
  const auto get = [](const std::string& path) {
    return "GET " + path + " HTTP/1.1\r\nHost: a\r\n\r\n";
  };
  std::vector<std::unique_ptr<RawClient>> kept;
  for (const auto& row : rows) {
    kept.push_back(std::make_unique<RawClient>(port()));
    EXPECT_EQ(kept.back()->Ask(get(row.path)).status, row.before);
  }
  gateway_->Leave();
  for (std::size_t i = 0; i < kept.size(); ++i) {
    SCOPED_TRACE(rows[i].path);
    const RawResponse last = kept[i]->Ask(get(rows[i].path));
    EXPECT_EQ(last.status, rows[i].after);
    EXPECT_EQ(last.Field("Connection"), "close");
    EXPECT_TRUE(kept[i]->Ended());
    EXPECT_EQ(RawClient(port()).Ask(get(rows[i].path)).status, rows[i].after);  // still served
  }
}

}  // namespace
}  // namespace sluice::gateway
