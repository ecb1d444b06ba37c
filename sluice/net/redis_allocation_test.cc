// What a command to Redis takes from the heap once the connection has been in use: nothing but what
// hiredis takes for the reply, by malloc.
#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <memory>
#include <string>

#include "sluice/base/steady_now.h"
#include "sluice/net/event_loops.h"
#include "sluice/net/redis_connection.h"
#include "sluice/net/testing/redis_server.h"
#include "tests/allocations/counting_new.h"

namespace sluice::net {
namespace {

// How many coroutine frames a round takes from the heap.
#ifdef __SANITIZE_ADDRESS__
constexpr int kFrames = 3;  // net/task.h gives every frame back to the sanitizer
#else
constexpr int kFrames = 0;
#endif

// Sends the same commands round after round, in one turn each.
class Rounds {
 public:
  static constexpr int kCommands = 50;
  static constexpr int kWarm = 20;
  static constexpr int kCounted = 200;

  Rounds() {
    const std::string_view words[] = {"EVAL", "return {KEYS[1], ARGV[1], 12}", "1", "key", "value"};
    AppendRedisCommand(words, &command_);
  }
  void Begin(EventLoop& loop, const std::string& unix_socket) {
    CountAllocationsOfThisThread();
    redis_ =
        std::make_unique<RedisConnection>(loop, RedisConnectionOptions{.unix_socket = unix_socket});
    Send();
  }
  void End() { redis_.reset(); }
  std::uint64_t Allocations() { return done_.get_future().get(); }

 private:
  void Send() {
    for (int i = 0; i < kCommands; ++i) {
      const absl::Status sent =
          redis_->Send(command_, SteadyNow() + std::chrono::seconds(20),
                       [this](absl::StatusOr<RedisReply> reply) { OnReply(reply); });
      EXPECT_TRUE(sent.ok()) << sent;
    }
  }
  void OnReply(const absl::StatusOr<RedisReply>& reply) {
    right_ += reply.ok() && reply->size() == 3 && (*reply)[2].integer() == 12 ? 1 : 0;
    if (++answers_ % kCommands != 0) return;
    const int round = answers_ / kCommands;
    if (round == kWarm) before_ = CountedAllocations();
    if (round < kWarm + kCounted) return Send();
    EXPECT_EQ(right_, answers_);
    done_.set_value(CountedAllocations() - before_);
  }

  std::string command_;
  std::unique_ptr<RedisConnection> redis_;
  int answers_ = 0;
  int right_ = 0;
  std::uint64_t before_ = 0;
  std::promise<std::uint64_t> done_;
};

TEST(RedisAllocations, ACommandTakesNothingButItsReply) {
  testing::RedisServer server;
  EventLoops loops(1);
  Rounds rounds;
  loops.Start();
  loops.OnEach([&](EventLoop& loop) { rounds.Begin(loop, server.unix_socket()); });
  // A round whose replies came in pieces has a frame more for each.
  const std::uint64_t taken = rounds.Allocations();
  if (kFrames == 0) {
    EXPECT_EQ(taken, 0u);
  } else {
    EXPECT_LE(taken, std::uint64_t{2} * kFrames * Rounds::kCounted);
  }
  loops.OnEach([&](EventLoop&) { rounds.End(); });
  loops.Stop();
}

}  // namespace
}  // namespace sluice::net
