// What scripts in browsers can read of the gateway's own answers, and preflights.
#include <chrono>

#include "tests/gateway/gateway_fixture.h"

namespace sluice::gateway {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class CorsTest : public GatewayTest {
 protected:
  CorsTest() { options_.cors = {.origins = {"https://app.example", "http://localhost:3000"}}; }

  RawResponse Ask(const std::string& method, const std::string& fields,
                  const std::string& target = "/v1/orders") {
    RawClient client(port());
    return client.Ask(method + " " + target + " HTTP/1.1\r\nHost: a\r\n" + fields + "\r\n");
  }
  RawResponse Preflight(const std::string& target = "/v1/orders") {
    return Ask("OPTIONS", kOrigin + "Access-Control-Request-Method: GET\r\n", target);
  }
  static void ExpectReadable(const RawResponse& response, const std::string& origin) {
    EXPECT_EQ(response.Field("Access-Control-Allow-Origin"), origin) << response.head;
    EXPECT_EQ(response.Field("Access-Control-Expose-Headers"),
              "RateLimit-Policy, RateLimit, Retry-After, X-Request-Id");
  }

  const std::string kOrigin = "Origin: https://app.example\r\n";
  const std::string kAnn = "K: ann\r\n";
};

TEST_F(CorsTest, ExemptPreflightsChargeNothingAndTheDenialCanBeRead) {
  options_.cors.exempt_preflight = true;
  Rule all = MakeRule("all", GlobalSource(), Window(5, 1min));
  StartWithOrders({all, MakeRule("keyed", HeaderSource("K"), Window(100, 1min))});
  for (int i = 0; i < 5; ++i) {
    const RawResponse preflight = Preflight();  // without the key: a browser sends none
    EXPECT_EQ(preflight.status, 405);           // the upstream's own answer
    EXPECT_FALSE(preflight.Has("RateLimit"));
    EXPECT_FALSE(preflight.Has("Access-Control-Allow-Origin"));
    EXPECT_EQ(Ask("GET", kOrigin + kAnn).status, 200) << i;
  }
  const RawResponse denied = Ask("GET", kOrigin + kAnn);
  EXPECT_EQ(denied.status, 429);
  ExpectReadable(denied, "https://app.example");
  EXPECT_EQ(denied.Field("Vary"), "Origin");
  EXPECT_EQ(Preflight().status, 405);
  EXPECT_EQ(orders_->requests(), 11U);
}

TEST_F(CorsTest, PreflightsCountUnlessTheyAreExempt) {
  StartWithOrders({MakeRule("all", GlobalSource(), Window(2, 1min))});
  EXPECT_EQ(Preflight().status, 405);
  EXPECT_EQ(Preflight().status, 405);
  const RawResponse denied = Preflight();
  EXPECT_EQ(denied.status, 429);
  ExpectReadable(denied, "https://app.example");
}

TEST_F(CorsTest, OnlyWhatABrowserAsksInAdvanceIsExempt) {
  options_.cors.exempt_preflight = true;
  Rule closed = MakeRule("closed", GlobalSource(), Window(1, 1s));
  closed.match.paths = {*PathPattern::Compile("/closed")};
  closed.deny = true;
  closed.limits.clear();
  StartWithOrders({closed, MakeRule("all", GlobalSource(), Window(1, 1min))});
  EXPECT_EQ(Ask("GET", "").status, 200);
  const std::string wanted = "Access-Control-Request-Method: PUT\r\n";
  const struct {
    std::string_view what;
    std::string method;
    std::string fields;
  } rows[] = {
      {"another method", "GET", kOrigin + wanted},
      {"no origin", "OPTIONS", wanted},
      {"an origin that is not listed", "OPTIONS", "Origin: https://evil.example\r\n" + wanted},
      {"two origins", "OPTIONS", kOrigin + "Origin: https://evil.example\r\n" + wanted},
      {"no question", "OPTIONS", kOrigin},
      {"an upgrade", "OPTIONS", kOrigin + wanted + "Connection: upgrade\r\nUpgrade: websocket\r\n"},
      {"a body", "OPTIONS", kOrigin + wanted + "Content-Length: 1\r\n"},
      {"an empty origin besides", "OPTIONS", "Origin:\r\n" + kOrigin + wanted},
      {"an empty question", "OPTIONS", kOrigin + "Access-Control-Request-Method:\r\n"},
      {"a password", "OPTIONS", kOrigin + wanted + "Authorization: Basic YTpi\r\n"},
      {"a cookie", "OPTIONS", kOrigin + wanted + "Cookie: a=b\r\n"},
      {"another method in truth", "OPTIONS", kOrigin + wanted + "X-HTTP-Method-Override: PUT\r\n"},
      {"a question that is named away", "OPTIONS",
       kOrigin + wanted + "Connection: Access-Control-Request-Method\r\n"},
      {"an origin that is named away", "OPTIONS", kOrigin + wanted + "Connection: Origin\r\n"},
  };
  for (const auto& row : rows) EXPECT_EQ(Ask(row.method, row.fields).status, 429) << row.what;
  EXPECT_EQ(Preflight().status, 405);
  EXPECT_EQ(Preflight("/closed").status, 403);  // what is denied to all is denied to preflights
}

TEST_F(CorsTest, TheAnswerNamesTheOriginThatAsked) {
  StartWithOrders({MakeRule("keyed", HeaderSource("K"), Window(1, 1min))});
  ExpectReadable(Ask("GET", "Origin: http://localhost:3000\r\n"), "http://localhost:3000");
  for (const auto* other :
       {"", "Origin: https://app.example.evil\r\n", "Origin: null\r\n", "Origin: *\r\n",
        "Origin: http://app.example\r\n", "Origin: https://app.example:8443\r\n",
        "Origin: https://app.example\r\nOrigin: https://app.example\r\n"}) {
    const RawResponse response = Ask("GET", other);
    EXPECT_EQ(response.status, 401) << other;
    EXPECT_THAT(response.head, Not(HasSubstr("Access-Control"))) << other;
    EXPECT_EQ(response.Field("Vary"), "Origin") << other;
  }
}

TEST_F(CorsTest, ScriptsThatSendCookiesCanReadOnlyByChoice) {
  StartWithOrders({MakeRule("keyed", HeaderSource("K"), Window(1, 1min))});
  EXPECT_FALSE(Ask("GET", kOrigin).Has("Access-Control-Allow-Credentials"));
}

TEST_F(CorsTest, ScriptsThatSendCookiesCanReadFromListedOrigins) {
  options_.cors.credentials = true;
  StartWithOrders({MakeRule("keyed", HeaderSource("K"), Window(1, 1min))});
  EXPECT_EQ(Ask("GET", kOrigin).Field("Access-Control-Allow-Credentials"), "true");
  EXPECT_FALSE(
      Ask("GET", "Origin: https://evil.example\r\n").Has("Access-Control-Allow-Credentials"));
}

TEST_F(CorsTest, EveryOriginMeansEveryOrigin) {
  options_.cors.origins = {"*"};
  options_.headers = {.draft_06 = true, .x_delta = true};
  StartWithOrders({MakeRule("keyed", HeaderSource("K"), Window(1, 1min))});
  const RawResponse response = Ask("GET", "Origin: null\r\n");
  EXPECT_EQ(response.Field("Access-Control-Allow-Origin"), "*");
  EXPECT_EQ(response.Field("Access-Control-Expose-Headers"),
            "RateLimit-Policy, RateLimit-Limit, RateLimit-Remaining, RateLimit-Reset, "
            "X-RateLimit-Limit, X-RateLimit-Remaining, X-RateLimit-Reset, Retry-After, "
            "X-Request-Id");
  EXPECT_FALSE(response.Has("Vary"));
  EXPECT_THAT(Ask("GET", "").head, Not(HasSubstr("Access-Control")));
}

TEST_F(CorsTest, EveryAnswerOfOursCanBeRead) {
  Rule closed = MakeRule("closed", GlobalSource(), Window(1, 1s));
  closed.match.paths = {*PathPattern::Compile("/closed")};
  closed.deny = true;
  closed.limits.clear();
  StartByHand({closed});
  RawResponse response = Ask("GET", kOrigin, "/closed");
  EXPECT_EQ(response.status, 403);
  ExpectReadable(response, "https://app.example");
  response = Ask("GET", kOrigin, "/%zz");
  EXPECT_EQ(response.status, 400);
  ExpectReadable(response, "https://app.example");

  RawClient client(port());  // the upstream ends before it has answered
  client.Send("POST / HTTP/1.1\r\nHost: a\r\n" + kOrigin + "Content-Length: 2\r\n\r\nab");
  RawClient upstream(upstream_.Accept());
  upstream.ReadUntil("\nab");
  upstream.Close();
  response = client.ReadResponse();
  EXPECT_EQ(response.status, 502);
  ExpectReadable(response, "https://app.example");
}

TEST_F(CorsTest, AnAnswerOfTheUpstreamsKeepsItsOwnFields) {
  StartByHand();
  RawClient client(port());
  client.Send("GET / HTTP/1.1\r\nHost: a\r\n" + kOrigin + "\r\n");
  RawClient upstream(upstream_.Accept());
  EXPECT_THAT(upstream.ReadUntil("\r\n\r\n"), HasSubstr(kOrigin));
  upstream.Send(
      "HTTP/1.1 200 OK\r\nAccess-Control-Allow-Origin: https://other.example\r\n"
      "Vary: Accept\r\nContent-Length: 0\r\n\r\n");
  const RawResponse response = client.ReadResponse();
  EXPECT_EQ(response.Field("Access-Control-Allow-Origin"), "https://other.example");
  EXPECT_EQ(response.Field("Vary"), "Accept");
  EXPECT_FALSE(response.Has("Access-Control-Expose-Headers"));
}

}  // namespace
}  // namespace sluice::gateway
