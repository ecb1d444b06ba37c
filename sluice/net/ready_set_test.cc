#include "sluice/net/ready_set.h"

#include <gtest/gtest.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace sluice::net {
namespace {

// Writes down in the test's list when it is woken.
class Told final : public Waiter {
 public:
  Told(std::vector<std::string>& list, std::string name) : list_(list), name_(std::move(name)) {}
  std::function<void()> then;

 private:
  void OnWake(Wake why) override {
    list_.push_back(name_ + (why == Wake::kCancelled ? " cancelled" : ""));
    if (then) then();
  }

  std::vector<std::string>& list_;
  const std::string name_;
};

// A descriptor that is ready once it was raised, and its line.
class Flag final : public ReadySet::Member {
 public:
  explicit Flag(ReadySet& set) : set_(set), descriptor_(::eventfd(0, EFD_NONBLOCK)) {
    EXPECT_TRUE(set.Add(descriptor_, EPOLLIN | std::uint32_t{EPOLLET}, *this));
  }
  ~Flag() { ::close(descriptor_); }
  Flag(const Flag&) = delete;
  Flag& operator=(const Flag&) = delete;

  void Raise() const { ::eventfd_write(descriptor_, 1); }
  [[nodiscard]] int descriptor() const { return descriptor_; }
  Line line;
  int heard = 0;

 private:
  void OnReady(std::uint32_t /*events*/) override {
    ++heard;
    set_.WakeAll(line, Wake::kReady);
  }

  ReadySet& set_;
  const int descriptor_;
};

class ReadySetTest : public ::testing::Test {
 protected:
  std::vector<std::string> Taken() { return std::exchange(told_, {}); }

  std::vector<std::string> told_;
  ReadySet set_;
};

using Names = std::vector<std::string>;

TEST_F(ReadySetTest, WakesWhoWaitsInOrderAndOnce) {
  Flag flag(set_);
  Told first(told_, "first");
  Told second(told_, "second");
  set_.Stand(first, flag.line);
  set_.Stand(second, flag.line);
  EXPECT_TRUE(set_.awaited());
  EXPECT_FALSE(set_.Wait(/*may_wait=*/false));
  flag.Raise();
  EXPECT_TRUE(set_.Wait(/*may_wait=*/true));
  EXPECT_EQ(Taken(), (Names{"first", "second"}));
  EXPECT_FALSE(set_.awaited());
  flag.Raise();
  EXPECT_TRUE(set_.Wait(/*may_wait=*/true));
  EXPECT_EQ(Taken(), Names{});
}

TEST_F(ReadySetTest, WhoIsDestroyedIsNotWokenAndTheOthersAre) {
  Flag flag(set_);
  Told first(told_, "first");
  auto middle = std::make_unique<Told>(told_, "middle");
  auto last = std::make_unique<Told>(told_, "last");
  for (Told* waiter : {&first, middle.get(), last.get()}) set_.Stand(*waiter, flag.line);
  middle.reset();
  last.reset();
  Told later(told_, "later");
  set_.Stand(later, flag.line);
  flag.Raise();
  set_.Wait(/*may_wait=*/true);
  EXPECT_EQ(Taken(), (Names{"first", "later"}));
  EXPECT_FALSE(set_.awaited());
}

// Both are due when the first is woken.
TEST_F(ReadySetTest, WhoIsWokenMayDestroyWhoIsNext) {
  Flag flag(set_);
  Told first(told_, "first");
  auto second = std::make_unique<Told>(told_, "second");
  Told third(told_, "third");
  for (Told* waiter : {&first, second.get(), &third}) set_.Stand(*waiter, flag.line);
  first.then = [&] { second.reset(); };
  flag.Raise();
  set_.Wait(/*may_wait=*/true);
  EXPECT_EQ(Taken(), (Names{"first", "third"}));
}

// The second's event is in the batch when the first closes its descriptor and opens another, which
// gets the same number.
TEST_F(ReadySetTest, NoEventOfABatchReachesWhatWasDestroyedOrItsSuccessor) {
  Flag first(set_);
  auto second = std::make_unique<Flag>(set_);
  const int number = second->descriptor();
  Told closes(told_, "closes");
  Told victim(told_, "victim");
  std::unique_ptr<Flag> successor;
  set_.Stand(closes, first.line);
  set_.Stand(victim, second->line);
  closes.then = [&] {
    set_.Dismiss(victim);
    second.reset();
    successor = std::make_unique<Flag>(set_);
    set_.Stand(victim, successor->line);
  };
  first.Raise();
  second->Raise();
  set_.Wait(/*may_wait=*/true);
  ASSERT_EQ(successor->descriptor(), number);
  while (set_.Wait(/*may_wait=*/false)) {
  }
  EXPECT_EQ(successor->heard, 0);
  EXPECT_EQ(Taken(), Names{"closes"});
  set_.Dismiss(victim);
}

// All that came in the same moment is known when the first is woken.
TEST_F(ReadySetTest, ABatchIsWrittenDownBeforeAnybodyIsWoken) {
  Flag first(set_);
  Flag second(set_);
  Told waiter(told_, "woken");
  set_.Stand(waiter, first.line);
  int heard = -1;
  waiter.then = [&] { heard = second.heard; };
  first.Raise();
  second.Raise();
  set_.Wait(/*may_wait=*/true);
  EXPECT_EQ(heard, 1);
}

TEST_F(ReadySetTest, WhoBecomesDueMeanwhileWaitsForTheNextTurnWhichDoesNotWait) {
  Told again(told_, "again");
  again.then = [&] { set_.Soon(again); };
  set_.Soon(again);
  EXPECT_TRUE(set_.due());
  set_.Wait(/*may_wait=*/true);
  EXPECT_EQ(Taken(), Names{"again"});
  again.then = nullptr;
  set_.Wait(/*may_wait=*/true);
  EXPECT_EQ(Taken(), Names{"again"});
  EXPECT_FALSE(set_.due());
}

TEST_F(ReadySetTest, NobodyIsWokenFromInsideACall) {
  Flag flag(set_);
  Told waiter(told_, "waiter");
  set_.Stand(waiter, flag.line);
  set_.WakeAll(flag.line, Wake::kCancelled);
  EXPECT_EQ(Taken(), Names{});
  set_.Wait(/*may_wait=*/true);
  EXPECT_EQ(Taken(), Names{"waiter cancelled"});
}

}  // namespace
}  // namespace sluice::net
