// A node of a cluster that exists for its test alone: it greets, knows the script, and gives the
// answers that the test has laid down for it, on however many connections.
//
//   FakeNode a, b;
//   a.SetMap(MapOf({{0, 16383, &a}}));
//   a.Answer({"-MOVED 3999 127.0.0.1:" + std::to_string(b.port())});
//   ... EXPECT_EQ(b.Calls(1)[0].keys, ...);
//
// A call that nothing is laid down for is answered as it wants: charged, given back, held. Every
// wait ends after 20 s, with a test failure.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "sluice/net/address.h"
#include "sluice/net/testing/raw_client.h"

namespace sluice::redis::testing {

class FakeNode {
 public:
  // Of the script, with at least one key.
  struct Call {
    bool asking = false;  // ASKING stood before it
    std::string mode;     // "d", "u", "r": 00_head.lua
    std::vector<std::string> keys;
  };
  // In place of an answer: the connection ends, behind what stands after this.
  static constexpr std::string_view kEnd = "END ";
  // Nothing is said.
  static constexpr std::string_view kSilence = "SILENCE";

  FakeNode();
  FakeNode(const FakeNode&) = delete;
  FakeNode& operator=(const FakeNode&) = delete;
  ~FakeNode();

  [[nodiscard]] std::uint16_t port() const { return port_; }
  [[nodiscard]] net::HostPort address() const { return {"127.0.0.1", port_}; }

  // What CLUSTER SLOTS is answered from now on; at first an error.
  void SetMap(std::string reply);
  // To the next calls, one each, without the end of the line.
  void Answer(const std::vector<std::string>& replies);
  // To all calls for which no other is laid down; empty: as they want.
  void AlwaysAnswer(std::string reply);

  // The next so many, once they are there.
  std::vector<Call> Calls(std::size_t count);
  [[nodiscard]] std::size_t calls() const;      // that were not taken out
  [[nodiscard]] std::size_t maps_told() const;  // how often CLUSTER SLOTS was asked

  // As if it had died: nobody listens, all connections end.
  void Stop();

 private:
  using Words = std::vector<std::string>;
  struct Connection {
    explicit Connection(int socket) : client(socket) {}
    net::testing::RawClient client;
    std::thread thread;
  };

  void AcceptAll();
  void Serve(net::testing::RawClient& client);
  static bool Read(net::testing::RawClient& client, Words* words);
  std::string Reply(const Words& words, bool* asking);
  std::string ReplyToCall(const Words& words, bool asking);

  net::testing::RawListener listener_;
  const std::uint16_t port_;
  std::atomic<bool> stopping_ = false;

  mutable std::mutex mutex_;  // guards what follows
  std::condition_variable called_;
  std::string map_ = "-ERR This instance has cluster support disabled";
  std::deque<std::string> answers_;
  std::string always_;
  std::deque<Call> calls_;
  std::size_t maps_told_ = 0;
  std::vector<std::unique_ptr<Connection>> connections_;

  std::thread acceptor_;
};

// What CLUSTER SLOTS would say, as version 7 does.
struct FakeRange {
  std::uint16_t first;
  std::uint16_t last;
  const FakeNode* node;
};
[[nodiscard]] std::string MapOf(const std::vector<FakeRange>& ranges);
// "-MOVED 3999 127.0.0.1:7000"; word: "MOVED", "ASK".
[[nodiscard]] std::string SentTo(std::string_view word, std::uint16_t slot, const FakeNode& node);

}  // namespace sluice::redis::testing
