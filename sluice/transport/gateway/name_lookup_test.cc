#include "sluice/transport/gateway/name_lookup.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <latch>
#include <memory>
#include <string>
#include <thread>

#include "absl/status/status.h"

namespace sluice::gateway {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

absl::StatusOr<Endpoints> AtPortOf(const net::HostPort& where) {
  return Endpoints{{net::asio::ip::make_address("10.0.0.1"), where.port}};
}

// "dead" is never answered while it lasts, "gone" is nobody, all else is found.
class NameLookupTest : public ::testing::Test {
 protected:
  NameLookupTest()
      : resolve_([asked = asked_, end = end_.get_future().share()](const net::HostPort& where) {
          if (where.host == "gone") return absl::StatusOr<Endpoints>(absl::NotFoundError("gone"));
          if (where.host == "dead") {
            asked->set_value();
            end.wait();
          }
          return AtPortOf(where);
        }) {}
  ~NameLookupTest() override { end_.set_value(); }

  std::promise<void> end_;
  const std::shared_ptr<std::promise<void>> asked_ = std::make_shared<std::promise<void>>();
  const Resolver resolve_;
  std::stop_source stop_;
};

TEST_F(NameLookupTest, AllAreFoundInTheirOrder) {
  const auto found = LookUp({{"a", 1}, {"10.0.0.1", 2}, {"b", 3}}, resolve_, 1h, stop_.get_token());
  ASSERT_TRUE(found.ok()) << found.status();
  ASSERT_EQ(found->size(), 3u);
  for (std::uint16_t i = 0; i < 3; ++i) EXPECT_EQ((*found)[i].front().port(), i + 1);
  EXPECT_TRUE(LookUp({}, resolve_, 1h, stop_.get_token()).ok());
}

TEST_F(NameLookupTest, TheyAreAskedSideBySide) {
  const auto all = std::make_shared<std::latch>(64);
  const std::vector<net::HostPort> names(64, {"api", 80});
  const auto together = [all](const net::HostPort& where) {
    all->arrive_and_wait();
    return AtPortOf(where);
  };
  EXPECT_TRUE(LookUp(names, together, 1h, stop_.get_token()).ok());
}

TEST_F(NameLookupTest, OneThatHangsEndsItWithTheTime) {
  const auto found = LookUp({{"a", 1}, {"dead", 2}}, resolve_, 20ms, stop_.get_token());
  EXPECT_TRUE(absl::IsDeadlineExceeded(found.status()));
  EXPECT_EQ(found.status().message(), "`dead` could not be looked up within 0.02 s");
}

TEST_F(NameLookupTest, AnErrorDoesNotWaitForTheOthers) {
  const auto found = LookUp({{"dead", 1}, {"gone", 2}}, resolve_, 1h, stop_.get_token());
  EXPECT_TRUE(absl::IsNotFound(found.status())) << found.status();
}

TEST_F(NameLookupTest, WhoeverAsksCanGiveUp) {
  std::thread other([this] {
    asked_->get_future().wait();
    stop_.request_stop();
  });
  const auto found = LookUp({{"dead", 1}}, resolve_, 1h, stop_.get_token());
  EXPECT_TRUE(absl::IsCancelled(found.status())) << found.status();
  other.join();
}

}  // namespace
}  // namespace sluice::gateway
