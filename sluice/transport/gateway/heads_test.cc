#include "sluice/transport/gateway/heads.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace sluice::gateway {
namespace {

using transport::UpstreamLimits;

// The lines of forwarding.h from X-Forwarded-For on are left out here: forwarding_test.cc has them.
std::string Upstream(const std::string& bytes, std::string_view upgrade = {}) {
  net::RequestHead head;
  const net::HeadProblem problem = net::ParseRequestHead(bytes, &head);
  EXPECT_TRUE(problem.ok()) << problem.reason;
  std::string out;
  AppendUpstreamHead(head, {.peer = "10.0.0.1"}, "up:9000", upgrade, &out);
  EXPECT_TRUE(out.ends_with("\r\n\r\n"));
  return out.substr(0, out.find("X-Forwarded-For: 10.0.0.1\r\n"));
}

std::string Client(const std::string& bytes, ClientHead how, UpstreamLimits* limits) {
  how.request_id = "7";
  net::ResponseHead head;
  EXPECT_TRUE(net::ParseResponseHead(bytes, /*to_head=*/false, &head).ok());
  std::string out;
  const transport::RateLimitFields fields({.draft_11 = true});
  AppendClientHead(head, how, fields, limits, &out);
  return out;
}

TEST(UpstreamHeadTest, KeepsWhatIsMeantForTheUpstream) {
  const struct {
    std::string_view what;
    std::string request;
    std::string_view upstream;
  } rows[] = {
      {"nothing to drop", "GET /a?b HTTP/1.1\r\nHost: h\r\nA: 1\r\nB:2 \r\n\r\n",
       "GET /a?b HTTP/1.1\r\nHost: h\r\nA: 1\r\nB:2 \r\n"},
      {"at both ends",
       "GET / HTTP/1.1\r\nConnection: a\r\nA: 1\r\nHost: h\r\nB: 2\r\nTE: trailers\r\n\r\n",
       "GET / HTTP/1.1\r\nHost: h\r\nB: 2\r\nTE: trailers\r\nConnection: TE\r\n"},
      {"Connection names what it must not",
       "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\nConnection: Host, "
       "content-length\r\n\r\n",
       "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n"},
      {"no host", "GET / HTTP/1.0\r\nA: 1\r\n\r\n", "GET / HTTP/1.1\r\nHost: up:9000\r\nA: 1\r\n"},
      {"absolute", "GET http://t/x HTTP/1.1\r\nA: 1\r\nHost: h\r\n\r\n",
       "GET /x HTTP/1.1\r\nHost: t\r\nA: 1\r\n"},
      {"chunked, expecting",
       "PUT / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\nExpect: 100-continue\r\n\r\n",
       "PUT / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n"},
  };
  for (const auto& row : rows) EXPECT_EQ(Upstream(row.request), row.upstream) << row.what;
}

TEST(UpstreamHeadTest, AsksForTheProtocolsThatMayBeAskedFor) {
  const std::string request =
      "GET / HTTP/1.1\r\nHost: h\r\nConnection: keep-alive, Upgrade, X-A\r\nX-A: 1\r\n"
      "Upgrade: h2c, websocket\r\nSec-WebSocket-Version: 13\r\n\r\n";
  const std::string kept = "GET / HTTP/1.1\r\nHost: h\r\nSec-WebSocket-Version: 13\r\n";
  EXPECT_EQ(Upstream(request, "websocket"), kept + "Connection: Upgrade\r\nUpgrade: websocket\r\n");
  EXPECT_EQ(Upstream(request), kept);
}

TEST(ClientHeadTest, SaysToWhichProtocolItChanges) {
  UpstreamLimits limits;
  const std::string fields = "Connection: upgrade\r\nUpgrade: websocket\r\nContent-Length: 3\r\n";
  EXPECT_EQ(Client("HTTP/1.1 101 Yes\r\n" + fields + "\r\n", {}, &limits),
            "HTTP/1.1 101 Yes\r\nX-Request-Id: 7\r\nUpgrade: websocket\r\n"
            "Connection: Upgrade\r\n");
  EXPECT_EQ(Client("HTTP/1.1 426 No\r\n" + fields + "\r\n", {.keep_alive = false}, &limits),
            "HTTP/1.1 426 No\r\nContent-Length: 3\r\nX-Request-Id: 7\r\nUpgrade: websocket\r\n"
            "Connection: Upgrade\r\nConnection: close\r\n");
  EXPECT_EQ(Client("HTTP/1.1 426 No\r\nContent-Length: 0\r\n\r\n", {}, &limits),
            "HTTP/1.1 426 No\r\nContent-Length: 0\r\nX-Request-Id: 7\r\n");
}

TEST(ClientHeadTest, SaysWhatTheClientNeedsToKnow) {
  UpstreamLimits limits;
  EXPECT_EQ(Client("HTTP/1.1 200 OK\r\nA: 1\r\nTransfer-Encoding: chunked\r\n\r\n", {}, &limits),
            "HTTP/1.1 200 OK\r\nA: 1\r\nX-Request-Id: 7\r\nTransfer-Encoding: chunked\r\n");
  EXPECT_EQ(
      Client("HTTP/1.0 404 Gone Away\r\nContent-Length: 2\r\n\r\n", {.keep_alive = false}, &limits),
      "HTTP/1.1 404 Gone Away\r\nContent-Length: 2\r\nX-Request-Id: 7\r\nConnection: close\r\n");
  EXPECT_EQ(Client("HTTP/1.1 200 \r\n\r\n", {.keep_alive = false, .old_client = true}, &limits),
            "HTTP/1.1 200 \r\nX-Request-Id: 7\r\nConnection: close\r\n");
  EXPECT_EQ(
      Client("HTTP/1.1 200 OK\r\nContent-Length: 1\r\nUpgrade: h2c\r\n\r\n", {.old_client = true},
             &limits),
      "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nX-Request-Id: 7\r\nConnection: keep-alive\r\n");
}

TEST(ClientHeadTest, TakesTheUpstreamsLimitsOut) {
  UpstreamLimits limits;
  EXPECT_EQ(
      Client("HTTP/1.1 200 OK\r\nRateLimit: a\r\nX-REQUEST-ID: theirs\r\nB: 1\r\nratelimit: b\r\n"
             "RateLimit-Policy: c\r\nRateLimit-Other: d\r\nContent-Length: 0\r\n\r\n",
             {}, &limits),
      "HTTP/1.1 200 OK\r\nB: 1\r\nRateLimit-Other: d\r\nContent-Length: 0\r\n"
      "X-Request-Id: 7\r\n");
  EXPECT_EQ(limits[transport::LimitField::kRateLimit], "a, b");
  EXPECT_EQ(limits[transport::LimitField::kPolicy], "c");
}

}  // namespace
}  // namespace sluice::gateway
