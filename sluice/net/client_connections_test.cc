#include "sluice/net/client_connections.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

namespace sluice::net {
namespace {

TEST(ClientConnectionsTest, EachClientHasItsOwnBound) {
  ClientConnections table(2);
  const IpAddress ann = IpAddress::V4(1);
  const IpAddress bob = IpAddress::V4(2);
  std::optional<ClientConnections::Pass> first = table.Enter(ann);
  const auto second = table.Enter(ann);
  EXPECT_TRUE(first && second);
  EXPECT_FALSE(table.Enter(ann));
  EXPECT_FALSE(table.Enter(ann));  // a refusal takes nothing
  EXPECT_TRUE(table.Enter(bob));
  first.reset();
  first.emplace(*table.Enter(ann));
  EXPECT_FALSE(table.Enter(ann));
  EXPECT_EQ(table.clients(), 1U);
}

TEST(ClientConnectionsTest, APassThatWasMovedLeavesOnce) {
  ClientConnections table(1);
  {
    std::optional<ClientConnections::Pass> pass = table.Enter(IpAddress::V4(1));
    const ClientConnections::Pass moved = *std::move(pass);
    pass.reset();
    EXPECT_FALSE(table.Enter(IpAddress::V4(1)));
    const ClientConnections::Pass of_nobody;
  }
  EXPECT_EQ(table.clients(), 0U);
}

TEST(ClientConnectionsTest, TenThousandClientsOnSeveralThreadsLeaveNothingBehind) {
  constexpr std::uint32_t kClients = 10'000;
  constexpr std::size_t kMost = 3;
  ClientConnections table(kMost);
  std::vector<std::thread> threads;
  std::atomic<std::size_t> let_in = 0;
  std::atomic<int> waiting = 0;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      // Held until all have come, so that of the four who ask for a client one is refused.
      std::vector<ClientConnections::Pass> held;
      for (std::uint32_t client = 0; client < kClients; ++client) {
        if (auto pass = table.Enter(IpAddress::V4(client))) {
          held.push_back(*std::move(pass));
          ++let_in;
        } else {
          --let_in;
        }
      }
      ++waiting;
      while (waiting < 4) std::this_thread::yield();
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(let_in, kClients * (kMost - 1));  // three in, one out, for each client
  EXPECT_EQ(table.clients(), 0U);
}

}  // namespace
}  // namespace sluice::net
