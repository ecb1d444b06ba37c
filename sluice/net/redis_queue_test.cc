#include "sluice/net/internal/redis_queue.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sluice::net::internal {
namespace {

using namespace std::chrono_literals;
using Lines = std::vector<std::string>;

class RedisQueueTest : public ::testing::Test {
 protected:
  static constexpr Time At(Duration after) { return Time{} + after; }

  // What becomes of it is a line of told_.
  bool Push(std::string_view name, Duration deadline = 1h, std::uint32_t replies = 1) {
    RedisQueue::Done done = [this, name](absl::StatusOr<RedisReply> reply) {
      told_.push_back(std::string(name) + " " +
                      (reply.ok() ? std::string(reply->text())
                                  : absl::StatusCodeToString(reply.status().code())));
    };
    return queue_.Push("<" + std::string(name) + ">", replies, At(deadline), done);
  }
  std::string Taken() {
    std::string bytes = "rest of before";
    queue_.TakeUnsent(&bytes);
    return bytes;
  }
  bool Deliver(std::string_view text) {
    reader_.Feed("+" + std::string(text) + "\r\n");
    RedisReply reply;
    EXPECT_EQ(reader_.Next(&reply), RedisReplyReader::Step::kReply);
    return queue_.Deliver(std::move(reply));
  }
  Lines Told() { return std::exchange(told_, {}); }

  RedisReplyReader reader_;
  RedisQueue queue_{4, 20};
  Lines told_;
};

TEST_F(RedisQueueTest, MatchesRepliesInOrderRoundAndRound) {
  for (int i = 0; i < 10; ++i) {
    EXPECT_TRUE(Push("a") && Push("b") && Push("c"));
    EXPECT_EQ(Taken(), "<a><b><c>");
    EXPECT_TRUE(Deliver("1") && Deliver("2") && Deliver("3"));
    EXPECT_EQ(Told(), (Lines{"a 1", "b 2", "c 3"}));
    EXPECT_EQ(queue_.size(), 0u);
  }
  EXPECT_FALSE(Deliver("4"));
}

TEST_F(RedisQueueTest, AReplyIsForNobodyWhileNothingIsInFlight) {
  EXPECT_TRUE(Push("a"));
  EXPECT_FALSE(Deliver("1"));
  EXPECT_EQ(Taken(), "<a>");
  EXPECT_TRUE(Deliver("1"));
}

TEST_F(RedisQueueTest, GivesTheLastOfSeveralReplies) {
  EXPECT_TRUE(Push("a", 1h, 3) && Push("b"));
  Taken();
  EXPECT_TRUE(Deliver("1") && Deliver("2"));
  EXPECT_EQ(Told(), Lines{});
  EXPECT_TRUE(Deliver("3") && Deliver("4"));
  EXPECT_EQ(Told(), (Lines{"a 3", "b 4"}));
}

TEST_F(RedisQueueTest, HasBounds) {
  EXPECT_TRUE(Push("a") && Push("b") && Push("c") && Push("d"));
  EXPECT_FALSE(Push("e"));
  Taken();
  EXPECT_FALSE(Push("e"));
  Deliver("1");
  EXPECT_FALSE(Push("this has 21 bytes:)"));
  EXPECT_TRUE(Push("this has twenty :)"));
  EXPECT_EQ(Told(), (Lines{"a 1"}));
  queue_.FailAll(absl::UnavailableError(""));
  EXPECT_TRUE(Push("eighteen bytes ."));
  EXPECT_FALSE(Push("x"));  // 18 and 3
}

TEST_F(RedisQueueTest, TellsWhoseTimeIsUpAndKeepsThePlace) {
  EXPECT_TRUE(Push("a", 30ms) && Push("b", 10ms) && Push("c", 20ms));
  Taken();
  EXPECT_EQ(queue_.Expire(At(9ms)), At(10ms));
  EXPECT_EQ(Told(), Lines{});
  EXPECT_EQ(queue_.Expire(At(20ms)), At(30ms));
  EXPECT_EQ(Told(), (Lines{"b DEADLINE_EXCEEDED", "c DEADLINE_EXCEEDED"}));
  EXPECT_EQ(queue_.in_flight(), 3u);
  EXPECT_TRUE(Deliver("1") && Deliver("late") && Deliver("late"));
  EXPECT_EQ(Told(), (Lines{"a 1"}));
  EXPECT_EQ(queue_.Expire(At(2h)), Time::max());
}

TEST_F(RedisQueueTest, NeverSendsWhatNobodyWaitsForAnyMore) {
  EXPECT_TRUE(Push("a"));
  Taken();
  EXPECT_TRUE(Push("b", 10ms) && Push("c") && Push("d", 10ms));
  queue_.Expire(At(10ms));
  EXPECT_EQ(Told(), (Lines{"b DEADLINE_EXCEEDED", "d DEADLINE_EXCEEDED"}));
  EXPECT_EQ(Taken(), "<c>");
  EXPECT_EQ(queue_.in_flight(), 2u);
  EXPECT_TRUE(Push("e", 20ms));
  queue_.Expire(At(20ms));
  EXPECT_EQ(Taken(), "");
  EXPECT_TRUE(Push("f"));
  EXPECT_EQ(Taken(), "<f>");
  EXPECT_TRUE(Deliver("1") && Deliver("3") && Deliver("6"));
  EXPECT_EQ(Told(), (Lines{"e DEADLINE_EXCEEDED", "a 1", "c 3", "f 6"}));
}

TEST_F(RedisQueueTest, FailsEachOnceInOrder) {
  EXPECT_TRUE(Push("a") && Push("b", 10ms));
  Taken();
  queue_.Expire(At(10ms));
  EXPECT_TRUE(Push("c", 20ms) && Push("d"));
  queue_.Expire(At(20ms));
  Told();
  queue_.FailAll(absl::UnavailableError(""));
  EXPECT_EQ(Told(), (Lines{"a UNAVAILABLE", "d UNAVAILABLE"}));
  EXPECT_EQ(queue_.in_flight(), 0u);
  EXPECT_TRUE(Push("e"));
  EXPECT_EQ(Taken(), "<e>");
}

TEST_F(RedisQueueTest, WhoIsToldMayPushAndMayFailAllOthers) {
  const auto push_then = [this](std::string_view name, Duration deadline, auto act) {
    RedisQueue::Done done = [this, name, act](absl::StatusOr<RedisReply>) {
      told_.emplace_back(name);
      act();
    };
    EXPECT_TRUE(queue_.Push("<" + std::string(name) + ">", 1, At(deadline), done));
  };
  push_then("a", 1h, [this] { EXPECT_TRUE(Push("later")); });
  Taken();
  EXPECT_TRUE(Deliver("1"));
  EXPECT_EQ(Taken(), "<later>");
  EXPECT_TRUE(Deliver("2"));
  EXPECT_EQ(Told(), (Lines{"a", "later 2"}));

  push_then("b", 10ms, [this] { EXPECT_TRUE(Push("near", 5ms)); });
  push_then("c", 10ms, [this] { queue_.FailAll(absl::CancelledError("")); });
  EXPECT_TRUE(Push("d", 10ms));
  queue_.Expire(At(10ms));
  EXPECT_EQ(Told(), (Lines{"b", "c", "d CANCELLED", "near CANCELLED"}));
  EXPECT_EQ(queue_.size(), 0u);
  EXPECT_EQ(Taken(), "");
}

}  // namespace
}  // namespace sluice::net::internal
