// What a decision takes from the heap once the store has been in use: nothing but what hiredis
// takes for the reply, by malloc.
#include <gtest/gtest.h>

#include <functional>
#include <future>
#include <memory>
#include <string>
#include <vector>

#include "sluice/base/clock.h"
#include "sluice/base/steady_now.h"
#include "sluice/net/event_loops.h"
#include "sluice/net/testing/redis_cluster.h"
#include "sluice/net/testing/redis_server.h"
#include "sluice/store/redis/redis_cluster_store.h"
#include "sluice/store/redis/redis_store.h"
#include "tests/allocations/counting_new.h"

namespace sluice::redis {
namespace {

using namespace std::chrono_literals;

// How many coroutine frames a round takes from the heap.
#ifdef __SANITIZE_ADDRESS__
constexpr int kFrames = 8;  // net/task.h gives every frame back to the sanitizer
#else
constexpr int kFrames = 0;
#endif

// Asks the same in one turn, round after round; slots are renewed and given back in between, and
// what a bucket was charged.
class Rounds {
 public:
  static constexpr int kWarm = 50;
  static constexpr int kCounted = 200;

  using Open =
      std::function<std::unique_ptr<RedisRemoteStore>(net::EventLoop& loop, const Clock& clock)>;

  void Begin(net::EventLoop& loop, const Open& open) {
    CountAllocationsOfThisThread();
    store_ = open(loop, clock_);
    Limit shifted = *fixed_window::MakeLimit(1'000'000, 24h);
    std::get<fixed_window::Limit>(shifted).per_key_offset = true;
    for (const Limit& limit :
         {Limit(*token_bucket::MakeLimit({7919, 1s}, 1'000'000)), shifted,
          Limit(*calendar::MakeLimit(1'000'000, calendar::Period::kYear, "Europe/Berlin")),
          Limit(*concurrency::MakeLimit(1000, 30s))}) {
      limits_.push_back(*store_->Prepare(limit));
    }
    for (int i = 0; i < 20; ++i) {
      for (std::size_t rule = 0; rule < limits_.size(); ++rule) {
        keys_.push_back("1:" + std::to_string(rule) + std::string("\x03\0\0\0a", 5) +
                        std::to_string(10 + i));
      }
    }
    for (std::size_t i = 0; i < keys_.size(); ++i) {
      claims_.push_back({.key = keys_[i], .limit = limits_[i % limits_.size()].get()});
    }
    // Of one claim, and of all four of a key.
    const std::size_t half = claims_.size() / 2;
    for (std::size_t i = 0; i < half; ++i) groups_.push_back({.claims = {&claims_[i], 1}});
    for (std::size_t i = half; i < claims_.size(); i += limits_.size()) {
      groups_.push_back({.claims = {&claims_[i], limits_.size()}});
    }
    Ask();
  }
  void End() { store_.reset(); }
  std::uint64_t Allocations() { return done_.get_future().get(); }

 private:
  void Ask() {
    for (RemoteGroup& group : groups_) {
      const absl::Status asked = store_->Apply(
          group, SteadyNow() + 20s, [this](const absl::Status& status) { OnAnswer(status); });
      EXPECT_TRUE(asked.ok()) << asked;
    }
  }
  void OnAnswer(const absl::Status& status) {
    right_ += status.ok() ? 1 : 0;
    if (++answers_ % groups_.size() != 0) return;
    for (const RemoteClaim& claim : claims_) {
      const Limit& limit = claim.limit->limit();
      if (std::holds_alternative<concurrency::Limit>(limit)) {
        store_->Renew(claim);
        store_->Undo(claim, 1);
      } else if (std::holds_alternative<token_bucket::Limit>(limit)) {
        store_->Undo(claim, 1);
      }
    }
    const std::size_t round = answers_ / groups_.size();
    if (round == kWarm) before_ = CountedAllocations();
    if (round < kWarm + kCounted) return Ask();
    EXPECT_EQ(right_, answers_);
    for (const RemoteGroup& group : groups_) EXPECT_TRUE(group.allowed);
    done_.set_value(CountedAllocations() - before_);
  }

  SystemClock clock_;
  std::unique_ptr<RedisRemoteStore> store_;
  std::vector<std::shared_ptr<const RemoteLimit>> limits_;
  std::vector<std::string> keys_;
  std::vector<RemoteClaim> claims_;
  std::vector<RemoteGroup> groups_;
  std::size_t answers_ = 0;
  std::size_t right_ = 0;
  std::uint64_t before_ = 0;
  std::promise<std::uint64_t> done_;
};

void ExpectNothingIsTaken(const Rounds::Open& open) {
  net::EventLoops loops(1);
  Rounds rounds;
  loops.Start();
  loops.OnEach([&](net::EventLoop& loop) { rounds.Begin(loop, open); });
  const std::uint64_t taken = rounds.Allocations();
  if (kFrames == 0) {
    EXPECT_EQ(taken, 0u);
  } else {
    EXPECT_LE(taken, std::uint64_t{kFrames} * Rounds::kCounted);
  }
  loops.OnEach([&](net::EventLoop&) { rounds.End(); });
  loops.Stop();
}

TEST(RedisStoreAllocations, ADecisionTakesNothingButItsReply) {
  net::testing::RedisServer server;
  ExpectNothingIsTaken([&](net::EventLoop& loop, const Clock& clock) {
    RedisStoreOptions options;
    options.connection.unix_socket = server.unix_socket();
    options.mark_undos = true;
    return std::make_unique<RedisStore>(loop, clock, options);
  });
}

TEST(RedisStoreAllocations, NorDoesOneInACluster) {
  net::testing::RedisCluster cluster({.primaries = 1});
  ExpectNothingIsTaken([&](net::EventLoop& loop, const Clock& clock) {
    return std::make_unique<RedisClusterStore>(
        loop, clock,
        RedisClusterOptions{
            .seeds = {{"127.0.0.1", cluster.ports()[0]}}, .look_every = 1h, .look_soon = 1h});
  });
}

}  // namespace
}  // namespace sluice::redis
