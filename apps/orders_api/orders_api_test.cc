#include "apps/orders_api/orders_api.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>

#include "sluice/net/testing/raw_client.h"

namespace sluice::orders_api {
namespace {

using net::testing::RawClient;
using net::testing::RawResponse;
using ::testing::HasSubstr;

class OrdersApiTest : public ::testing::Test {
 protected:
  OrdersApiTest() : loops_(1) {
    auto api = OrdersApi::Start(loops_, {"127.0.0.1", 0});
    EXPECT_TRUE(api.ok()) << api.status();
    api_ = *std::move(api);
    loops_.Start();
  }
  ~OrdersApiTest() override {
    api_.reset();
    loops_.Stop();
  }
  std::uint16_t port() { return api_->endpoint().port(); }
  RawResponse Get(const std::string& target) {
    RawClient client(port());
    return client.Ask("GET " + target + " HTTP/1.1\r\nHost: a\r\nX-A: \"b\"\r\n\r\n");
  }

  net::EventLoops loops_;
  std::unique_ptr<OrdersApi> api_;
};

TEST_F(OrdersApiTest, KeepsOrders) {
  RawClient client(port());
  const std::string post = "POST /v1/orders HTTP/1.1\r\nHost: a\r\nContent-Length: ";
  const RawResponse created = client.Ask(post + "13\r\n\r\n{\"item\":\"ink\"}");
  EXPECT_EQ(created.status, 400);  // a byte short
  RawClient again(port());
  EXPECT_EQ(again.Ask(post + "14\r\n\r\n{\"item\":\"ink\"}").status, 201);
  EXPECT_EQ(again.Ask(post + "2\r\n\r\n[]").status, 400);
  EXPECT_EQ(Get("/v1/orders").body, "{\"orders\":[{\"id\":1,\"order\":{\"item\":\"ink\"}}]}\n");
}

TEST_F(OrdersApiTest, CountsWhatCameIn) {
  (void)Get("/v1/orders");
  (void)Get("/nowhere");
  (void)Get("/count");
  EXPECT_EQ(Get("/healthz").body, "ok\n");
  EXPECT_EQ(Get("/count").body, "{\"requests\":2}\n");
  EXPECT_EQ(api_->requests(), 2U);
}

TEST_F(OrdersApiTest, ShowsTheRequestsFields) {
  EXPECT_EQ(Get("/v1/headers").body, "{\"Host\":\"a\",\"X-A\":\"\\\"b\\\"\"}\n");
}

TEST_F(OrdersApiTest, TakesItsTimeForAnExport) {
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(Get("/v1/exports?delay=120ms").status, 200);
  EXPECT_GE(std::chrono::steady_clock::now() - begin, std::chrono::milliseconds(120));
  EXPECT_EQ(Get("/v1/exports?delay=soon").status, 400);
}

TEST_F(OrdersApiTest, StreamsEvents) {
  const RawResponse stream = Get("/v1/stream?events=3&every=1ms");
  EXPECT_TRUE(stream.complete);
  EXPECT_EQ(stream.Field("Content-Type"), "text/event-stream");
  EXPECT_THAT(stream.body, HasSubstr("data: {\"event\":3}\n\n"));
}

TEST_F(OrdersApiTest, EchoesWebSocketMessages) {
  RawClient client(port());
  const RawResponse upgraded = client.Ask(
      "GET /v1/echo HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
      "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n");
  EXPECT_EQ(upgraded.status, 101);
  EXPECT_EQ(upgraded.Field("Sec-WebSocket-Accept"), "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
  // A text frame, masked with zeros; it comes back without a mask.
  using namespace std::string_literals;
  client.Send("\x81\x85\0\0\0\0hello"s);
  EXPECT_EQ(client.ReadExactly(7), "\x81\x05hello");
  EXPECT_EQ(Get("/v1/echo").status, 426);
}

TEST_F(OrdersApiTest, SaysWhatItDoesNotHave) {
  const RawResponse missing = Get("/v2");
  EXPECT_EQ(missing.status, 404);
  EXPECT_EQ(missing.Field("Content-Type"), "application/problem+json");
  RawClient client(port());
  const RawResponse refused = client.Ask("DELETE /v1/orders HTTP/1.1\r\nHost: a\r\n\r\n");
  EXPECT_EQ(refused.status, 405);
  EXPECT_EQ(refused.Field("Allow"), "GET, HEAD, POST");
}

}  // namespace
}  // namespace sluice::orders_api
