#include "sluice/net/address.h"

#include <gtest/gtest.h>

namespace sluice::net {
namespace {

TEST(AddressTest, ReadsHostAndPort) {
  const struct {
    std::string_view text;
    std::string_view host;
    int port;
  } rows[] = {
      {"127.0.0.1:8080", "127.0.0.1", 8080},
      {"[::1]:0", "::1", 0},
      {"localhost:65535", "localhost", 65535},
  };
  for (const auto& row : rows) {
    const absl::StatusOr<HostPort> got = ParseHostPort(row.text);
    ASSERT_TRUE(got.ok()) << row.text;
    EXPECT_EQ(got->host, row.host);
    EXPECT_EQ(got->port, row.port);
  }
}

TEST(AddressTest, RefusesWhatIsOutOfForm) {
  for (const std::string_view text : {"", "localhost", ":80", "a:", "a:65536", "a:-1", "a:+1",
                                      "a:8o", "::1:80", "[::1]", "[::1:80", "[]:80", "a:80 "}) {
    EXPECT_FALSE(ParseHostPort(text).ok()) << text;
  }
}

TEST(AddressTest, WritesBracketsAroundIPv6) {
  const auto endpoints = Resolve({"::1", 80});
  ASSERT_TRUE(endpoints.ok());
  EXPECT_EQ(ToString(endpoints->front()), "[::1]:80");
  EXPECT_EQ(ToString(Resolve({"127.0.0.1", 81})->front()), "127.0.0.1:81");
  EXPECT_EQ(Resolve({"no.such.name.invalid", 1}).status().code(), absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace sluice::net
