// A Redis server that the test plays by hand, command by command, for answers that a real one does
// not give when asked to. Every wait ends after 20 s, with a test failure.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/net/testing/raw_client.h"
#include "sluice/store/redis/redis_store.h"

namespace sluice::redis::testing {

// What SCRIPT LOAD answers.
inline constexpr std::string_view kFakeSha = "0123456789abcdef0123456789abcdef01234567";

class FakeRedis {
 public:
  // Of a store that connects to it, with no wait between attempts.
  [[nodiscard]] RedisStoreOptions Options() const;

  // The next connection, with its PING answered.
  void Accept();
  // And its SCRIPT LOAD.
  void AcceptAndLoad();
  // The words of the next command.
  std::vector<std::string> Read();
  // Of the next EVALSHA; all else fails the test.
  std::vector<std::string> ReadCall();
  // Bytes, as they are.
  void Say(std::string_view reply) { client_->Send(reply); }
  void SayLoaded();
  // The answer of a call: its parts behind the time of the script.
  void Answer(const std::vector<std::string>& parts);
  // From our side: the store sees the end of the connection.
  void Close() { client_->Close(); }
  // The store has ended it.
  bool Ended() { return client_->Ended(); }
  [[nodiscard]] bool Silent(std::chrono::milliseconds time) const { return client_->Silent(time); }

 private:
  std::string Line();

  net::testing::RawListener listener_;
  std::optional<net::testing::RawClient> client_;
};

// Of a group of one claim on a bucket that was full, and is charged.
inline constexpr std::string_view kCharged = "$1\r\n2\r\n";
// Gives nothing back, and does.
inline constexpr std::string_view kNo = "*1\r\n:0\r\n";
inline constexpr std::string_view kYes = "*1\r\n:1\r\n";

}  // namespace sluice::redis::testing
