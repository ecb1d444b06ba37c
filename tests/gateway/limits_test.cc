// What the gateway does with the limiter's answers.
#include <chrono>

#include "tests/gateway/gateway_fixture.h"

namespace sluice::gateway {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST_F(GatewayTest, TellsAllowedAndDeniedClientsWhereTheyStand) {
  StartWithOrders({MakeRule("api", HeaderSource("K"), Bucket(1, 1s, 2))});
  const RawResponse first = Get("/v1/orders");
  EXPECT_EQ(first.status, 200);
  EXPECT_EQ(first.Field("RateLimit-Policy"), "\"api\";q=2;w=2");
  EXPECT_EQ(first.Field("RateLimit"), "\"api\";r=1;t=1");
  EXPECT_EQ(Get("/v1/orders").Field("RateLimit"), "\"api\";r=0;t=2");

  const RawResponse denied = Get("/v1/orders");
  EXPECT_EQ(denied.status, 429);
  EXPECT_EQ(denied.Field("Retry-After"), "1");
  EXPECT_EQ(denied.Field("RateLimit"), "\"api\";r=0;t=1");
  EXPECT_EQ(denied.Field("Cache-Control"), "no-store");
  EXPECT_EQ(denied.Field("Content-Type"), "application/problem+json");
  EXPECT_THAT(denied.body, HasSubstr("\"violated-policies\":[\"api\"]"));
  EXPECT_THAT(denied.body, HasSubstr("\"retry_after_ms\":1000"));
  EXPECT_EQ(orders_->requests(), 2U);  // the upstream never heard of the third

  clock_.Advance(1s);
  EXPECT_EQ(Get("/v1/orders").status, 200);
}

TEST_F(GatewayTest, TellsABlockedClientWhenItsBlockEnds) {
  Rule rule = MakeRule("api", HeaderSource("K"), Bucket(1, 1s, 1));
  rule.block_for = 90s;
  StartWithOrders({rule});
  EXPECT_EQ(Get("/v1/orders").status, 200);
  EXPECT_EQ(Get("/v1/orders").Field("Retry-After"), "90");  // also the denial that began it
  clock_.Advance(30s);

  const RawResponse denied = Get("/v1/orders");
  EXPECT_EQ(denied.status, 429);
  EXPECT_EQ(denied.Field("Retry-After"), "60");
  EXPECT_EQ(denied.Field("RateLimit"), "\"api\";r=0;t=60");
  EXPECT_THAT(denied.body, HasSubstr("\"retry_after_ms\":60000"));
  EXPECT_THAT(denied.body, HasSubstr("\"violated-policies\":[\"api\"]"));
  EXPECT_EQ(orders_->requests(), 1U);
  clock_.Advance(60s);
  EXPECT_EQ(Get("/v1/orders").status, 200);
}

TEST_F(GatewayTest, ShowsSeveralRulesInOneLineTheTightestFirst) {
  StartWithOrders({MakeRule("minute", HeaderSource("K"), Window(60, 1min)),
                   MakeRule("hour", HeaderSource("K"), Window(2, 1h))});
  const RawResponse first = Get("/v1/orders");
  EXPECT_EQ(first.Field("RateLimit-Policy"), "\"hour\";q=2;w=3600, \"minute\";q=60;w=60");
  EXPECT_EQ(first.Field("RateLimit"), "\"hour\";r=1;t=3600, \"minute\";r=59;t=60");
  (void)Get("/v1/orders");
  const RawResponse denied = Get("/v1/orders");
  EXPECT_EQ(denied.status, 429);
  EXPECT_EQ(denied.Field("Retry-After"), "3600");
  EXPECT_EQ(denied.Field("RateLimit"), "\"hour\";r=0;t=3600, \"minute\";r=58;t=60");
  EXPECT_THAT(denied.body, HasSubstr("\"violated-policies\":[\"hour\"]"));
}

TEST_F(GatewayTest, ADenialLeavesTheConnectionUsable) {
  StartWithOrders({MakeRule("api", HeaderSource("K"), Bucket(1, 1min, 1))});
  RawClient client(port());
  const std::string get = "GET /v1/orders HTTP/1.1\r\nHost: a\r\nK: ";
  EXPECT_EQ(client.Ask(get + "ann\r\n\r\n").status, 200);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(client.Ask(get + "ann\r\n\r\n").status, 429);
  EXPECT_EQ(client.Ask(get + "bob\r\n\r\n").status, 200);
}

TEST_F(GatewayTest, SaysWhatKindOfDenialItIs) {
  Rule keyed = MakeRule("keyed", HeaderSource("K"), Bucket(10, 1min, 10));
  Rule closed = MakeRule("closed", GlobalSource(), Bucket(1, 1s, 1));
  closed.match.paths = {*PathPattern::Compile("/closed")};
  closed.deny = true;
  closed.limits.clear();
  Rule dear = MakeRule("dear", HeaderSource("K"), Bucket(1, 1s, 5));
  dear.match.paths = {*PathPattern::Compile("/dear")};
  dear.cost.fixed = 6;
  dear.message = "At most five of these, please.";
  StartWithOrders({keyed, closed, dear});

  const RawResponse anonymous = Get("/v1/orders", "");
  EXPECT_EQ(anonymous.status, 401);
  EXPECT_FALSE(anonymous.Has("Retry-After"));
  EXPECT_THAT(anonymous.Field("WWW-Authenticate"), HasSubstr("header.K"));
  EXPECT_THAT(anonymous.body, HasSubstr("the header `K`"));
  EXPECT_EQ(Get("/closed").status, 403);
  const RawResponse never = Get("/dear");
  EXPECT_EQ(never.status, 422);
  EXPECT_FALSE(never.Has("Retry-After"));
  EXPECT_THAT(never.body, HasSubstr("At most five of these, please."));
  EXPECT_THAT(never.body, HasSubstr("\"max_cost\":5"));
  EXPECT_EQ(orders_->requests(), 0U);
}

TEST_F(GatewayTest, DeniesInPlainJsonWhereItIsToldTo) {
  options_.body = transport::BodyForm::kJson;
  StartWithOrders({MakeRule("api", HeaderSource("K"), Bucket(1, 1s, 1))});
  EXPECT_EQ(Get("/v1/orders").status, 200);
  const RawResponse denied = Get("/v1/orders");
  EXPECT_EQ(denied.status, 429);
  EXPECT_EQ(denied.Field("Content-Type"), "application/json");
  EXPECT_EQ(denied.body,
            "{\"error\":\"rate_limited\","
            "\"message\":\"Rule \\\"api\\\" allows 1 in 1 s. Try again in 1 s.\","
            "\"rule\":\"api\",\"retry_after_ms\":1000}\n");
}

TEST_F(GatewayTest, OthersTrafficStaysPrivate) {
  Rule all = MakeRule("everybody", GlobalSource(), Window(1, 1min));
  StartWithOrders({all});
  const RawResponse first = Get("/v1/orders");
  EXPECT_FALSE(first.Has("RateLimit"));
  EXPECT_FALSE(first.Has("RateLimit-Policy"));
  const RawResponse denied = Get("/v1/orders");
  EXPECT_EQ(denied.status, 429);
  EXPECT_TRUE(denied.Has("Retry-After"));
  EXPECT_FALSE(denied.Has("RateLimit"));
  EXPECT_THAT(denied.body, HasSubstr("everybody"));
  EXPECT_THAT(denied.body, Not(HasSubstr("allows 1")));
}

TEST_F(GatewayTest, LimitsOfTheUpstreamFollowOurs) {
  StartByHand({MakeRule("edge", HeaderSource("K"), Window(5, 1min))});
  RawClient client(port());
  client.Send("GET / HTTP/1.1\r\nHost: a\r\nK: ann\r\n\r\n");
  RawClient upstream(upstream_.Accept());
  upstream.ReadUntil("\r\n\r\n");
  upstream.Send(
      "HTTP/1.1 200 OK\r\nratelimit: \"app\";r=1;t=9\r\nRateLimit-Policy: \"app\";q=2;w=9\r\n"
      "Content-Length: 0\r\n\r\n");
  const RawResponse response = client.ReadResponse();
  EXPECT_THAT(response.Field("RateLimit"), HasSubstr("\"edge\";r=4;t="));
  EXPECT_THAT(response.Field("RateLimit"), HasSubstr(", \"app\";r=1;t=9"));
  EXPECT_EQ(response.Field("RateLimit-Policy"), "\"edge\";q=5;w=60, \"app\";q=2;w=9");
  EXPECT_THAT(response.head, Not(HasSubstr("ratelimit:")));
}

TEST_F(GatewayTest, SpeaksEveryDialectThatItIsToldTo) {
  clock_.Set({clock_.Read().steady, WallTime(1'700'000'000s)});
  options_.headers = {.draft_07 = true, .draft_06 = true, .x_epoch = true};
  StartByHand({MakeRule("edge", HeaderSource("K"), Bucket(1, 1s, 2))});
  RawClient client(port());
  const std::string get = "GET / HTTP/1.1\r\nHost: a\r\nK: ann\r\n\r\n";
  client.Send(get);
  RawClient upstream(upstream_.Accept());
  upstream.ReadUntil("\r\n\r\n");
  upstream.Send(
      "HTTP/1.1 200 OK\r\nX-RateLimit-Limit: 9\r\nX-RateLimit-Remaining: 0\r\n"
      "X-RateLimit-Reset: 1700000009\r\nRateLimit-Remaining: 8\r\nRateLimit-Reset: 9\r\n"
      "Content-Length: 0\r\n\r\n");
  const RawResponse first = client.ReadResponse();
  EXPECT_EQ(first.Field("RateLimit-Policy"), "2;w=2");
  EXPECT_EQ(first.Field("RateLimit"), "limit=2, remaining=1, reset=1");
  EXPECT_EQ(first.Field("RateLimit-Remaining"), "1");
  EXPECT_EQ(first.Field("RateLimit-Reset"), "1");
  EXPECT_EQ(first.Field("X-RateLimit-Limit"), "9");  // the upstream leaves less
  EXPECT_EQ(first.Field("X-RateLimit-Remaining"), "0");
  EXPECT_EQ(first.Field("X-RateLimit-Reset"), "1700000009");

  client.Send(get);
  upstream.ReadUntil("\r\n\r\n");
  upstream.Send("HTTP/1.1 204 No Content\r\n\r\n");
  EXPECT_EQ(client.ReadResponse().Field("X-RateLimit-Remaining"), "0");
  const RawResponse denied = client.Ask(get);
  EXPECT_EQ(denied.status, 429);
  EXPECT_EQ(denied.Field("RateLimit"), "limit=2, remaining=0, reset=1");
  EXPECT_EQ(denied.Field("X-RateLimit-Reset"), "1700000001");
  EXPECT_EQ(denied.Field("Retry-After"), "1");
}

TEST_F(GatewayTest, ARefusedExpectationGetsNoPermission) {
  StartWithOrders({MakeRule("api", HeaderSource("K"), Bucket(1, 1min, 1))});
  (void)Get("/v1/orders");
  RawClient client(port());
  const RawResponse denied = client.Ask(
      "POST /v1/orders HTTP/1.1\r\nHost: a\r\nK: ann\r\nContent-Length: 1000000\r\n"
      "Expect: 100-continue\r\n\r\n");
  EXPECT_EQ(denied.status, 429);
  EXPECT_EQ(denied.Field("Connection"), "close");
  EXPECT_TRUE(client.Ended());
  // Also where the body would be short: nobody can tell whether it will come.
  RawClient brief(port());
  EXPECT_EQ(brief
                .Ask("POST /v1/orders HTTP/1.1\r\nHost: a\r\nK: ann\r\nContent-Length: 2\r\n"
                     "Expect: 100-continue\r\n\r\n")
                .Field("Connection"),
            "close");
  EXPECT_EQ(Get("/v1/orders", "K: bob\r\n").status, 200);
}

TEST_F(GatewayTest, ARefusedBodyIsNeverTakenForTheNextRequest) {
  StartWithOrders({MakeRule("api", HeaderSource("K"), Bucket(1, 1min, 1))});
  (void)Get("/v1/orders");
  const std::string post = "POST /v1/orders HTTP/1.1\r\nHost: a\r\nK: ann\r\n";
  const std::string next = "GET /v1/orders HTTP/1.1\r\nHost: a\r\nK: bob\r\n\r\n";
  const std::string body(70'000, 'G');
  {
    RawClient client(port());  // too long to skip: told, and closed
    client.Send(post + "Content-Length: 70000\r\n\r\n" + body + next);
    const RawResponse denied = client.ReadResponse();
    EXPECT_EQ(denied.status, 429);
    EXPECT_EQ(denied.Field("Connection"), "close");
    EXPECT_TRUE(client.Ended());
  }
  {
    RawClient client(port());  // skipped, and the connection goes on
    client.Send(post + "Transfer-Encoding: chunked\r\n\r\n5\r\nGET /\r\n0\r\n\r\n" + next);
    EXPECT_EQ(client.ReadResponse().status, 429);
    EXPECT_EQ(client.ReadResponse().status, 200);
  }
  {
    RawClient client(port());  // the body comes only after the answer
    EXPECT_EQ(client.Ask(post + "Content-Length: 6\r\n\r\n").status, 429);
    clock_.Advance(1min);
    client.Send("GET / " + next);
    EXPECT_EQ(client.ReadResponse().status, 200);
  }
}

TEST_F(GatewayTest, ARefusedBodyHasOneDeadline) {
  options_.body_timeout = 50ms;
  StartWithOrders({MakeRule("r", HeaderSource("K"), Bucket(1, 1min, 1))});
  Get("/");
  RawClient client(port());
  const std::string post = "POST / HTTP/1.1\r\nHost: a\r\nK: ann\r\nTransfer-Encoding: chunked";
  EXPECT_EQ(client.Ask(post + "\r\n\r\n").status, 429);
  EXPECT_TRUE(client.Drip("1\r\na\r\n"));  // content in time, for ever: nobody wants it
}

TEST_F(GatewayTest, HoldsADelayedRequestUntilItsInstant) {
  Limit pace = *leaky_bucket::MakeLimit({.count = 10, .period = 1s}, 5, 1s);
  StartWithOrders({MakeRule("pace", HeaderSource("K"), pace)});
  EXPECT_EQ(Get("/v1/orders").status, 200);
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(Get("/v1/orders").status, 200);
  EXPECT_GE(std::chrono::steady_clock::now() - begin, 100ms);
}

TEST_F(GatewayTest, AHeldRequestWhoseClientLeavesIsUndone) {
  Limit pace = *leaky_bucket::MakeLimit({.count = 1, .period = 1h}, 5, 10h);
  StartWithOrders({MakeRule("pace", HeaderSource("K"), pace)});
  EXPECT_EQ(Get("/v1/orders").status, 200);
  const Duration before = Look("ann").delay;
  RawClient held(port());
  held.Send("GET /v1/orders HTTP/1.1\r\nHost: a\r\nK: ann\r\n\r\n");
  Until([&] { return Look("ann").delay > before; });
  held.Close();
  Until([&] { return Look("ann").delay == before; });
  Until([&] { return gateway_->counters().client_left == 1; });
  EXPECT_EQ(orders_->requests(), 1U);
}

TEST_F(GatewayTest, SlotsComeBackHoweverARequestEnds) {
  StartByHand({MakeRule("slots", HeaderSource("K"), Slots(2))});
  const std::string get = "GET / HTTP/1.1\r\nHost: a\r\nK: ann\r\n\r\n";
  const auto free = [&] { return Look("ann").claims[0].decision.remaining; };
  RawClient client(port());
  client.Send(get);
  RawClient upstream(upstream_.Accept());
  upstream.ReadUntil("\r\n\r\n");
  EXPECT_EQ(free(), 1U);
  upstream.Send("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nab");
  client.ReadUntil("\nab");
  EXPECT_EQ(free(), 1U);  // the answer is still on its way
  upstream.Send("cd");
  client.ReadExactly(2);
  Until([&] { return free() == 2; });

  client.Send(get);  // the upstream dies
  upstream.ReadUntil("\r\n\r\n");
  EXPECT_EQ(free(), 1U);
  upstream.Reset();
  RawClient second(upstream_.Accept());  // the retry
  second.Close();
  EXPECT_EQ(client.ReadResponse().status, 502);
  Until([&] { return free() == 2; });

  RawClient leaver(port());  // the client leaves before the answer
  leaver.Send(get);
  RawClient third(upstream_.Accept());
  third.ReadUntil("\r\n\r\n");
  EXPECT_EQ(free(), 1U);
  leaver.Close();
  Until([&] { return free() == 2; });
  EXPECT_EQ(third.ReadToEnd(), "");  // and the upstream is told

  RawClient middle(port());  // or in the midst of it
  middle.Send(get);
  RawClient fourth(upstream_.Accept());
  fourth.ReadUntil("\r\n\r\n");
  fourth.Send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n");
  middle.ReadUntil("\na\r\n");
  middle.Reset();
  Until([&] { return free() == 2; });
}

TEST_F(GatewayTest, ALimitOfSlotsNeverSticksOnAKeptConnection) {
  StartWithOrders(
      {MakeRule("a", HeaderSource("K"), Slots(100)), MakeRule("b", GlobalSource(), Slots(100))});
  RawClient client(port());
  for (int i = 0; i < 400; ++i) {
    ASSERT_EQ(client.Ask("GET /v1/orders HTTP/1.1\r\nHost: a\r\nK: ann\r\n\r\n").status, 200);
  }
  Until([&] { return Look("ann").claims[0].decision.remaining == 100; });
  EXPECT_EQ(Look("ann").claims[1].decision.remaining, 100U);
}

TEST_F(GatewayTest, DeniesTheRequestThatFindsNoSlot) {
  StartByHand({MakeRule("slots", HeaderSource("K"), Slots(1))});
  RawClient holder(port());
  holder.Send("GET / HTTP/1.1\r\nHost: a\r\nK: ann\r\n\r\n");
  RawClient upstream(upstream_.Accept());
  upstream.ReadUntil("\r\n\r\n");
  const RawResponse denied = Get("/");
  EXPECT_EQ(denied.status, 429);
  EXPECT_FALSE(denied.Has("Retry-After"));  // nobody knows
  EXPECT_EQ(denied.Field("RateLimit-Policy"), "\"slots\";q=1;qu=\"concurrent-requests\"");
  EXPECT_EQ(denied.Field("RateLimit"), "\"slots\";r=0");
}

}  // namespace
}  // namespace sluice::gateway
