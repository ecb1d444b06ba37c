#include "sluice/net/internal/redis_link.h"

#include <gtest/gtest.h>

#include <boost/asio/ip/address.hpp>
#include <utility>
#include <vector>

#include "sluice/base/steady_now.h"
#include "sluice/net/testing/raw_client.h"

namespace sluice::net::internal {
namespace {

absl::Status Connected(RedisLink& link, std::vector<tcp::endpoint> endpoints, EventLoop& loop) {
  Task<absl::Status> connecting = link.ConnectTo(std::move(endpoints));
  while (!connecting.done()) loop.RunOnce();
  return connecting.await_resume();
}

TEST(RedisLink, TriesAllThatANameStandsForInOrder) {
  const testing::RawListener listener;  // on 127.0.0.1 alone
  const tcp::endpoint dead(asio::ip::make_address("::1"), listener.port());
  const tcp::endpoint alive(asio::ip::make_address("127.0.0.1"), listener.port());
  const RedisConnectionOptions options;
  EventLoop loop(0);
  const struct {
    std::vector<tcp::endpoint> endpoints;
    bool connects;
  } rows[] = {
      {{dead, alive}, true},
      {{alive, dead}, true},
      {{dead, dead}, false},
      {{}, false},
  };
  for (const auto& row : rows) {
    RedisLink link(loop, options, {.timeout = SteadyNow() + options.connect_timeout});
    EXPECT_EQ(Connected(link, row.endpoints, loop).ok(), row.connects);
  }
}

}  // namespace
}  // namespace sluice::net::internal
