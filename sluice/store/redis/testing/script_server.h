// A Redis server that knows the script, and what a test sends to it.
//
// With Clock::kManual the script takes its time from a key that the test sets, by a change to its
// text that no other program makes; and its keys live a day longer, so that none is over by the
// server's own clock before it is by the test's.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>

#include "sluice/net/redis_reply.h"
#include "sluice/net/testing/redis_server.h"
#include "sluice/store/redis/script_call.h"

namespace sluice::redis::testing {

enum class Clock : std::uint8_t { kServer, kManual };

// The script with Clock::kManual; the key is kClockKey, its value seconds and microseconds.
std::string ManualScript();
inline constexpr std::string_view kClockKey = "test:clock";
std::string ClockText(std::int64_t wall_us);

class ScriptServer {
 public:
  explicit ScriptServer(Clock clock);

  // kManual: microseconds since 1970.
  void SetTime(std::int64_t wall_us) { wall_us_ = wall_us; }
  [[nodiscard]] std::int64_t time() const { return wall_us_; }

  // Sends and reads until no group is to be sent again (at most ScriptCall::kMostTurns times).
  // Fails the test where the reply as a whole is an error.
  void Decide(std::span<ScriptGroup> groups);
  void Undo(std::span<ScriptUndo> undos);
  void Renew(std::span<ScriptRenewal> renewals);
  // One turn; what was sent is in sent().
  [[nodiscard]] absl::Status DecideOnce(std::span<ScriptGroup> groups);

  // Apart, for many calls on their way at once.
  void Append(std::span<const ScriptGroup> groups, std::string* bytes) {
    call_.AppendDecide(sha_, groups, own_clock, bytes);
  }
  void SendAll(std::string_view bytes) { connection_.Send(bytes); }
  [[nodiscard]] absl::Status Read(std::span<ScriptGroup> groups) {
    return call_.ReadDecide(connection_.Read(), groups, own_clock);
  }

  net::RedisReply Ask(std::initializer_list<std::string_view> words);
  void LoadScript();

  [[nodiscard]] ScriptCall& call() { return call_; }
  [[nodiscard]] const std::string& sent() const { return bytes_; }
  [[nodiscard]] net::testing::RedisServer& server() { return server_; }
  // Before our first reply nothing is known of the server's time but this.
  Now own_clock{};

 private:
  net::RedisReply Send();

  const Clock clock_;
  net::testing::RedisServer server_;
  net::testing::RawRedis connection_;
  ScriptCall call_;
  std::string sha_;
  std::string bytes_;
  std::int64_t wall_us_ = 0;
};

}  // namespace sluice::redis::testing
