// Requests and answers on their way through the gateway.
#include <optional>
#include <set>
#include <utility>

#include "tests/gateway/gateway_fixture.h"

namespace sluice::gateway {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

const std::string kOk = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

std::string IdIn(const std::string& head) {
  const std::size_t at = head.find("X-Request-Id: ");
  EXPECT_NE(at, head.npos) << head;
  return head.substr(at + 14, 32);
}

TEST_F(GatewayTest, RewritesTheHeadAndLeavesTheRestAlone) {
  StartByHand();
  RawClient client(port());
  client.Send(
      "GET http://shop.example/v1/orders?a=%2F&b HTTP/1.1\r\nHost: ignored\r\nAccept: */*\r\n"
      "Connection: keep-alive, X-Private\r\nX-Private: 1\r\nKeep-Alive: 5\r\nTE: trailers\r\n"
      "X-Forwarded-For: 9.9.9.9\r\nupgrade: websocket\r\nProxy-Connection: x\r\nX-Kept:  a  \r\n"
      "x-forwarded-for: 10.0.0.7\r\n\r\n");
  RawClient upstream(upstream_.Accept());
  const std::string request = upstream.ReadUntil("\r\n\r\n");
  const std::string id = IdIn(request);
  EXPECT_EQ(request,
            "GET /v1/orders?a=%2F&b HTTP/1.1\r\nHost: shop.example\r\nAccept: */*\r\n"
            "X-Kept:  a  \r\nTE: trailers\r\nConnection: TE\r\nX-Forwarded-For: "
            "127.0.0.1\r\nX-Forwarded-Proto: http\r\n"
            "X-Forwarded-Host: shop.example\r\nVia: 1.1 sluice\r\nX-Request-Id: " +
                id + "\r\n\r\n");
  upstream.Send(
      "HTTP/1.1 200 Fine by me\r\nServer: x\r\nConnection: X-Hop\r\nX-Hop: 1\r\nKeep-Alive: 1\r\n"
      "Content-Length: 2\r\nSet-Cookie: a=b\r\nSet-Cookie: c=d\r\n\r\nok");
  const RawResponse response = client.ReadResponse();
  EXPECT_EQ(response.head,
            "HTTP/1.1 200 Fine by me\r\nServer: x\r\nContent-Length: 2\r\nSet-Cookie: a=b\r\n"
            "Set-Cookie: c=d\r\nX-Request-Id: " +
                id + "\r\n\r\n");
  EXPECT_EQ(response.body, "ok");
}

TEST_F(GatewayTest, BelievesATrustedProxyAndCountsAsItSays) {
  rule_options_.client_address.trusted_proxies = {*IpPrefix::Parse("127.0.0.0/8")};
  StartByHand({MakeRule("ip", {.kind = SourceKind::kIp}, Window(1, 1min))});
  RawClient client(port());
  client.Send(
      "GET / HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: 9.9.9.9\r\nX-Forwarded-Proto: https\r\n"
      "X-Request-Id: from-the-proxy\r\n\r\n");
  RawClient upstream(upstream_.Accept());
  EXPECT_EQ(upstream.ReadUntil("\r\n\r\n"),
            "GET / HTTP/1.1\r\nHost: a\r\nX-Forwarded-Proto: https\r\n"
            "X-Forwarded-For: 9.9.9.9, 127.0.0.1\r\nX-Forwarded-Host: a\r\nVia: 1.1 sluice\r\n"
            "X-Request-Id: from-the-proxy\r\n\r\n");
  upstream.Send("HTTP/1.1 200 OK\r\nX-Request-Id: another\r\nContent-Length: 2\r\n\r\nok");
  EXPECT_EQ(client.ReadResponse().Field("X-Request-Id"), "from-the-proxy");
  // The rules see the chain as it came: 9.9.9.9 has had its one, 8.8.8.8 has not.
  const std::string again = "GET / HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: ";
  const RawResponse denied = client.Ask(again + "9.9.9.9\r\nX-Request-Id: second\r\n\r\n");
  EXPECT_EQ(denied.status, 429);
  EXPECT_EQ(denied.Field("X-Request-Id"), "second");
  client.Send(again + "8.8.8.8\r\n\r\n");
  EXPECT_THAT(upstream.ReadUntil("\r\n\r\n"), HasSubstr("X-Forwarded-For: 8.8.8.8, 127.0.0.1"));
  upstream.Send("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
  client.ReadResponse();
  // A proxy that passes its client's Connection on does not lose what it wrote by that.
  client.Send(again +
              "7.7.7.7\r\nX-Forwarded-Proto: https\r\nConnection: X-Forwarded-For, "
              "X-Forwarded-Proto\r\n\r\n");
  EXPECT_THAT(upstream.ReadUntil("\r\n\r\n"),
              ::testing::AllOf(HasSubstr("X-Forwarded-For: 7.7.7.7, 127.0.0.1"),
                               HasSubstr("X-Forwarded-Proto: https")));
}

TEST_F(GatewayTest, EveryAnswerBearsTheIdOfItsRequest) {
  StartByHand({MakeRule("api", HeaderSource("K"), Window(1, 1min))});
  upstream_.Close();
  const std::string ok = "GET / HTTP/1.1\r\nHost: a\r\nX-Request-Id: mine\r\nK: ann\r\n\r\n";
  std::set<std::string> ids;
  for (const auto& [request, status] : {std::pair{ok, 502},
                                        {ok, 429},
                                        {std::string("GET /%zz HTTP/1.1\r\nHost: a\r\n\r\n"), 400},
                                        {std::string("GET / HTTP/1.1\r\n\r\n"), 400}}) {
    RawClient client(port());
    const RawResponse response = client.Ask(request);
    EXPECT_EQ(response.status, status);
    EXPECT_EQ(response.Field("X-Request-Id").size(), 32U) << response.head;
    EXPECT_TRUE(ids.insert(response.Field("X-Request-Id")).second);
  }
}

TEST_F(GatewayTest, GivesAnOldClientWhatItUnderstands) {
  StartByHand();
  RawClient client(port());
  client.Send("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
  RawClient upstream(upstream_.Accept());
  const std::string head = upstream.ReadUntil("\r\n\r\n");
  EXPECT_THAT(head, HasSubstr("Host: 127.0.0.1:" + std::to_string(upstream_.port()) + "\r\n"));
  upstream.Send(kOk);
  EXPECT_EQ(client.ReadResponse().Field("Connection"), "keep-alive");
  // Chunks are unknown to it: the body ends with the connection.
  client.Send("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
  upstream.ReadUntil("\r\n\r\n");
  upstream.Send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n");
  const RawResponse response = client.ReadResponse();
  EXPECT_EQ(response.body, "abc");
  EXPECT_FALSE(response.Has("Transfer-Encoding"));
  EXPECT_EQ(response.Field("Connection"), "close");
}

TEST_F(GatewayTest, KeepsConnectionsOnBothSidesAndAnswersInOrder) {
  StartByHand();
  RawClient client(port());
  client.Send(
      "GET /1 HTTP/1.1\r\nHost: a\r\n\r\nPOST /2 HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\n"
      "abcGET /3 HTTP/1.1\r\nHost: a\r\n\r\n");
  RawClient upstream(upstream_.Accept());
  for (const std::string target : {"/1", "/2", "/3"}) {
    EXPECT_THAT(upstream.ReadUntil("\r\n\r\n"), HasSubstr(" " + target + " "));
    EXPECT_EQ(upstream.ReadExactly(target == "/2" ? 3 : 0), target == "/2" ? "abc" : "");
    upstream.Send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n" + target);
    EXPECT_EQ(client.ReadResponse().body, target);
  }
}

TEST_F(GatewayTest, PassesChunksInBothDirections) {
  StartByHand();
  RawClient client(port());
  client.Send("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3;x=1\r\nabc\r\n");
  RawClient upstream(upstream_.Accept());
  EXPECT_THAT(upstream.ReadUntil("\r\n\r\n"), HasSubstr("Transfer-Encoding: chunked\r\n"));
  EXPECT_EQ(upstream.ReadUntil("abc\r\n"), "3\r\nabc\r\n");
  client.Send("04\r\ndefg\r\n");
  EXPECT_EQ(upstream.ReadUntil("defg\r\n"), "4\r\ndefg\r\n");
  client.Send("0\r\nTrailer: x\r\n\r\n");
  EXPECT_EQ(upstream.ReadUntil("0\r\n\r\n"), "0\r\n\r\n");
  upstream.Send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
  EXPECT_THAT(client.ReadUntil("\r\n\r\n"), HasSubstr("Transfer-Encoding: chunked\r\n"));
  upstream.Send("2;ext\r\nhi\r\n");
  EXPECT_EQ(client.ReadUntil("hi\r\n"), "2\r\nhi\r\n");
  upstream.Send("0\r\nX-Sum: 1\r\n\r\n");
  EXPECT_EQ(client.ReadUntil("0\r\n\r\n"), "0\r\n\r\n");
  // Both connections can be used again.
  client.Send("GET /next HTTP/1.1\r\nHost: a\r\n\r\n");
  EXPECT_THAT(upstream.ReadUntil("\r\n\r\n"), HasSubstr("GET /next "));
  upstream.Send(kOk);
  EXPECT_EQ(client.ReadResponse().body, "ok");
}

TEST_F(GatewayTest, PassesAnAnswersTrailersToAClientThatTakesThem) {
  StartByHand();
  RawClient client(port());
  std::optional<RawClient> upstream;
  const struct {
    std::string fields;
    std::string end;
    std::string passed;
  } rows[] = {
      {"TE: trailers\r\n", "0\r\nX-Sum: 1\r\ngrpc-status: 0\r\n\r\n",
       "0\r\nX-Sum: 1\r\ngrpc-status: 0\r\n\r\n"},
      {"TE: gzip;q=0.5, Trailers\r\n", "0\r\nContent-Length: 3\r\nRateLimit: x\r\nX-Sum: 1\r\n\r\n",
       "0\r\nX-Sum: 1\r\n\r\n"},
      {"", "0\r\nX-Sum: 1\r\n\r\n", "0\r\n\r\n"},
      {"TE: trailers\r\n", "0\r\n\r\n", "0\r\n\r\n"},
  };
  for (const bool at_once : {true, false}) {
    for (const auto& row : rows) {
      SCOPED_TRACE(row.fields + row.end);
      client.Send("GET / HTTP/1.1\r\nHost: a\r\n" + row.fields + "\r\n");
      if (!upstream) upstream.emplace(upstream_.Accept());
      const std::string request = upstream->ReadUntil("\r\n\r\n");
      EXPECT_EQ(request.find("TE: trailers\r\nConnection: TE\r\n") != request.npos,
                !row.fields.empty());
      const std::string head =
          "HTTP/1.1 200 OK\r\nTrailer: X-Sum\r\nTransfer-Encoding: chunked\r\n\r\n";
      upstream->Send(head + "2\r\nhi\r\n" + (at_once ? row.end : ""));
      EXPECT_EQ(client.ReadUntil("\r\n\r\n").find("\r\nTrailer: X-Sum\r\n") != std::string::npos,
                !row.fields.empty());
      EXPECT_EQ(client.ReadUntil("hi\r\n"), "2\r\nhi\r\n");
      if (!at_once) upstream->Send(row.end);
      EXPECT_EQ(client.ReadExactly(row.passed.size()), row.passed);
    }
  }
}

TEST_F(GatewayTest, TrailersThatAreTooLongBreakTheAnswerOff) {
  options_.header_bytes = 1024;
  StartByHand();
  RawClient client(port());
  client.Send("GET / HTTP/1.1\r\nHost: a\r\nTE: trailers\r\n\r\n");
  RawClient upstream(upstream_.Accept());
  upstream.ReadUntil("\r\n\r\n");
  upstream.Send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nX: " +
                std::string(1024, 'x') + "\r\n\r\n");
  client.ReadUntil("\r\n\r\n");
  EXPECT_EQ(client.ReadToEnd(), "");
}

TEST_F(GatewayTest, AnAnswerThatEndsWithTheConnectionIsSentInChunks) {
  StartByHand();
  RawClient client(port());
  client.Send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
  {
    RawClient upstream(upstream_.Accept());
    upstream.ReadUntil("\r\n\r\n");
    upstream.Send("HTTP/1.1 200 OK\r\n\r\nall of it");
  }
  const RawResponse response = client.ReadResponse();
  EXPECT_EQ(response.Field("Transfer-Encoding"), "chunked");
  EXPECT_EQ(response.body, "all of it");
  EXPECT_TRUE(response.complete);
}

TEST_F(GatewayTest, AnswersWithoutABodyHaveNone) {
  StartByHand();
  RawClient client(port());
  client.Send("HEAD / HTTP/1.1\r\nHost: a\r\n\r\n");
  RawClient upstream(upstream_.Accept());
  const struct {
    std::string request;
    std::string answer;
    std::string length;
  } rows[] = {
      {"HEAD", "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n", "1000"},
      {"HEAD", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", ""},
      {"GET", "HTTP/1.1 304 Not Modified\r\nContent-Length: 7\r\nETag: \"x\"\r\n\r\n", "7"},
      {"GET", "HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\n", ""},
      {"GET", "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", "0"},
  };
  bool first = true;
  for (const auto& row : rows) {
    SCOPED_TRACE(row.answer);
    if (!std::exchange(first, false)) client.Send(row.request + " / HTTP/1.1\r\nHost: a\r\n\r\n");
    EXPECT_THAT(upstream.ReadUntil("\r\n\r\n"), HasSubstr(row.request + " / "));
    upstream.Send(row.answer);
    const RawResponse response = client.ReadResponse(/*to_head=*/true);
    EXPECT_EQ(response.Field("Content-Length"), row.length);
    EXPECT_FALSE(response.Has("Transfer-Encoding"));
  }
}

TEST_F(GatewayTest, StreamsLongBodiesPastSlowReaders) {
  StartByHand();
  std::string body;
  for (int i = 0; body.size() < std::size_t{16} << 20; ++i) body += std::to_string(i) + ",";
  RawClient client(port());
  // Neither side reads before the other has to wait: the sizes are above what sockets buffer.
  std::thread sender([&] {
    client.Send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: " + std::to_string(body.size()) +
                "\r\n\r\n" + body);
  });
  RawClient upstream(upstream_.Accept());
  upstream.ReadUntil("\r\n\r\n");
  EXPECT_EQ(upstream.ReadExactly(1000), body.substr(0, 1000));
  EXPECT_TRUE(upstream.ReadExactly(body.size() - 1000) == body.substr(1000));
  sender.join();
  std::thread answerer([&] {
    upstream.Send("HTTP/1.1 200 OK\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" +
                  body);
  });
  EXPECT_THAT(client.ReadUntil("\r\n\r\n"), HasSubstr("200 OK"));
  EXPECT_TRUE(client.ReadExactly(body.size()) == body);
  answerer.join();
}

TEST_F(GatewayTest, AnEchoMayAnswerWhileItIsBeingAsked) {
  StartByHand();
  const std::string piece(200'000, 'x');
  RawClient client(port());
  client.Send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4000000\r\n\r\n");
  RawClient upstream(upstream_.Accept());
  upstream.ReadUntil("\r\n\r\n");
  upstream.Send("HTTP/1.1 200 OK\r\nContent-Length: 4000000\r\n\r\n");
  EXPECT_THAT(client.ReadUntil("\r\n\r\n"), HasSubstr("200 OK"));
  for (int i = 0; i < 20; ++i) {
    client.Send(piece);
    EXPECT_EQ(upstream.ReadExactly(piece.size()).size(), piece.size());
    upstream.Send(piece);
    EXPECT_EQ(client.ReadExactly(piece.size()).size(), piece.size());
  }
}

TEST_F(GatewayTest, AnEarlyAnswerIsPassedOnAndTheConnectionEnds) {
  StartByHand();
  RawClient client(port());
  client.Send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100000000\r\n\r\nabc");
  RawClient upstream(upstream_.Accept());
  upstream.ReadUntil("\nabc");
  upstream.Send("HTTP/1.1 413 Content Too Large\r\nContent-Length: 4\r\n\r\nnope");
  const RawResponse response = client.ReadResponse();
  EXPECT_EQ(response.status, 413);
  EXPECT_EQ(response.body, "nope");
  EXPECT_EQ(response.Field("Connection"), "close");
}

TEST_F(GatewayTest, TellsAClientThatAsksToGoOn) {
  StartByHand();
  RawClient client(port());
  client.Send("PUT / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n");
  EXPECT_EQ(client.ReadResponse().status, 100);
  RawClient upstream(upstream_.Accept());
  EXPECT_THAT(upstream.ReadUntil("\r\n\r\n"), Not(HasSubstr("Expect")));
  client.Send("abc");
  EXPECT_EQ(upstream.ReadExactly(3), "abc");
  upstream.Send("HTTP/1.1 100 Continue\r\n\r\n" + kOk);
  EXPECT_EQ(client.ReadResponse().status, 200);
}

TEST_F(GatewayTest, PassesInterimAnswersOn) {
  StartByHand();
  RawClient client(port());
  client.Send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
  RawClient upstream(upstream_.Accept());
  upstream.ReadUntil("\r\n\r\n");
  upstream.Send(
      "HTTP/1.1 103 Early Hints\r\nLink: </a.css>\r\nConnection: x\r\nX-Request-Id: evil\r\n"
      "RateLimit: \"x\";r=9\r\n\r\n" +
      kOk);
  const RawResponse hint = client.ReadResponse();
  EXPECT_EQ(hint.status, 103);
  EXPECT_EQ(hint.Field("Link"), "</a.css>");
  for (const auto* name : {"Connection", "X-Request-Id", "RateLimit"}) {
    EXPECT_FALSE(hint.Has(name)) << name;
  }
  EXPECT_EQ(client.ReadResponse().body, "ok");
}

TEST_F(GatewayTest, RefusesMalformedRequestsBeforeAnybodyIsAsked) {
  StartWithOrders({MakeRule("r", HeaderSource("K"), Bucket(1, 1min, 1))});
  const struct {
    std::string bytes;
    int status;
  } rows[] = {
      {"GET / HTTP/1.1\nHost: a\nK: ann\n\n", 400},
      {"GET / HTTP/1.1\r\nK: ann\r\n\r\n", 400},
      {std::string("GET /a\0b HTTP/1.1\r\nHost: a\r\nK: ann\r\n\r\n", 38), 400},
      {"POST / HTTP/1.1\r\nHost: a\r\nK: ann\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\n",
       400},
      {"POST / HTTP/1.1\r\nHost: a\r\nK: ann\r\nContent-Length: 3\r\n"
       "Transfer-Encoding: chunked\r\n\r\n",
       400},
      {"GET / HTTP/1.1\r\nHost: a\r\nK: ann\r\nX: " + std::string(33'000, 'x') + "\r\n\r\n", 431},
      {"GET /a%zz HTTP/1.1\r\nHost: a\r\nK: ann\r\n\r\n", 400},
      {"GET /a//../b HTTP/1.1\r\nHost: a\r\nK: ann\r\n\r\n", 400},
      {"GET /a\\b HTTP/1.1\r\nHost: a\r\nK: ann\r\n\r\n", 400},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.bytes.substr(0, 60));
    RawClient client(port());
    const RawResponse response = client.Ask(row.bytes);
    EXPECT_EQ(response.status, row.status);
    EXPECT_EQ(response.Field("Content-Type"), "application/problem+json");
  }
  // A path is refused with the reason that `sluice explain` gives, too.
  EXPECT_THAT(Get("/a%zz").body, HasSubstr(ToString(PathError::kBadEscape)));
  EXPECT_EQ(orders_->requests(), 0U);
  EXPECT_EQ(gateway_->counters().requests, 0U);
  EXPECT_EQ(Look("ann").answer, Answer::kAllowed);  // nothing was charged
}

TEST_F(GatewayTest, ABodyOutOfFormIsNotPassedOn) {
  StartByHand();
  RawClient client(port());
  client.Send("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n");
  RawClient upstream(upstream_.Accept());
  upstream.ReadUntil("\nabc\r\n");
  client.Send("zz\r\n");
  const RawResponse response = client.ReadResponse();
  EXPECT_EQ(response.status, 400);
  EXPECT_EQ(response.Field("Connection"), "close");
  EXPECT_EQ(upstream.ReadToEnd(), "");  // no last chunk: the request never became whole
}

}  // namespace
}  // namespace sluice::gateway
