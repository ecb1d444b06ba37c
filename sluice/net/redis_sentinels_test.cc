// The sentinels are played by the test, by hand.
#include "sluice/net/redis_sentinels.h"

#include <gtest/gtest.h>

#include <chrono>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sluice/net/testing/raw_client.h"
#include "sluice/net/testing/redis_on_loop.h"
#include "sluice/net/testing/tls_client.h"

namespace sluice::net {
namespace {

using namespace std::chrono_literals;
using testing::LineLog;
using testing::Lines;
using testing::RawClient;
using testing::RawListener;

constexpr Duration kLong = 20s;
constexpr std::string_view kNil = "*-1\r\n";

std::string Text(std::string_view text) {
  return "$" + std::to_string(text.size()) + "\r\n" + std::string(text) + "\r\n";
}
std::string At(std::string_view host, std::string_view port) {
  return "*2\r\n" + Text(host) + Text(port);
}
std::string Bytes(const std::vector<std::string_view>& words) {
  std::string bytes;
  AppendRedisCommand(words, &bytes);
  return bytes;
}

class RedisSentinelsTest : public ::testing::Test {
 protected:
  ~RedisSentinelsTest() override { Stop(); }

  // So many that take connections, and then so many at whose address nobody is.
  RedisSentinelsOptions Options(std::size_t live, std::size_t dead = 0) {
    listeners_.clear();
    clients_.clear();
    RedisSentinelsOptions options{.master = "mymaster",
                                  .jitter = [](Duration) { return Duration::zero(); }};
    for (std::size_t i = 0; i < live + dead; ++i) {
      RawListener& listener = listeners_.emplace_back();
      options.nodes.push_back({"127.0.0.1", listener.port()});
      if (i >= live) listener.Close();
    }
    clients_.resize(live);
    return options;
  }
  void Start(RedisSentinelsOptions options) {
    Stop();
    loops_ = std::make_unique<EventLoops>(1);
    loops_->Start();
    loops_->OnEach([&](EventLoop& loop) {
      sentinels_ = std::make_unique<RedisSentinels>(loop, std::move(options));
    });
    for (std::size_t i = 0; i < clients_.size(); ++i) Accept(i);
  }
  void Start(std::size_t live, std::size_t dead = 0) { Start(Options(live, dead)); }
  void Stop() {
    if (!loops_) return;
    loops_->OnEach([&](EventLoop&) { sentinels_.reset(); });
    loops_->Stop();
  }

  void Accept(std::size_t sentinel) {
    clients_[sentinel] = std::make_unique<RawClient>(listeners_[sentinel].Accept());
    RawClient& client = *clients_[sentinel];
    const std::string ping = Bytes({"PING"});
    EXPECT_EQ(client.ReadExactly(ping.size()), ping);
    client.Send("+PONG\r\n");
  }
  void Find(Duration patience = kLong) {
    loops_->OnEach([&](EventLoop&) {
      sentinels_->Find(patience, [this](const RedisAddresses& found) { Note(found); });
      EXPECT_EQ(found_.size(), 0u) << "called from inside";
    });
  }
  void Note(const RedisAddresses& found) {
    if (!found.ok()) return found_.Add(std::string(found.status().message()));
    std::string line;
    for (const HostPort& address : *found) line += (line.empty() ? "" : " ") + ToString(address);
    found_.Add(line);
  }
  // The sentinel has got the question.
  void ExpectQuestion(std::size_t sentinel) {
    const std::string question = Bytes({"SENTINEL", "GET-MASTER-ADDR-BY-NAME", "mymaster"});
    EXPECT_EQ(clients_[sentinel]->ReadExactly(question.size()), question);
  }
  void Answer(std::size_t sentinel, std::string_view reply) {
    ExpectQuestion(sentinel);
    clients_[sentinel]->Send(reply);
  }
  std::string Found() {
    const Lines lines = found_.Take(1);
    return lines.empty() ? "nothing" : lines[0];
  }
  // How a complaint begins, and what it says of one sentinel.
  [[nodiscard]] std::string Of(std::size_t sentinel, std::string_view why) const {
    return "127.0.0.1:" + std::to_string(ports_[sentinel]) + ": " + std::string(why);
  }
  static constexpr std::string_view kNobody = "no sentinel says where `mymaster` is: ";
  std::string Complaint(const std::vector<std::string>& whys) {
    ports_.clear();
    for (const RawListener& listener : listeners_) ports_.push_back(listener.port());
    std::string text(kNobody);
    for (std::size_t i = 0; i < whys.size(); ++i) text += (i == 0 ? "" : "; ") + Of(i, whys[i]);
    return text;
  }

  LineLog found_;
  std::deque<RawListener> listeners_;
  std::vector<std::unique_ptr<RawClient>> clients_;
  std::vector<std::uint16_t> ports_;
  std::unique_ptr<EventLoops> loops_;
  std::unique_ptr<RedisSentinels> sentinels_;
};

TEST_F(RedisSentinelsTest, ThePrimaryIsWhereMostOfThoseWhoAnswerSay) {
  const std::string a = At("10.0.0.1", "6379");
  const std::string b = At("10.0.0.2", "6380");
  const std::string no = "-ERR no\r\n";
  const struct {
    std::vector<std::string> answers;
    std::string found;
  } rows[] = {
      {{a}, "10.0.0.1:6379"},
      {{At("::1", "1")}, "[::1]:1"},
      {{At("primary.internal", "65535")}, "primary.internal:65535"},  // names are allowed
      {{a, a, a}, "10.0.0.1:6379"},
      {{a, b, b}, "10.0.0.2:6380"},  // the first is stale, or lies
      {{b, a, b}, "10.0.0.2:6380"},
      {{no, std::string(kNil), b}, "10.0.0.2:6380"},
      {{a, b}, "10.0.0.1:6379 10.0.0.2:6380"},  // who connects finds out
      {{b, a, no}, "10.0.0.2:6380 10.0.0.1:6379"},
      {{a, At("10.0.0.1", "6380"), b, b, no}, "10.0.0.2:6380"},  // the port counts
  };
  for (const auto& row : rows) {
    Start(row.answers.size());
    Find();
    for (std::size_t i = 0; i < row.answers.size(); ++i) Answer(i, row.answers[i]);
    EXPECT_EQ(Found(), row.found);
  }
}

TEST_F(RedisSentinelsTest, WhatIsNoAddressIsToldAsWhatItIs) {
  const struct {
    std::string answer;
    std::string why;
  } rows[] = {
      {std::string(kNil), "knows no such master"},
      {"$-1\r\n", "knows no such master"},
      {"-IDONTKNOW No such master\r\n", "IDONTKNOW No such master"},
      {"-ERR unknown command 'SENTINEL'\r\n", "ERR unknown command 'SENTINEL'"},
      {"-NOPERM no permission\r\n", "NOPERM no permission"},
      {"*0\r\n", "answers with what is no address"},
      {"*1\r\n" + Text("10.0.0.1"), "answers with what is no address"},
      {"*3\r\n" + Text("a") + Text("1") + Text("b"), "answers with what is no address"},
      {"+OK\r\n", "answers with what is no address"},
      {":1\r\n", "answers with what is no address"},
      {Text("10.0.0.1"), "answers with what is no address"},
      {"*2\r\n*0\r\n" + Text("1"), "tells a host that is none"},
      {"*2\r\n$-1\r\n$-1\r\n", "tells a host that is none"},
      {At("", "6379"), "tells a host that is none"},
      {At("a b", "6379"), "tells a host that is none"},
      {At("a\r\n", "6379"), "tells a host that is none"},
      {At(std::string(256, 'a'), "6379"), "tells a host that is none"},
      {At("a", ""), "tells a port that is none"},
      {At("a", "0"), "tells a port that is none"},
      {At("a", "-1"), "tells a port that is none"},
      {At("a", "65536"), "tells a port that is none"},
      {At("a", "6379x"), "tells a port that is none"},
      {"*2\r\n" + Text("a") + ":6379\r\n", "tells a port that is none"},
      {"?\r\n", ""},  // what is no reply ends the connection
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.answer);
    Start(1);
    Find();
    Answer(0, row.answer);
    const std::string found = Found();
    if (row.why.empty()) {
      EXPECT_EQ(found.substr(0, kNobody.size()), kNobody);
    } else {
      EXPECT_EQ(found, Complaint({row.why}));
    }
  }
}

TEST_F(RedisSentinelsTest, AnAnswerMayBeCutAtAnyByteAndEndThere) {
  const std::string answer = At("10.0.0.1", "6379");
  for (std::size_t cut = 0; cut < answer.size(); ++cut) {
    SCOPED_TRACE(cut);
    Start(1);
    Find();
    Answer(0, answer.substr(0, cut));
    EXPECT_TRUE(clients_[0]->Silent(1ms));
    clients_[0]->Send(answer.substr(cut));
    EXPECT_EQ(Found(), "10.0.0.1:6379");

    Find();
    Answer(0, answer.substr(0, cut));
    clients_[0]->Close();
    EXPECT_EQ(Found(), Complaint({"the connection was ended"}));
  }
  Accept(0);
  do {  // until the connection is there again
    (void)found_.Take(found_.size());
    Find();
    loops_->OnEach([](EventLoop&) {});
  } while (found_.size() > 0);
  Answer(0, answer);
  EXPECT_EQ(Found(), "10.0.0.1:6379");
}

TEST_F(RedisSentinelsTest, WaitsForNobodyOnceMostAgree) {
  Start(3);
  Find();
  Answer(2, At("a", "1"));
  ExpectQuestion(1);
  EXPECT_EQ(found_.size(), 0u);
  Answer(0, At("a", "1"));
  EXPECT_EQ(Found(), "a:1");
  // What the third says now is worth nothing, and is no answer to the next question either.
  Find();
  clients_[1]->Send(At("late", "9"));
  Answer(1, At("b", "2"));
  Answer(0, At("b", "2"));
  EXPECT_EQ(Found(), "b:2");
}

TEST_F(RedisSentinelsTest, OneThatIsSilentIsWaitedForWithinThePatience) {
  Start(2);
  Find(30ms);
  Answer(0, At("a", "1"));
  EXPECT_EQ(Found(), "a:1");  // the only one who spoke
  Find(30ms);
  const std::string found = Found();  // in either order
  EXPECT_EQ(found.size(), Complaint({"no answer in time", "no answer in time"}).size());
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_NE(found.find(Of(i, "no answer in time")), found.npos) << found;
  }
}

TEST_F(RedisSentinelsTest, ThoseThatAreDownHideNobodyElse) {
  Start(1, 2);
  Find();
  Answer(0, At("a", "1"));
  EXPECT_EQ(Found(), "a:1");
}

TEST_F(RedisSentinelsTest, WhereAllAreDownEachIsNamedWithItsReason) {
  Start(0, 3);
  Find();
  const std::string down = "cannot connect: Connection refused";
  EXPECT_EQ(Found(), Complaint({down, down, down}));
  Find();  // also where nobody has to be waited for any more
  EXPECT_EQ(Found(), Complaint({down, down, down}));
}

TEST_F(RedisSentinelsTest, GreetsThemWithTheirOwnUserAndTellsNoPassword) {
  RedisSentinelsOptions options = Options(1);
  clients_.clear();
  options.user = "sue";
  options.password = "s3cret";
  Start(std::move(options));
  Find();
  RawClient client(listeners_[0].Accept());
  const std::string greeting = Bytes({"AUTH", "sue", "s3cret"}) + Bytes({"PING"});
  EXPECT_EQ(client.ReadExactly(greeting.size()), greeting);
  client.Send("-WRONGPASS invalid username-password pair\r\n-NOAUTH no\r\n");
  EXPECT_EQ(Found(), Complaint({"WRONGPASS invalid username-password pair (to AUTH)"}));
}

TEST_F(RedisSentinelsTest, SpeaksTlsToThem) {
  testing::TestAuthority authority;
  RedisSentinelsOptions options = Options(1);
  clients_.clear();
  options.tls = TlsClientContext::Load({.ca_file = authority.ca_file()}).value();
  Start(std::move(options));
  Find();
  testing::TlsClient sentinel(listeners_[0].Accept(),
                              {.server = true, .pair = authority.Issue({.names = {"127.0.0.1"}})});
  ASSERT_TRUE(sentinel.Handshake()) << sentinel.why();
  EXPECT_EQ(sentinel.ReadExactly(Bytes({"PING"}).size()), Bytes({"PING"}));
  sentinel.Send("+PONG\r\n");
  EXPECT_NE(sentinel.ReadUntil("mymaster\r\n"), "");
  sentinel.Send(At("10.0.0.1", "6379"));
  EXPECT_EQ(Found(), "10.0.0.1:6379");
}

TEST_F(RedisSentinelsTest, WhoeverWaitsIsToldWhenItIsDestroyed) {
  Start(2);
  Find();
  ExpectQuestion(0);
  Stop();
  EXPECT_EQ(Found().substr(0, kNobody.size()), kNobody);
}

}  // namespace
}  // namespace sluice::net
