#include "sluice/store/redis/testing/fake_node.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "sluice/store/redis/testing/fake_redis.h"

namespace sluice::redis::testing {
namespace {

constexpr std::chrono::seconds kPatience(20);
constexpr std::string_view kTime = ":1780000000000000\r\n";

// What each of the mode's keys is answered when all is well.
std::string_view Wanted(std::string_view mode) { return mode == "d" ? kCharged : kYes; }

}  // namespace

FakeNode::FakeNode() : port_(listener_.port()), acceptor_([this] { AcceptAll(); }) {}

FakeNode::~FakeNode() { Stop(); }

void FakeNode::Stop() {
  if (stopping_.exchange(true)) return;
  acceptor_.join();
  listener_.Close();
  for (const auto& connection : connections_) {
    ::shutdown(connection->client.socket(), SHUT_RDWR);
    connection->thread.join();
  }
  connections_.clear();
}

void FakeNode::AcceptAll() {
  while (!stopping_) {
    pollfd come{.fd = listener_.socket(), .events = POLLIN, .revents = 0};
    if (::poll(&come, 1, /*milliseconds=*/5) <= 0) continue;
    connections_.push_back(std::make_unique<Connection>(listener_.Accept()));
    Connection& connection = *connections_.back();
    connection.thread = std::thread([this, &connection] { Serve(connection.client); });
  }
}

void FakeNode::Serve(net::testing::RawClient& client) {
  Words words;
  bool asking = false;
  while (Read(client, &words)) {
    std::string reply = Reply(words, &asking);
    if (reply == kSilence) continue;
    const bool ends = reply.starts_with(kEnd);
    if (ends) reply.erase(0, kEnd.size());
    if (!ends && !reply.ends_with("\r\n")) reply += "\r\n";
    client.Send(reply);
    if (ends) break;
  }
  ::shutdown(client.socket(), SHUT_RDWR);
}

// False: it has ended.
bool FakeNode::Read(net::testing::RawClient& client, Words* words) {
  const auto number = [&client]() -> std::size_t {
    const std::string line = client.ReadUntil("\r\n");
    return line.ends_with("\r\n") ? std::stoul(line.substr(1)) : 0;
  };
  words->assign(number(), "");
  for (std::string& word : *words) {
    const std::size_t size = number();
    word = client.ReadExactly(size + 2);
    if (word.size() < size + 2) return false;
    word.resize(size);
  }
  return !words->empty();
}

std::string FakeNode::Reply(const Words& words, bool* asking) {
  if (words[0] == "PING") return "+PONG";
  if (words[0] == "SCRIPT") return "$40\r\n" + std::string(kFakeSha);
  if (words[0] == "ASKING") {
    *asking = true;
    return "+OK";
  }
  if (words[0] == "CLUSTER") {
    const std::lock_guard lock(mutex_);
    ++maps_told_;
    return map_;
  }
  if (words[0] != "EVALSHA") return "-ERR unknown command";
  return ReplyToCall(words, std::exchange(*asking, false));
}

std::string FakeNode::ReplyToCall(const Words& words, bool asking) {
  const std::size_t keys = std::stoul(words[2]);
  Call call{.asking = asking,
            .mode = words[3 + keys],
            .keys = {words.begin() + 3, words.begin() + 3 + static_cast<std::ptrdiff_t>(keys)}};
  const auto marks = std::ranges::count_if(
      call.keys, [](const std::string& key) { return key.find(":1u{") != std::string::npos; });
  const std::size_t answers = keys - static_cast<std::size_t>(marks);
  std::string wanted = "*" + std::to_string(answers + 1) + "\r\n" + std::string(kTime);
  for (std::size_t i = 0; i < answers; ++i) wanted += Wanted(call.mode);
  if (keys == 0) return wanted;  // a probe
  const std::lock_guard lock(mutex_);
  calls_.push_back(std::move(call));
  called_.notify_all();
  if (!answers_.empty()) {
    wanted = std::move(answers_.front());
    answers_.pop_front();
  } else if (!always_.empty()) {
    wanted = always_;
  }
  return wanted;
}

void FakeNode::SetMap(std::string reply) {
  const std::lock_guard lock(mutex_);
  map_ = std::move(reply);
}

void FakeNode::Answer(const std::vector<std::string>& replies) {
  const std::lock_guard lock(mutex_);
  answers_.insert(answers_.end(), replies.begin(), replies.end());
}

void FakeNode::AlwaysAnswer(std::string reply) {
  const std::lock_guard lock(mutex_);
  always_ = std::move(reply);
}

std::vector<FakeNode::Call> FakeNode::Calls(std::size_t count) {
  std::unique_lock lock(mutex_);
  EXPECT_TRUE(called_.wait_for(lock, kPatience, [&] { return calls_.size() >= count; }));
  std::vector<Call> calls;
  while (calls.size() < count && !calls_.empty()) {
    calls.push_back(std::move(calls_.front()));
    calls_.pop_front();
  }
  calls.resize(count);
  return calls;
}

std::size_t FakeNode::calls() const {
  const std::lock_guard lock(mutex_);
  return calls_.size();
}

std::size_t FakeNode::maps_told() const {
  const std::lock_guard lock(mutex_);
  return maps_told_;
}

std::string MapOf(const std::vector<FakeRange>& ranges) {
  std::string map = "*" + std::to_string(ranges.size()) + "\r\n";
  for (const FakeRange& range : ranges) {
    map += "*3\r\n:" + std::to_string(range.first) + "\r\n:" + std::to_string(range.last) +
           "\r\n*4\r\n$9\r\n127.0.0.1\r\n:" + std::to_string(range.node->port()) +
           "\r\n$2\r\nid\r\n*0\r\n";
  }
  return map;
}

std::string SentTo(std::string_view word, std::uint16_t slot, const FakeNode& node) {
  return "-" + std::string(word) + " " + std::to_string(slot) +
         " 127.0.0.1:" + std::to_string(node.port());
}

}  // namespace sluice::redis::testing
