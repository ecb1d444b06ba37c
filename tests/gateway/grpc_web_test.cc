// Calls of gRPC-Web that are not forwarded are answered in their own form.
#include "sluice/transport/gateway/grpc_web.h"

#include "absl/strings/escaping.h"
#include "tests/gateway/gateway_fixture.h"

namespace sluice::gateway {
namespace {

using ::testing::HasSubstr;

// The trailers in the one frame of a body.
std::string TrailersOf(const std::string& body) {
  if (body.size() < 5 || body[0] != '\x80') return "no frame of trailers: " + body;
  std::size_t length = 0;
  for (int i = 1; i <= 4; ++i) length = length << 8 | static_cast<unsigned char>(body[i]);
  if (length != body.size() - 5) return "another length";
  return body.substr(5);
}

std::string Call(const std::string& type, const std::string& fields = "K: ann\r\n") {
  return "POST /pkg.Service/Method HTTP/1.1\r\nHost: a\r\nX-Grpc-Web: 1\r\nContent-Type: " + type +
         "\r\n" + fields + "Content-Length: 5\r\n\r\n" + std::string(5, '\0');
}

TEST_F(GatewayTest, ADeniedGrpcWebCallIsAnsweredInItsOwnForm) {
  options_.cors = {.origins = {"https://app.example"}};
  StartByHand({MakeRule("api", HeaderSource("K"), Window(1, 1min))});
  const std::string fields = "K: ann\r\nOrigin: https://app.example\r\n";
  {
    RawClient client(port());
    client.Send(Call("application/grpc-web", fields));
    RawClient upstream(upstream_.Accept());
    upstream.ReadUntil("\r\n\r\n");
    upstream.Send("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    EXPECT_EQ(client.ReadResponse().status, 200);
  }
  const std::string expected =
      "grpc-status: 8\r\ngrpc-message: Rule \"api\" allows 1 in 60 s. Try again in 60 s.\r\n";
  RawClient client(port());
  for (const std::string type :
       {"application/grpc-web", "application/grpc-web+proto", "application/grpc-web+json",
        "application/grpc-web-text", "application/grpc-web-text+proto"}) {
    SCOPED_TRACE(type);
    const RawResponse response = client.Ask(Call(type, fields));
    EXPECT_EQ(response.status, 200);
    EXPECT_EQ(response.Field("Content-Type"), type);
    std::string body = response.body;
    if (type.find("text") != std::string::npos) {
      std::string decoded;
      EXPECT_TRUE(absl::Base64Unescape(body, &decoded));
      body = decoded;
    }
    EXPECT_EQ(TrailersOf(body), expected);
    EXPECT_THAT(response.head, HasSubstr("\r\n" + expected));
    EXPECT_EQ(response.Field("Retry-After"), "60");
    EXPECT_THAT(response.Field("RateLimit"), HasSubstr("r=0"));
    EXPECT_EQ(response.Field("Access-Control-Allow-Origin"), "https://app.example");
    EXPECT_THAT(response.head, HasSubstr("Access-Control-Expose-Headers: Grpc-Status, "));
  }
  EXPECT_EQ(client.Ask(Call("Application/gRPC-Web ; x=y", fields)).Field("Content-Type"),
            "application/grpc-web");
  // What only looks like it is answered as any other request.
  for (const std::string type : {"application/grpc", "application/grpc-webx", "text/plain"}) {
    EXPECT_EQ(client.Ask(Call(type)).status, 429);
  }
}

TEST_F(GatewayTest, EachKindOfDenialHasItsGrpcStatus) {
  Rule closed = MakeRule("closed", HeaderSource("K"), Window(1, 1min));
  closed.message = "Ask 100% \xc3\xa4\r\nof us";
  StartByHand({closed});
  upstream_.Close();
  EXPECT_THAT(RawClient(port()).Ask(Call("application/grpc-web")).body,
              HasSubstr("grpc-status: 14\r\n"));
  EXPECT_EQ(TrailersOf(RawClient(port()).Ask(Call("application/grpc-web")).body),
            "grpc-status: 8\r\ngrpc-message: Ask 100%25 %C3%A4%0D%0Aof us\r\n");
  const RawResponse missing = RawClient(port()).Ask(Call("application/grpc-web", ""));
  EXPECT_THAT(TrailersOf(missing.body), HasSubstr("grpc-status: 16\r\n"));
  EXPECT_FALSE(missing.Has("Retry-After"));
  EXPECT_FALSE(missing.Has("Access-Control-Expose-Headers"));
}

TEST_F(GatewayTest, AnUpstreamThatTakesTooLongIsADeadlineToGrpcWeb) {
  options_.response_timeout = 50ms;
  StartByHand();
  const RawResponse late = RawClient(port()).Ask(Call("application/grpc-web"));
  EXPECT_EQ(TrailersOf(late.body),
            "grpc-status: 4\r\ngrpc-message: the upstream did not answer in time\r\n");
}

TEST_F(GatewayTest, StatusesThatGrpcKnowsByOtherNumbers) {
  const struct {
    int http;
    int grpc;
  } rows[] = {{429, 8}, {413, 8}, {422, 3},  {401, 16}, {403, 7}, {400, 13},
              {408, 4}, {504, 4}, {502, 14}, {503, 14}, {418, 2}};
  for (const auto& row : rows) EXPECT_EQ(GrpcStatusOf(row.http), row.grpc) << row.http;
}

}  // namespace
}  // namespace sluice::gateway
