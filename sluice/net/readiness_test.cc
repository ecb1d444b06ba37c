#include "sluice/net/readiness.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <optional>
#include <string>
#include <vector>

#include "sluice/net/socket.h"
#include "sluice/net/testing/raw_client.h"

namespace sluice::net {
namespace {

using testing::RawClient;
using testing::RawListener;

class Told final : public Waiter {
 public:
  std::vector<Wake> wakes;

 private:
  void OnWake(Wake why) override { wakes.push_back(why); }
};

class Watcher final : public HangupWatcher {
 public:
  void OnHangup() override { ++told; }
  int told = 0;
};

// A connection over TCP; its near end is watched.
struct Connection {
  explicit Connection(ReadySet& set, RawListener& listener)
      : peer(listener.port()), socket(listener.Accept(), {}), readiness(set) {
    ::fcntl(socket.descriptor(), F_SETFL, O_NONBLOCK);
    EXPECT_TRUE(readiness.Watch(socket.descriptor()));
  }

  // As a stream does it.
  std::string Read(std::size_t room) {
    std::string bytes(room, '\0');
    const ssize_t got = ::recv(socket.descriptor(), bytes.data(), room, 0);
    if (got < 0) readiness.NoteEmpty();
    if (got > 0 && static_cast<std::size_t>(got) < room) readiness.NoteShortRead();
    bytes.resize(got < 0 ? 0 : static_cast<std::size_t>(got));
    return bytes;
  }

  RawClient peer;
  Socket socket;
  Readiness readiness;
};

class ReadinessTest : public ::testing::Test {
 protected:
  // Until `flag()` holds.
  template <class Flag>
  void TurnUntil(const Flag& flag) {
    while (!flag()) set_.Wait(/*may_wait=*/true);
  }
  void Settle() {
    while (set_.Wait(/*may_wait=*/false)) {
    }
  }

  RawListener listener_;
  ReadySet set_;
  Connection near_{set_, listener_};
  Readiness& readiness_ = near_.readiness;
};

TEST_F(ReadinessTest, ASocketIsReadableFromTheEventToAShortRead) {
  Settle();
  EXPECT_FALSE(readiness_.readable());
  Told reader;
  readiness_.Wait(Side::kRead, reader);
  near_.peer.Send("bytes");
  TurnUntil([&] { return !reader.wakes.empty(); });
  EXPECT_EQ(reader.wakes, std::vector{Wake::kReady});
  EXPECT_TRUE(readiness_.readable());
  EXPECT_EQ(near_.Read(5), "bytes");
  EXPECT_TRUE(readiness_.readable());  // who knows
  EXPECT_EQ(near_.Read(5), "");
  EXPECT_FALSE(readiness_.readable());
  near_.peer.Send("more");
  TurnUntil([&] { return readiness_.readable(); });
  EXPECT_EQ(near_.Read(5), "more");
  EXPECT_FALSE(readiness_.readable());
}

TEST_F(ReadinessTest, TheEndBehindBytesIsNotLost) {
  near_.peer.Send("last");
  near_.peer.EndWriting();
  TurnUntil([&] { return readiness_.hung_up(); });
  EXPECT_EQ(near_.Read(100), "last");
  EXPECT_TRUE(readiness_.readable());  // the end is still to be read
  EXPECT_EQ(near_.Read(100), "");
}

TEST_F(ReadinessTest, TheEndAfterAShortReadIsHeardOf) {
  near_.peer.Send("last");
  TurnUntil([&] { return readiness_.readable(); });
  EXPECT_EQ(near_.Read(100), "last");
  EXPECT_FALSE(readiness_.readable());
  near_.peer.EndWriting();
  TurnUntil([&] { return readiness_.hung_up(); });
  EXPECT_TRUE(readiness_.readable());
}

TEST_F(ReadinessTest, AResetWakesReadersAndWriters) {
  Told reader;
  Told writer;
  readiness_.Wait(Side::kRead, reader);
  near_.peer.Reset();
  TurnUntil([&] { return readiness_.hung_up(); });
  EXPECT_EQ(reader.wakes, std::vector{Wake::kReady});
  readiness_.Wait(Side::kWrite, writer);
  TurnUntil([&] { return !writer.wakes.empty(); });
}

// A read stops in front of what is out of band, however much lies behind it.
TEST_F(ReadinessTest, AReadThatIsCutByUrgentDataIsNotTakenForAShortOne) {
  near_.peer.Send("before");
  ASSERT_EQ(::send(near_.peer.socket(), "!", 1, MSG_OOB), 1);
  near_.peer.Send("behind");
  Settle();
  ASSERT_EQ(near_.Read(100), "before");
  ASSERT_TRUE(readiness_.readable());
  EXPECT_EQ(near_.Read(100), "behind");
}

TEST_F(ReadinessTest, TellsOfRoomToWhoeverWaitsForIt) {
  const std::string block(100'000, 'x');
  std::size_t sent = 0;
  ssize_t more = 0;
  while ((more = ::send(near_.socket.descriptor(), block.data(), block.size(), MSG_DONTWAIT)) > 0) {
    sent += static_cast<std::size_t>(more);
  }
  for (int i = 0; i < 2; ++i) {
    Told writer;
    readiness_.Wait(Side::kWrite, writer);
    Settle();
    EXPECT_TRUE(writer.wakes.empty());
    near_.peer.ReadExactly(sent);
    TurnUntil([&] { return !writer.wakes.empty(); });
    EXPECT_EQ(writer.wakes, std::vector{Wake::kReady});
    sent = 0;
    while ((more = ::send(near_.socket.descriptor(), block.data(), block.size(), MSG_DONTWAIT)) >
           0) {
      sent += static_cast<std::size_t>(more);
    }
  }
}

TEST_F(ReadinessTest, AHangupIsToldOnceAndEarlyBytesAreNot) {
  Watcher watcher;
  readiness_.WatchHangup(watcher);
  EXPECT_FALSE(set_.awaited());  // nothing that a loop would have to stay for
  near_.peer.Send("early");
  TurnUntil([&] { return readiness_.readable(); });
  EXPECT_EQ(watcher.told, 0);
  near_.peer.EndWriting();
  TurnUntil([&] { return watcher.told > 0; });
  near_.peer.Close();
  Settle();
  EXPECT_EQ(watcher.told, 1);
  EXPECT_EQ(near_.Read(100), "early");
}

TEST_F(ReadinessTest, AHangupOfBeforeIsToldSoon) {
  near_.peer.EndWriting();
  TurnUntil([&] { return readiness_.hung_up(); });
  Watcher watcher;
  readiness_.WatchHangup(watcher);
  EXPECT_EQ(watcher.told, 0);
  set_.Wait(/*may_wait=*/true);
  EXPECT_EQ(watcher.told, 1);
}

TEST_F(ReadinessTest, WhoWasTakenOffIsNotTold) {
  near_.peer.EndWriting();
  TurnUntil([&] { return readiness_.hung_up(); });
  Watcher taken_off;
  readiness_.WatchHangup(taken_off);
  readiness_.UnwatchHangup();
  Settle();
  EXPECT_EQ(taken_off.told, 0);
  Watcher left;
  {
    Connection gone(set_, listener_);
    gone.readiness.WatchHangup(left);
    gone.peer.EndWriting();
    while (!gone.readiness.hung_up()) set_.Wait(/*may_wait=*/true);
  }
  EXPECT_EQ(left.told, 1);
}

TEST_F(ReadinessTest, WhoIsToldToStopWaitingIsWoken) {
  Told reader;
  Told other;
  Line line;
  readiness_.Wait(Side::kRead, reader);
  set_.Stand(other, line);
  readiness_.CancelWaits();
  EXPECT_TRUE(reader.wakes.empty());
  Settle();
  EXPECT_EQ(reader.wakes, std::vector{Wake::kCancelled});
  EXPECT_TRUE(other.wakes.empty());
  set_.Dismiss(other);
}

TEST_F(ReadinessTest, WhoWasDestroyedIsNotTold) {
  for (const bool hung_up_before : {false, true}) {
    Connection connection(set_, listener_);
    std::optional<Watcher> watcher;
    if (hung_up_before) connection.peer.EndWriting();
    while (connection.readiness.hung_up() != hung_up_before) set_.Wait(/*may_wait=*/true);
    connection.readiness.WatchHangup(watcher.emplace());
    watcher.reset();
    if (!hung_up_before) connection.peer.EndWriting();
    while (!connection.readiness.hung_up()) set_.Wait(/*may_wait=*/true);
    Settle();
    EXPECT_FALSE(set_.due());
  }
}

// As for a socket that is none, or more of them than the kernel lets be watched.
TEST_F(ReadinessTest, WhatIsNotWatchedKeepsNobodyWaiting) {
  Readiness readiness(set_);
  EXPECT_TRUE(readiness.readable());
  EXPECT_FALSE(readiness.Watch(-1));
  EXPECT_TRUE(readiness.readable());
}

}  // namespace
}  // namespace sluice::net
