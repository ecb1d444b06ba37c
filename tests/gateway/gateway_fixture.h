// A gateway with a memory store and a clock that stands still, in this process, on ports of the
// kernel's choice. The upstream is either the Orders API or the test itself, by hand.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "apps/orders_api/orders_api.h"
#include "sluice/limiter/limiter_fixture.h"
#include "sluice/net/testing/raw_client.h"
#include "sluice/transport/gateway/gateway.h"

namespace sluice::gateway {

using net::testing::RawClient;
using net::testing::RawListener;
using net::testing::RawResponse;

class GatewayTest : public ::testing::Test {
 protected:
  explicit GatewayTest(std::size_t loops = 2) : loops_(loops) {
    options_.listen = {"127.0.0.1", 0};
    auto opened = MemoryStore::Open({.max_keys = 10'000}, clock_.Read());
    EXPECT_TRUE(opened.ok()) << opened.status();
    store_ = *std::move(opened);
  }
  ~GatewayTest() override {
    gateway_.reset();
    orders_.reset();
    loops_.Stop();
  }

  // In front of the Orders API.
  void StartWithOrders(std::vector<Rule> rules) {
    auto orders = orders_api::OrdersApi::Start(loops_, {"127.0.0.1", 0});
    ASSERT_TRUE(orders.ok()) << orders.status();
    orders_ = *std::move(orders);
    Start(std::move(rules), orders_->endpoint().port());
  }
  // In front of an upstream that the test plays by hand: upstream_.Accept().
  void StartByHand(std::vector<Rule> rules = {}) { Start(std::move(rules), upstream_.port()); }

  void Start(std::vector<Rule> rules, std::uint16_t upstream_port) {
    auto set = std::make_shared<const RuleSet>(std::move(rules), rule_options_, 1);
    auto active = ActiveRules::Make(std::move(set), *store_, clock_, remote_);
    ASSERT_TRUE(active.ok()) << active.status();
    std::vector<Limiter*> each;
    for (std::size_t i = 0; i < loops_.size() + 1; ++i) {
      limiters_.push_back(std::make_unique<Limiter>(Limiter::Parts{.store = *store_,
                                                                   .hash_key = store_->hash_key(),
                                                                   .clock = clock_,
                                                                   .observer = nullptr,
                                                                   .remote = remote_},
                                                    *active));
      if (i < loops_.size()) each.push_back(limiters_.back().get());
    }
    if (options_.upstreams.empty())
      options_.upstreams = {{.address = {"127.0.0.1", upstream_port}}};
    auto gateway = Gateway::Start(loops_, each, options_, resolve_);
    ASSERT_TRUE(gateway.ok()) << gateway.status();
    gateway_ = *std::move(gateway);
    loops_.Start();
  }

  [[nodiscard]] std::uint16_t port() const { return gateway_->endpoint().port(); }
  RawResponse Get(const std::string& target, const std::string& fields = "K: ann\r\n") {
    RawClient client(port());
    return client.Ask("GET " + target + " HTTP/1.1\r\nHost: a\r\n" + fields + "\r\n");
  }
  // What a look under this key would see, from the test's own thread.
  const Outcome& Look(std::string_view key) {
    const std::vector<Field> headers = {{"K", key}};
    limiters_.back()->Check({.method = "GET", .target = "/", .headers = headers, .look = true},
                            outcome_);
    return outcome_;
  }
  // Waits for what another thread is about to do; fails after 20 s.
  static void Until(const std::function<bool()>& holds) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (!holds()) {
      if (std::chrono::steady_clock::now() > end) return ADD_FAILURE() << "it never came about";
      std::this_thread::yield();
    }
  }

  ManualClock clock_;
  std::unique_ptr<MemoryStore> store_;
  RemoteStore* remote_ = nullptr;  // of the only loop; null: all counts in store_
  net::EventLoops loops_;
  RawListener upstream_;
  std::unique_ptr<orders_api::OrdersApi> orders_;
  std::vector<std::unique_ptr<Limiter>> limiters_;  // the last is the test's own
  RuleSetOptions rule_options_;
  GatewayOptions options_;
  // No test asks a name server.
  Resolver resolve_ = [](const net::HostPort& where) -> absl::StatusOr<Endpoints> {
    boost::system::error_code not_literal;
    net::asio::ip::make_address(where.host, not_literal);
    if (not_literal) return absl::NotFoundError(where.host + " is no name of this test");
    return net::Resolve(where);
  };
  std::unique_ptr<Gateway> gateway_;
  Outcome outcome_;
};

}  // namespace sluice::gateway
