// One thread per core, each with an io_context of its own. What belongs to a loop is touched by its
// thread alone; the others Post() to it.
//
//   EventLoops loops(2);           loop 0: io_context, deadlines, hangups   <- thread 0
//   loops.Start();                 loop 1: io_context, deadlines, hangups   <- thread 1
//   ...
//   loops.Stop();                  // servers were drained before
//
// Since no socket is ever touched by two threads, the reactor's locks per descriptor are switched
// off; only the queue of posted work is locked.
#pragma once

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <cstddef>
#include <memory>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "sluice/base/time.h"
#include "sluice/net/deadlines.h"
#include "sluice/net/hangup_watch.h"
#include "sluice/net/task.h"

namespace sluice::net {

class EventLoop {
 public:
  explicit EventLoop(std::size_t index);

  [[nodiscard]] std::size_t index() const { return index_; }
  [[nodiscard]] asio::io_context& context() { return context_; }
  [[nodiscard]] Deadlines& deadlines() { return deadlines_; }
  [[nodiscard]] HangupWatch& hangups() { return hangups_; }

  // Runs `work` on the loop's thread, later. From any thread.
  template <class Work>
  void Post(Work work) {
    asio::post(context_, std::move(work));
  }

  // Suspends for `length`, to the precision of the machine's timers.
  Task<void> Sleep(Duration length);

 private:
  const std::size_t index_;
  asio::io_context context_;
  Deadlines deadlines_;
  HangupWatch hangups_;
};

class EventLoops {
 public:
  // 0 means as many as the process may use cores.
  explicit EventLoops(std::size_t count = 0);
  EventLoops(const EventLoops&) = delete;
  EventLoops& operator=(const EventLoops&) = delete;
  ~EventLoops() { Stop(); }

  void Start();

  // Lets every loop finish the work it has and joins the threads. Waits for ever for sockets that
  // somebody still waits on: drain servers and close pools first. Does nothing a second time.
  void Stop();

  [[nodiscard]] bool running() const { return !threads_.empty(); }
  [[nodiscard]] std::size_t size() const { return loops_.size(); }
  [[nodiscard]] EventLoop& operator[](std::size_t index) { return *loops_[index]; }

  // Runs `work(loop)` on every loop's thread and waits until all have; not from a loop's thread.
  // Before Start() and after Stop() on the caller's.
  template <class Work>
  void OnEach(const Work& work) {
    for (const std::unique_ptr<EventLoop>& loop : loops_) RunOn(*loop, [&] { work(*loop); });
  }

 private:
  template <class Work>
  void RunOn(EventLoop& loop, const Work& work);
  void Wait(EventLoop& loop, void (*call)(const void*), const void* work);

  std::vector<std::unique_ptr<EventLoop>> loops_;
  std::vector<asio::executor_work_guard<Executor>> guards_;
  std::vector<std::thread> threads_;
};

template <class Work>
void EventLoops::RunOn(EventLoop& loop, const Work& work) {
  Wait(
      loop, [](const void* call) { (*static_cast<const Work*>(call))(); }, &work);
}

}  // namespace sluice::net
