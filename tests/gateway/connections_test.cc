// How many connections one client may have.
#include "tests/gateway/gateway_fixture.h"

namespace sluice::gateway {
namespace {

const std::string kGet = "GET /health HTTP/1.1\r\nHost: a\r\n\r\n";

TEST_F(GatewayTest, OneClientMayHaveSoManyConnectionsAndNoMore) {
  options_.connections_per_client = 3;
  options_.health_path = "/health";
  StartByHand();
  std::vector<std::unique_ptr<RawClient>> clients;
  for (int i = 0; i < 3; ++i) {
    clients.push_back(std::make_unique<RawClient>(port()));
    EXPECT_EQ(clients.back()->Ask(kGet).status, 200);
  }
  for (std::uint64_t i = 1; i <= 3; ++i) {
    RawClient one_too_many(port());
    EXPECT_EQ(one_too_many.ReadToEnd(), "");
    Until([&] { return gateway_->counters().connections_refused == i; });
  }
  // Those that were let in go on; when one ends there is room for another.
  for (const auto& client : clients) EXPECT_EQ(client->Ask(kGet).status, 200);
  clients.pop_back();
  Until([&] {
    RawClient next(port());
    return next.Send(kGet) && next.ReadUntil("\r\n\r\n").starts_with("HTTP/1.1 200");
  });
}

TEST_F(GatewayTest, ATrustedProxyMayHaveAsManyConnectionsAsThereAre) {
  options_.connections_per_client = 1;
  options_.health_path = "/health";
  rule_options_.client_address.trusted_proxies = {*IpPrefix::Parse("127.0.0.1")};
  StartByHand();
  std::vector<std::unique_ptr<RawClient>> clients;
  for (int i = 0; i < 20; ++i) {
    clients.push_back(std::make_unique<RawClient>(port()));
    EXPECT_EQ(clients.back()->Ask(kGet).status, 200);
  }
  EXPECT_EQ(gateway_->counters().connections_refused, 0U);
}

}  // namespace
}  // namespace sluice::gateway
