#include "sluice/transport/gateway/trailers.h"

#include <gtest/gtest.h>

#include <string>

namespace sluice::gateway {
namespace {

TEST(TrailersTest, NothingThatAHeadIsReadForMayTrail) {
  for (const char* name : {"Transfer-Encoding",
                           "content-length",
                           "Content-Type",
                           "Host",
                           "TE",
                           "Trailer",
                           "Connection",
                           "Keep-Alive",
                           "Upgrade",
                           "HTTP2-Settings",
                           "Proxy-Authenticate",
                           "Authorization",
                           "WWW-Authenticate",
                           "Set-Cookie",
                           "Set-Cookie2",
                           "Cookie",
                           "Cache-Control",
                           "Age",
                           "Vary",
                           "Expires",
                           "Date",
                           "Location",
                           "Retry-After",
                           "If-Match",
                           "Max-Forwards",
                           "Pragma",
                           "Range",
                           "RateLimit",
                           "ratelimit-policy",
                           "X-RateLimit-Limit",
                           "X-Rate-Limit-Reset",
                           "Via",
                           "Forwarded",
                           "X-Forwarded-For",
                           "x_forwarded_for",
                           "X-Real-IP",
                           "X-Request-Id",
                           "Access-Control-Allow-Origin"}) {
    EXPECT_FALSE(MayTrail(name)) << name;
  }
  for (const char* name : {"X-Sum", "grpc-status", "Server-Timing", "Digest", "ETag", "Tea",
                           "Hostess", "Dates", "X-Real-IPs", "a"}) {
    EXPECT_TRUE(MayTrail(name)) << name;
  }
}

TEST(TrailersTest, PassesTheOthersInTheirOrder) {
  std::string out = "0\r\n";
  AppendTrailers("B: 1\r\nhost: a\r\nA:\r\nB: Via: 2\r\nVia: b\r\n", &out);
  EXPECT_EQ(out, "0\r\nB: 1\r\nA:\r\nB: Via: 2\r\n");
}

}  // namespace
}  // namespace sluice::gateway
