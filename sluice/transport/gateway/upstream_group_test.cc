#include "sluice/transport/gateway/upstream_group.h"

#include <gtest/gtest.h>

#include <boost/smart_ptr/make_local_shared.hpp>
#include <optional>
#include <utility>

#include "sluice/net/testing/raw_client.h"

namespace sluice::gateway {
namespace {

using namespace std::chrono_literals;
using net::testing::RawClient;
using net::testing::RawListener;

constexpr Time kNow{1h};

// Two upstreams on a loop that only runs when it is told to; the first is `server_`.
class UpstreamGroupTest : public ::testing::Test {
 protected:
  UpstreamGroupTest() {
    options_.upstreams = {{.address = {"127.0.0.1", server_.port()}},
                          {.address = {"127.0.0.1", 1}}};
    options_.upstream_health = {.failures = 1, .rest = 10s};
    for (const UpstreamOptions& upstream : options_.upstreams) {
      upstreams_.push_back(Known(upstream.address));
    }
  }
  ~UpstreamGroupTest() override {
    loop_.deadlines().Stop();
    loop_.Poll();
  }

  static std::shared_ptr<Upstream> Known(const net::HostPort& address) {
    return std::make_shared<Upstream>(address, /*loop_count=*/1,
                                      std::make_shared<const Endpoints>(*net::Resolve(address)));
  }
  UpstreamGroupPtr Make(const UpstreamGroup* before = nullptr) {
    return boost::make_local_shared<UpstreamGroup>(loop_, places_, options_, upstreams_, before);
  }
  // A connection to the first upstream.
  UpstreamPool::Connection Connect(UpstreamGroup& group) {
    UpstreamPool::Connection connection = group.Make(0, group.endpoints(0)->front());
    bool connected = false;
    net::Spawn(Open(*connection, &connected));
    while (!connected && loop_.RunOnce()) {
    }
    EXPECT_TRUE(connected);
    return connection;
  }
  static net::Task<void> Open(UpstreamConnection& connection, bool* connected) {
    *connected = co_await connection.Open();
  }
  const Upstream::OfLoop& Of(std::size_t upstream) { return upstreams_[upstream]->loops[0]; }

  RawListener server_;
  net::EventLoop loop_{0};
  UpstreamPlaces places_{loop_, 4};
  GatewayOptions options_;
  std::vector<std::shared_ptr<Upstream>> upstreams_;
};

TEST_F(UpstreamGroupTest, AKeptConnectionIsTheNextOneOfItsUpstreamAlone) {
  const UpstreamGroupPtr group = Make();
  group->Keep(Connect(*group));
  const RawClient end(server_.Accept());
  EXPECT_EQ(group->TakeIdle(1), nullptr);
  EXPECT_NE(group->TakeIdle(0), nullptr);
  EXPECT_EQ(group->TakeIdle(0), nullptr);
}

TEST_F(UpstreamGroupTest, AClosedGroupEndsWhatItKeepsAndKeepsNoMore) {
  const UpstreamGroupPtr group = Make();
  UpstreamPool::Connection in_use = Connect(*group);
  RawClient end_in_use(server_.Accept());
  group->Keep(Connect(*group));
  RawClient end_kept(server_.Accept());
  group->Close();
  EXPECT_TRUE(end_kept.Ended());
  EXPECT_FALSE(in_use->Readable());
  group->Keep(std::move(in_use));
  EXPECT_TRUE(end_in_use.Ended());
  EXPECT_EQ(group->TakeIdle(0), nullptr);
}

TEST_F(UpstreamGroupTest, AtRestStaysAtRestUnderNewSettings) {
  const UpstreamGroupPtr old = Make();
  old->Failed(1, kNow);
  EXPECT_TRUE(Of(1).resting);
  std::swap(options_.upstreams[0], options_.upstreams[1]);
  std::swap(upstreams_[0], upstreams_[1]);
  const UpstreamGroupPtr next = Make(old.get());
  old->Close();
  for (int i = 0; i < 4; ++i) EXPECT_EQ(next->Choose(kNow + 9s), 1u);
  EXPECT_TRUE(Of(0).resting);
  next->Answered(0);
  EXPECT_FALSE(Of(0).resting);
}

TEST_F(UpstreamGroupTest, WhatEndsUnderOldSettingsIsCountedAndJudgesNobody) {
  const UpstreamGroupPtr old = Make();
  const UpstreamGroupPtr next = Make(old.get());
  old->Close();
  old->CountRequest(1);
  old->Failed(1, kNow);
  next->CountRequest(1);
  EXPECT_EQ(Of(1).requests, 2u);
  EXPECT_EQ(Of(1).failures, 1u);
  EXPECT_FALSE(Of(1).resting);
}

TEST_F(UpstreamGroupTest, ANewConnectionTakesThePlaceOfAKeptOneWhenAllPlacesAreTaken) {
  places_.SetMax(1);
  const UpstreamGroupPtr group = Make();
  group->Keep(Connect(*group));
  RawClient end(server_.Accept());
  UpstreamPlaces::Place place(loop_, places_);
  std::optional<bool> entered;
  net::Spawn([](UpstreamPlaces& places, UpstreamPlaces::Place& mine,
                std::optional<bool>* out) -> net::Task<void> {
    *out = co_await places.Enter(mine, 1s);
  }(places_, place, &entered));
  EXPECT_EQ(entered, true);
  const UpstreamPool::Connection other = group->Make(1, group->endpoints(1)->front());
  EXPECT_TRUE(end.Ended());
  places_.Leave();
}

}  // namespace
}  // namespace sluice::gateway
