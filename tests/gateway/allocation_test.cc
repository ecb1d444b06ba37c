// A request allocates nothing on its way through the gateway, once the buffers have grown: a
// counting operator new stands behind this whole program.

#include "tests/allocations/counting_new.h"
#include "tests/gateway/tls_fixture.h"

namespace sluice::gateway {
namespace {

#ifdef __SANITIZE_ADDRESS__
constexpr bool kFramesAreKept = false;  // net/task.h gives every frame back to the sanitizer
#else
constexpr bool kFramesAreKept = true;
#endif

TEST_F(GatewayTest, ARequestAllocatesNothingOnItsWay) {
  options_.headers = {.draft_11 = true, .draft_06 = true, .x_epoch = true};
  options_.cors = {.origins = {"https://app.example"}, .exempt_preflight = true};
  const auto lines = *LineWriter::Open({.path = "/dev/null", .rings = loops_.size()});
  const AccessLog access_log{.lines = *lines, .form = AccessForm::kJson};
  options_.access_log = &access_log;
  Rule api = MakeRule("api", HeaderSource("K"), Window(1'000, 1min));
  api.retry_jitter = 10s;
  StartByHand({api, MakeRule("slots", HeaderSource("K"), Slots(10))});
  std::thread upstream([this] {
    RawClient connection(upstream_.Accept());
    while (connection.ReadUntil("\r\n\r\n").ends_with("\r\n\r\n")) {
      connection.Send(
          "HTTP/1.1 200 OK\r\nServer: x\r\nContent-Type: application/json\r\n"
          "RateLimit: \"upstream\";r=100000;t=60\r\nX-RateLimit-Remaining: 100000\r\n"
          "Content-Length: 2\r\n\r\n{}");
    }
  });
  RawClient client(port());
  const auto ask = [&](int times, int status) {
    for (int i = 0; i < times; ++i) {
      const RawResponse response = client.Ask(
          "GET /v1/orders?page=2 HTTP/1.1\r\nHost: api.example\r\nUser-Agent: test/1.0\r\n"
          "Accept: */*\r\nOrigin: https://app.example\r\nK: "
          "ann-with-a-long-name-that-fits-no-small-string\r\n\r\n");
      ASSERT_EQ(response.status, status);
    }
  };
  const auto count = [this] {
    loops_.OnEach([](net::EventLoop&) { CountAllocationsOfThisThread(); });
    return CountedAllocations();
  };
  ask(500, 200);
  const std::uint64_t before_forwarding = count();
  ask(400, 200);
  const std::uint64_t forwarded = CountedAllocations() - before_forwarding;
  ask(100, 200);
  ask(100, 429);
  const std::uint64_t before_denying = CountedAllocations();
  ask(400, 429);
  const std::uint64_t denied = CountedAllocations() - before_denying;
  if (kFramesAreKept) {
    EXPECT_EQ(forwarded, 0U);
    EXPECT_EQ(denied, 0U);
  }
  gateway_.reset();  // before its log
  upstream.join();
}

// What OpenSSL itself takes for a record, and gives back, comes from malloc and is not counted.
TEST_F(TlsFixture, ARequestOverTlsOnBothSidesAllocatesNothingOfOurs) {
  const KeyPair pair = authority_.Issue({.names = {"127.0.0.1", "site.test"}});
  options_.tls = Load(std::vector<KeyPair>{pair});
  options_.upstreams = {
      {.address = {"127.0.0.1", upstream_.port()}, .tls = Load({.ca_file = authority_.ca_file()})}};
  Start({}, 0);
  std::thread upstream([&] {
    TlsClient connection(upstream_.Accept(), {.server = true, .pair = pair});
    EXPECT_TRUE(connection.Handshake()) << connection.why();
    while (connection.ReadUntil("\r\n\r\n").ends_with("\r\n\r\n")) connection.Send(kOk);
  });
  TlsClient client(port(), Trusting());
  ASSERT_TRUE(client.Handshake()) << client.why();
  for (int i = 0; i < 300; ++i) ASSERT_EQ(client.Ask(kGet).status, 200);
  loops_.OnEach([](net::EventLoop&) { CountAllocationsOfThisThread(); });
  const std::uint64_t before = CountedAllocations();
  for (int i = 0; i < 400; ++i) ASSERT_EQ(client.Ask(kGet).status, 200);
  const std::uint64_t ours = CountedAllocations() - before;
  if (kFramesAreKept) {
    EXPECT_EQ(ours, 0U);
  }
  gateway_->Drain(0ms);
  upstream.join();
}

}  // namespace
}  // namespace sluice::gateway
