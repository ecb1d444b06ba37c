// A gateway with certificates on either side, made for the test.
#pragma once

#include <openssl/ssl.h>

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sluice/net/testing/certificates.h"
#include "sluice/net/testing/tls_client.h"
#include "tests/gateway/gateway_fixture.h"

namespace sluice::gateway {

using net::testing::KeyPair;
using net::testing::TestAuthority;
using net::testing::TlsClient;
using net::testing::TlsOptions;

inline constexpr std::string_view kGet = "GET / HTTP/1.1\r\nHost: a\r\nK: ann\r\n\r\n";
inline constexpr std::string_view kOk = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

// Bytes that do not repeat soon.
inline std::string Pattern(std::size_t size) {
  std::string text(size, '\0');
  for (std::size_t i = 0; i < size; ++i) text[i] = static_cast<char>(i * 2654435761U >> 13);
  return text;
}

class TlsFixture : public GatewayTest {
 protected:
  using GatewayTest::GatewayTest;

  static std::shared_ptr<const net::TlsServerContext> Load(
      const std::vector<KeyPair>& pairs, net::TlsVersion min_version = net::TlsVersion::k12) {
    net::TlsServerContext::Options options{.min_version = min_version};
    for (const KeyPair& pair : pairs) {
      options.pairs.push_back({pair.certificate_file, pair.key_file});
    }
    auto context = net::TlsServerContext::Load(options);
    EXPECT_TRUE(context.ok()) << context.status();
    return *std::move(context);
  }
  static std::shared_ptr<const net::TlsClientContext> Load(
      const net::TlsClientContext::Options& options) {
    auto context = net::TlsClientContext::Load(options);
    EXPECT_TRUE(context.ok()) << context.status();
    return *std::move(context);
  }
  // For clients of the gateway.
  [[nodiscard]] TlsOptions Trusting(std::string name = "site.test") const {
    return {.ca_file = authority_.ca_file(), .server_name = std::move(name)};
  }

  TestAuthority authority_;
};

}  // namespace sluice::gateway
