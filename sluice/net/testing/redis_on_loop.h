// A RedisConnection on a loop of its own, for a test that stands outside of it: what comes back is
// a line each, in order, and can be waited for.
//
//   RedisOnLoop redis({.address = {"127.0.0.1", listener.port()}});
//   redis.Send({{"GET", "a"}, {"GET", "b"}});           // in one turn of the loop
//   EXPECT_EQ(redis.Answers(2), (Lines{"1", "nil"}));
//
// Every wait ends after 20 s, with what has come by then.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/base/time.h"
#include "sluice/net/event_loops.h"
#include "sluice/net/redis_connection.h"

namespace sluice::net::testing {

using Lines = std::vector<std::string>;

// A list that one thread writes and another waits for.
class LineLog {
 public:
  void Add(std::string line);
  // Takes out the first `count`, once they are there.
  Lines Take(std::size_t count);
  // Waits for this one and takes out all up to it; false if it does not come.
  bool TakeUpTo(std::string_view line);
  [[nodiscard]] std::size_t size() const;

 private:
  mutable std::mutex mutex_;
  std::condition_variable added_;
  Lines lines_;
};

// A reply as a line: its text, its number, "nil", or "-" and its error; "[a b]". Without one the
// name of the status' code: "DEADLINE_EXCEEDED".
std::string Shown(RedisValue value);
std::string Shown(const absl::StatusOr<RedisReply>& reply);

class RedisOnLoop {
 public:
  static constexpr Duration kLong = std::chrono::seconds{20};
  using Words = std::vector<std::string_view>;

  explicit RedisOnLoop(RedisConnectionOptions options);
  RedisOnLoop(const RedisOnLoop&) = delete;
  RedisOnLoop& operator=(const RedisOnLoop&) = delete;
  ~RedisOnLoop();

  // In one turn. What Send() itself refuses is a line as well, with "!" in front.
  void Send(const std::vector<Words>& commands, Duration deadline = kLong);
  // From a callback.
  void SendHere(const std::vector<Words>& commands, Duration deadline = kLong);
  Lines Answers(std::size_t count) { return answers_.Take(count); }
  Lines Ask(const std::vector<Words>& commands);
  [[nodiscard]] std::size_t answers() const { return answers_.size(); }

  // Waits until its state becomes this, or has done so since the one awaited before: "connecting",
  // "ready", "waiting".
  bool AwaitState(std::string_view state) { return states_.TakeUpTo(state); }
  std::string Error();
  void Destroy();
  // From one of its callbacks.
  void DestroyHere() { redis_.reset(); }
  // As if so much time passed for what is measured in ticks: silence, and the end of connecting.
  void Pass(Duration time);

  // Runs on the loop and is waited for; null once it was destroyed.
  void OnLoop(const std::function<void(RedisConnection*)>& work);
  // `done` is called with what comes, as a line, on the loop.
  void SendThen(const Words& words, Duration deadline, std::function<void(std::string)> done);

 private:
  EventLoops loops_{1};
  LineLog answers_;
  LineLog states_;
  std::unique_ptr<RedisConnection> redis_;
};

}  // namespace sluice::net::testing
