#include "sluice/store/redis/testing/fake_redis.h"

#include <gtest/gtest.h>

namespace sluice::redis::testing {

RedisStoreOptions FakeRedis::Options() const {
  RedisStoreOptions options;
  options.connection.address = {"127.0.0.1", listener_.port()};
  options.connection.jitter = [](Duration) { return Duration::zero(); };
  return options;
}

void FakeRedis::Accept() {
  client_.emplace(listener_.Accept());
  EXPECT_EQ(Read(), std::vector<std::string>{"PING"});
  Say("+PONG\r\n");
}

void FakeRedis::AcceptAndLoad() {
  Accept();
  SayLoaded();
}

void FakeRedis::SayLoaded() {
  const std::vector<std::string> words = Read();
  ASSERT_EQ(words.size(), 3u);
  EXPECT_EQ(words[0] + " " + words[1], "SCRIPT LOAD");
  Say("$40\r\n" + std::string(kFakeSha) + "\r\n");
}

std::string FakeRedis::Line() {
  std::string line = client_->ReadUntil("\r\n");
  if (line.size() < 3) {
    ADD_FAILURE() << "no command comes";
    return "0";
  }
  return line.substr(1, line.size() - 3);
}

std::vector<std::string> FakeRedis::Read() {
  std::vector<std::string> words(std::stoul(Line()));
  for (std::string& word : words) {
    const std::size_t size = std::stoul(Line());
    word = client_->ReadExactly(size + 2);
    word.resize(std::min(size, word.size()));
  }
  return words;
}

std::vector<std::string> FakeRedis::ReadCall() {
  std::vector<std::string> words = Read();
  if (words.size() < 6 || words[0] != "EVALSHA") {
    ADD_FAILURE() << "no call, but " << (words.empty() ? "nothing" : words[0]);
    words.resize(6);
  }
  return words;
}

void FakeRedis::Answer(const std::vector<std::string>& parts) {
  std::string reply = "*" + std::to_string(parts.size() + 1) + "\r\n:1780000000000000\r\n";
  for (const std::string& part : parts) reply += part;
  Say(reply);
}

}  // namespace sluice::redis::testing
