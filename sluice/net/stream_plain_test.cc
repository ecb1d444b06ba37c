// A stream without TLS, on a loop that turns when it is told to.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "sluice/net/listener.h"
#include "sluice/net/stream.h"
#include "sluice/net/testing/raw_client.h"

namespace sluice::net {
namespace {

using namespace std::chrono_literals;
using testing::RawClient;
using testing::RawListener;

bool HasNoDelay(int descriptor) {
  int on = 0;
  socklen_t size = sizeof(on);
  EXPECT_EQ(::getsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &on, &size), 0);
  return on != 0;
}

// A connection to the test, which has the far end.
struct Pair {
  Pair(EventLoop& loop, RawListener& listener)
      : peer(listener.port()), stream(loop, Take(listener)) {}

  static Socket Take(RawListener& listener) {
    const int descriptor = listener.Accept();
    ::fcntl(descriptor, F_SETFL, O_NONBLOCK);
    return {descriptor, {}};
  }

  RawClient peer;
  Stream stream;
  ReadBuffer buffer{64};
};

class PlainStreamTest : public ::testing::Test {
 protected:
  ~PlainStreamTest() override {
    loop_.deadlines().Stop();
    loop_.Poll();
  }

  // Turns until the task has ended.
  template <class T>
  T Result(Task<T> task) {
    while (!task.done()) loop_.RunOnce();
    return task.await_resume();
  }
  static Task<std::string> ReadSome(Pair& pair, std::size_t max) {
    const std::size_t size = co_await pair.stream.Read(pair.buffer, max);
    std::string bytes(pair.buffer.view());
    pair.buffer.Clear();
    EXPECT_EQ(size, bytes.size());
    co_return bytes;
  }
  std::string Read(Pair& pair, std::size_t max = 64) { return Result(ReadSome(pair, max)); }
  // Until what the peer did has been heard of.
  void TurnUntilReadable(Stream& stream) {
    while (!stream.Readable()) {
    }
    loop_.Poll();
  }
  // Ticks until every deadline of a second has passed.
  void PassASecond() {
    for (int i = 0; i < 25; ++i) loop_.deadlines().Tick();
  }

  RawListener listener_;
  EventLoop loop_{0};
};

TEST_F(PlainStreamTest, GivesOutWhatCameAndThenTheEnd) {
  Pair pair(loop_, listener_);
  pair.peer.Send("first");
  EXPECT_EQ(Read(pair), "first");
  EXPECT_FALSE(pair.stream.ended());
  pair.peer.Send("last");
  pair.peer.EndWriting();
  EXPECT_EQ(Read(pair), "last");
  EXPECT_EQ(Read(pair), "");
  EXPECT_TRUE(pair.stream.ended());
  EXPECT_EQ(Read(pair), "");
}

// The kernel tells of all of it once.
TEST_F(PlainStreamTest, WhatIsBehindAReadThatFilledItsRoomIsNotForgotten) {
  Pair pair(loop_, listener_);
  pair.peer.Send(std::string(128, 'x'));
  EXPECT_EQ(Read(pair), std::string(64, 'x'));
  EXPECT_EQ(Read(pair), std::string(64, 'x'));
  Task<std::string> next = ReadSome(pair, 64);
  loop_.Poll();
  EXPECT_FALSE(next.done());
  pair.peer.Send("more");
  EXPECT_EQ(Result(std::move(next)), "more");
}

TEST_F(PlainStreamTest, AResetIsNoEnd) {
  Pair pair(loop_, listener_);
  pair.peer.Reset();
  EXPECT_EQ(Read(pair), "");
  EXPECT_FALSE(pair.stream.ended());
}

Task<void> ReadAll(Pair& pair, char name, std::string* log) {
  std::size_t size = 0;
  do {
    pair.buffer.Clear();
    size = co_await pair.stream.Read(pair.buffer, 64);
    *log += name;
  } while (size > 0);
}

TEST_F(PlainStreamTest, OneThatAlwaysHasMoreLetsTheOthersHaveTheirTurn) {
  Pair greedy(loop_, listener_);
  Pair modest(loop_, listener_);
  std::string log;
  Task<void> first = ReadAll(greedy, 'g', &log);
  Task<void> second = ReadAll(modest, 'm', &log);
  for (Pair* pair : {&greedy, &modest}) {
    pair->peer.Send(pair == &greedy ? std::string(6400, 'x') : "x");
    pair->peer.EndWriting();
  }
  while (!greedy.stream.Readable() || !modest.stream.Readable()) {
  }
  while (!first.done() || !second.done()) loop_.RunOnce();
  EXPECT_LT(log.find('m'), 20u) << log;
}

TEST_F(PlainStreamTest, WhoIsToldToStopWaitingGetsWhatHasCome) {
  Pair pair(loop_, listener_);
  Task<std::string> reading = ReadSome(pair, 64);
  Task<std::string> waits_in_vain = ReadSome(pair, 64);
  pair.peer.Send("come");
  while (!pair.stream.Readable()) {
  }
  pair.stream.CancelWait();
  EXPECT_FALSE(reading.done());
  EXPECT_EQ(Result(std::move(reading)), "come");
  EXPECT_EQ(Result(std::move(waits_in_vain)), "");
  EXPECT_FALSE(pair.stream.ended());
  // It was a word about that wait alone.
  pair.peer.Send("next");
  EXPECT_EQ(Read(pair), "next");
}

// The last of the reads fills its room, so that the next one is due, and will find nothing.
TEST_F(PlainStreamTest, WhoIsDueAnywayAndToldToStopWaitingStops) {
  Pair pair(loop_, listener_);
  pair.peer.Send(std::string(std::size_t{64} * 8, 'x'));
  while (!pair.stream.Readable()) {
  }
  for (int i = 0; i < 8; ++i) EXPECT_EQ(ReadSome(pair, 64).await_resume().size(), 64u);
  Task<std::string> ninth = ReadSome(pair, 64);
  EXPECT_FALSE(ninth.done());
  pair.stream.CancelWait();
  EXPECT_EQ(Result(std::move(ninth)), "");
}

TEST_F(PlainStreamTest, AfterAnAbortNothingComesAnyMore) {
  Pair pair(loop_, listener_);
  Task<std::string> reading = ReadSome(pair, 64);
  pair.peer.Send("come");
  while (!pair.stream.Readable()) {
  }
  pair.stream.Abort();
  EXPECT_FALSE(reading.done());
  EXPECT_EQ(Result(std::move(reading)), "");
  EXPECT_EQ(Read(pair), "");
  EXPECT_FALSE(Result(pair.stream.Write("anything")));
  EXPECT_FALSE(pair.stream.ended());
  EXPECT_FALSE(pair.stream.timed_out());
}

TEST_F(PlainStreamTest, ADeadlineEndsWhatWaits) {
  Pair pair(loop_, listener_);
  pair.stream.Set(1s);
  Task<std::string> reading = ReadSome(pair, 64);
  Task<bool> writing = pair.stream.Write(std::string(20'000'000, 'x'));
  loop_.Poll();
  EXPECT_FALSE(reading.done());
  EXPECT_FALSE(writing.done());
  PassASecond();
  EXPECT_EQ(Result(std::move(reading)), "");
  EXPECT_FALSE(Result(std::move(writing)));
  EXPECT_TRUE(pair.stream.timed_out());
}

TEST_F(PlainStreamTest, AWriterWaitsForAReaderThatIsSlow) {
  Pair pair(loop_, listener_);
  const std::string content(20'000'000, 'x');
  std::thread reader(
      [&] { EXPECT_EQ(pair.peer.ReadExactly(content.size() + 6), content + "behind"); });
  EXPECT_TRUE(Result(pair.stream.Write(content, "beh", "ind")));
  reader.join();
}

TEST_F(PlainStreamTest, IsQuietUntilSomethingCame) {
  Pair pair(loop_, listener_);
  loop_.Poll();
  EXPECT_TRUE(pair.stream.Quiet());
  pair.peer.Send(std::string(64, 'x'));
  TurnUntilReadable(pair.stream);
  EXPECT_FALSE(pair.stream.Quiet());
  EXPECT_EQ(Read(pair).size(), 64u);
  EXPECT_TRUE(pair.stream.Quiet());  // though that filled the room: nothing tells but a look
  pair.peer.Close();
  TurnUntilReadable(pair.stream);
  EXPECT_FALSE(pair.stream.Quiet());
}

TEST_F(PlainStreamTest, ConnectsOrSaysWhyNot) {
  const tcp::endpoint there(asio::ip::make_address("127.0.0.1"), listener_.port());
  Stream connected(loop_, Socket());
  EXPECT_EQ(Result(connected.TryConnect(there)), 0);
  EXPECT_EQ(connected.peer(), there);
  EXPECT_TRUE(HasNoDelay(connected.descriptor()));
  EXPECT_TRUE(Result(connected.Write("hello")));
  RawClient end(listener_.Accept());
  EXPECT_EQ(end.ReadExactly(5), "hello");
  listener_.Close();
  Stream refused(loop_, Socket());
  EXPECT_EQ(Result(refused.TryConnect(there)), ECONNREFUSED);
}

TEST_F(PlainStreamTest, AConnectCanBeBrokenOffOrTakeTooLong) {
  const tcp::endpoint there(asio::ip::make_address("127.0.0.1"), listener_.port());
  Stream aborted(loop_, Socket());
  Task<int> first = aborted.TryConnect(there);
  ASSERT_FALSE(first.done());
  aborted.Abort();
  EXPECT_EQ(Result(std::move(first)), ECANCELED);
  Stream slow(loop_, Socket());
  slow.Set(1s);
  Task<int> second = slow.TryConnect(there);
  ASSERT_FALSE(second.done());
  PassASecond();
  EXPECT_EQ(Result(std::move(second)), ETIMEDOUT);
}

Task<void> AcceptOne(Listener& listener, std::vector<Socket>* accepted) {
  std::optional<Socket> socket = co_await listener.Accept();
  if (socket) accepted->push_back(*std::move(socket));
}

TEST(ListenerTest, WhoComesWhileNobodyAcceptsWaitsWithoutKeepingTheLoopBusy) {
  EventLoops loops(1);
  absl::StatusOr<std::vector<Listener>> listeners = Listen(loops, {"127.0.0.1", 0});
  ASSERT_TRUE(listeners.ok()) << listeners.status();
  Listener& listener = listeners->front();
  std::vector<Socket> accepted;
  Task<void> first = AcceptOne(listener, &accepted);
  const RawClient one(listener.endpoint().port());
  while (!first.done()) loops[0].RunOnce();
  const RawClient two(listener.endpoint().port());
  loops[0].Poll();  // ends
  ASSERT_EQ(accepted.size(), 1u);
  EXPECT_TRUE(HasNoDelay(accepted[0].descriptor()));
  EXPECT_EQ(accepted[0].peer().address().to_string(), "127.0.0.1");
  Task<void> second = AcceptOne(listener, &accepted);
  while (!second.done()) loops[0].RunOnce();
  EXPECT_EQ(accepted.size(), 2u);
  Task<void> third = AcceptOne(listener, &accepted);
  loops[0].Poll();
  EXPECT_FALSE(third.done());
  listener.Close();
  while (!third.done()) loops[0].RunOnce();
  EXPECT_EQ(accepted.size(), 2u);
}

}  // namespace
}  // namespace sluice::net
