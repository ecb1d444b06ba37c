#include "sluice/net/task.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

namespace sluice::net {
namespace {

// What a coroutine waits for until the test opens it.
struct Gate {
  struct Awaiter {
    Gate& gate;
    bool await_ready() const { return gate.open; }
    void await_suspend(std::coroutine_handle<> waiter) const { gate.waiter = waiter; }
    void await_resume() const {}
  };
  Awaiter operator co_await() { return {*this}; }
  void Open() {
    open = true;
    if (waiter) std::exchange(waiter, nullptr).resume();
  }
  bool open = false;
  std::coroutine_handle<> waiter;
};

Task<int> Answer() { co_return 42; }

Task<std::unique_ptr<int>> AnswerAfter(Gate& gate) {
  co_await gate;
  co_return std::make_unique<int>(7);
}

Task<void> Collect(Gate& gate, std::vector<std::string>* told) {
  told->push_back("started");
  const int first = co_await Answer();
  const std::unique_ptr<int> second = co_await AnswerAfter(gate);
  told->push_back(std::to_string(first + *second));
}

TEST(TaskTest, RunsUntilItHasToWaitAndGoesOnWhenItMay) {
  Gate gate;
  std::vector<std::string> told;
  Spawn(Collect(gate, &told));
  EXPECT_EQ(told, std::vector<std::string>{"started"});
  gate.Open();
  EXPECT_EQ(told, (std::vector<std::string>{"started", "49"}));
}

Task<int> StartNowAwaitLater(Gate& gate) {
  Task<std::unique_ptr<int>> started = AnswerAfter(gate);
  gate.Open();
  EXPECT_TRUE(started.done());
  const std::unique_ptr<int> result = co_await started;
  co_return *result;
}

TEST(TaskTest, CanBeStartedAndAwaitedLater) {
  Gate gate;
  const Task<int> task = StartNowAwaitLater(gate);
  EXPECT_TRUE(task.done());
}

Task<void> AwaitMany(int count, int* sum) {
  for (int i = 0; i < count; ++i) *sum += co_await Answer();
}

TEST(TaskTest, WhatNeedsNoWaitingTakesNoStack) {
  int sum = 0;
  Spawn(AwaitMany(1'000'000, &sum));
  EXPECT_EQ(sum, 42'000'000);
}

}  // namespace
}  // namespace sluice::net
