#include "sluice/net/event_loops.h"

#include <gtest/gtest.h>

#include <future>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "sluice/net/internal/lookup.h"

namespace sluice::net {
namespace {

using namespace std::chrono_literals;

TEST(EventLoopTest, RunsWhatWasPostedInOrderAndNotAtOnce) {
  EventLoop loop(0);
  std::string told;
  loop.Post([&] {
    told += 'a';
    loop.Post([&] { told += 'c'; });
  });
  loop.Post([&] { told += 'b'; });
  EXPECT_EQ(told, "");
  loop.Poll();
  EXPECT_EQ(told, "abc");
  EXPECT_FALSE(loop.RunOnce());
}

// Else who posts for ever would keep all sockets waiting.
TEST(EventLoopTest, WhatPostsItselfLeavesTimersTheirTurn) {
  EventLoop loop(0);
  bool come = false;
  Timer timer(loop.timers());
  loop.Post([&] { timer.Start(Duration{0}, [&](bool) { come = true; }); });
  struct Again {
    EventLoop& loop;
    const bool& enough;
    void operator()() const {
      if (!enough) loop.Post(*this);
    }
  };
  loop.Post(Again{loop, come});
  loop.Poll();
  EXPECT_TRUE(come);
}

TEST(EventLoopTest, WhatWasPostedMayHoldTheLoopsPartsWhenItIsDestroyed) {
  auto loop = std::make_unique<EventLoop>(0);
  auto timer = std::make_shared<Timer>(loop->timers());
  timer->Start(1h, [](bool) {});
  loop->Post([held = std::move(timer)] {});
  loop.reset();
}

TEST(EventLoopsTest, EveryPostOfManyThreadsIsRun) {
  constexpr int kPosts = 20'000;
  EventLoops loops(2);
  loops.Start();
  std::vector<int> ran(loops.size(), 0);
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&] {
      for (int post = 0; post < kPosts; ++post) {
        EventLoop& loop = loops[static_cast<std::size_t>(post) % loops.size()];
        loop.Post([&count = ran[loop.index()]] { ++count; });
        if (post % 64 == 0) std::this_thread::yield();  // the loops fall asleep now and then
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  loops.Stop();
  EXPECT_EQ(ran[0] + ran[1], 3 * kPosts);
}

TEST(EventLoopsTest, StopLetsWhatIsUnderWayEnd) {
  EventLoops loops(1);
  loops.Start();
  bool slept = false;
  bool posted = false;
  loops.OnEach([&](EventLoop& loop) {
    struct Sleeper {
      static Task<void> Run(EventLoop& on, bool* slept) {
        co_await on.Sleep(20ms);
        *slept = true;
      }
    };
    Spawn(Sleeper::Run(loop, &slept));
    loop.BeginOutside();
  });
  std::thread outside([&] {
    loops[0].Post([&] {
      posted = true;
      loops[0].EndOutside();
    });
  });
  loops.Stop();
  outside.join();
  EXPECT_TRUE(slept);
  EXPECT_TRUE(posted);
}

Task<void> Find(internal::Lookup& lookup, HostPort name, absl::Status* told) {
  const auto found = co_await lookup.Find(std::move(name));
  *told = found.status();
}

TEST(LookupTest, TellsWhatWasFoundOnTheLoop) {
  EventLoop loop(0);
  internal::Lookup lookup(loop);
  absl::Status told = absl::UnknownError("");
  Spawn(Find(lookup, {"localhost", 80}, &told));
  EXPECT_EQ(told.code(), absl::StatusCode::kUnknown);
  while (loop.RunOnce()) {
  }
  EXPECT_TRUE(told.ok()) << told;
}

TEST(LookupTest, WhoGivesUpIsNotKeptWaiting) {
  EventLoop loop(0);
  internal::Lookup lookup(loop);
  absl::Status told = absl::UnknownError("");
  Spawn(Find(lookup, {"name.invalid", 80}, &told));
  lookup.GiveUp();
  EXPECT_EQ(told.code(), absl::StatusCode::kUnknown);
  while (loop.RunOnce()) {
  }
  // The thread may have been faster.
  EXPECT_TRUE(absl::IsCancelled(told) || absl::IsNotFound(told)) << told;
}

}  // namespace
}  // namespace sluice::net
