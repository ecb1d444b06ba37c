#include "sluice/transport/gateway/upstream_places.h"

#include <gtest/gtest.h>

#include <deque>
#include <optional>

namespace sluice::gateway {
namespace {

using namespace std::chrono_literals;

class UpstreamPlacesTest : public ::testing::Test {
 protected:
  struct Asked {
    explicit Asked(UpstreamPlacesTest& test) : place(test.loop_, test.places_) {}
    UpstreamPlaces::Place place;
    std::optional<bool> got;
  };

  ~UpstreamPlacesTest() override {
    loop_.deadlines().Stop();
    Run();
  }
  Asked& Ask() {
    Asked& asked = asked_.emplace_back(*this);
    net::Spawn(Enter(places_, asked));
    return asked;
  }
  static net::Task<void> Enter(UpstreamPlaces& places, Asked& asked) {
    asked.got = co_await places.Enter(asked.place, 1h);
  }
  void Run() { loop_.Poll(); }

  net::EventLoop loop_{0};
  UpstreamPlaces places_{loop_, 2};
  std::deque<Asked> asked_;
};

TEST_F(UpstreamPlacesTest, WhoWaitsGetsAPlaceInOrder) {
  EXPECT_EQ(Ask().got, true);
  EXPECT_EQ(Ask().got, true);
  Asked& third = Ask();
  Asked& fourth = Ask();
  places_.Leave();
  // Nobody gets in between, though the third has not run yet.
  Asked& fifth = Ask();
  Run();
  EXPECT_EQ(third.got, true);
  EXPECT_EQ(fourth.got, std::nullopt);
  places_.Leave();
  places_.Leave();
  Run();
  EXPECT_EQ(fourth.got, true);
  EXPECT_EQ(fifth.got, true);
  EXPECT_EQ(places_.in_use(), 2u);
}

TEST_F(UpstreamPlacesTest, WhoGivesUpIsPassedOver) {
  Ask();
  Ask();
  Asked& gone = Ask();
  Asked& next = Ask();
  places_.GiveUp(gone.place);
  places_.GiveUp(gone.place);
  places_.Leave();
  Run();
  EXPECT_EQ(gone.got, false);
  EXPECT_EQ(next.got, true);
  places_.Leave();
  places_.Leave();
  EXPECT_EQ(places_.in_use(), 0u);
}

TEST_F(UpstreamPlacesTest, ASmallerBoundHoldsAsPlacesComeBack) {
  Ask();
  Ask();
  Asked& third = Ask();
  places_.SetMax(1);
  places_.Leave();
  Run();
  EXPECT_EQ(third.got, std::nullopt);
  places_.Leave();
  Run();
  EXPECT_EQ(third.got, true);
  EXPECT_EQ(places_.in_use(), 1u);
}

TEST_F(UpstreamPlacesTest, ALargerBoundLetsInWhoWaits) {
  Ask();
  Ask();
  Asked& third = Ask();
  Asked& fourth = Ask();
  Asked& fifth = Ask();
  places_.SetMax(4);
  Run();
  EXPECT_EQ(third.got, true);
  EXPECT_EQ(fourth.got, true);
  EXPECT_EQ(fifth.got, std::nullopt);
  places_.GiveUp(fifth.place);
  Run();
}

}  // namespace
}  // namespace sluice::gateway
