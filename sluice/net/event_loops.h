// One thread per core, each with a loop of its own. What belongs to a loop is touched by its thread
// alone; the others Post() to it.
//
//   EventLoops loops(2);           loop 0: ready set, timers, deadlines   <- thread 0
//   loops.Start();                 loop 1: ready set, timers, deadlines   <- thread 1
//   ...
//   loops.Stop();                  // servers were drained before
//
// A turn of a loop is one epoll_wait (ready_set.h), and then what was posted. Why no library's
// loop: docs/design/0021.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "sluice/base/time.h"
#include "sluice/net/deadlines.h"
#include "sluice/net/ready_set.h"
#include "sluice/net/task.h"
#include "sluice/net/timer.h"

namespace sluice::net {

class EventLoop {
 public:
  explicit EventLoop(std::size_t index);
  EventLoop(const EventLoop&) = delete;
  EventLoop& operator=(const EventLoop&) = delete;
  ~EventLoop();

  [[nodiscard]] std::size_t index() const { return index_; }
  [[nodiscard]] ReadySet& ready() { return ready_; }
  [[nodiscard]] Timers& timers() { return timers_; }
  [[nodiscard]] Deadlines& deadlines() { return deadlines_; }

  // Runs `work` on the loop's thread, later, in order. From any thread.
  void Post(absl::AnyInvocable<void()> work);

  // Suspends for `length`, to the precision of the machine's timers.
  Task<void> Sleep(Duration length);

  // The loop has work until somebody, elsewhere, has posted it: one call each.
  void BeginOutside() { ++outside_; }
  void EndOutside() { --outside_; }

  // Runs until Finish() was called, once, and there is no work: nobody waits for a socket or a
  // timer, and nothing was posted.
  void Run();
  // From any thread.
  void Finish();

  // For whoever runs a loop by hand. Waits for something to do and does it. False: there is no
  // work.
  bool RunOnce();
  // Does what can be done without waiting.
  void Poll();

 private:
  // The other threads' word that there is work.
  class Bell final : public ReadySet::Member {
   public:
    explicit Bell(ReadySet& set);
    Bell(const Bell&) = delete;
    Bell& operator=(const Bell&) = delete;
    ~Bell();
    void Ring() const;
    void OnReady(std::uint32_t /*events*/) override {}

   private:
    const int descriptor_;
  };

  [[nodiscard]] bool HasWork() const;
  bool Turn(bool may_wait);
  bool RunPosted();

  const std::size_t index_;
  ReadySet ready_;
  Bell bell_;
  Timers timers_;
  Deadlines deadlines_;
  std::size_t outside_ = 0;
  std::atomic<bool> finishing_ = false;

  std::atomic<bool> has_posted_ = false;  // since the loop last looked
  std::mutex mutex_;                      // guards what follows
  std::vector<absl::AnyInvocable<void()>> posted_;

  std::vector<absl::AnyInvocable<void()>> running_;  // the loop's thread's; empty between turns
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
  std::vector<std::thread> threads_;
};

template <class Work>
void EventLoops::RunOn(EventLoop& loop, const Work& work) {
  Wait(
      loop, [](const void* call) { (*static_cast<const Work*>(call))(); }, &work);
}

}  // namespace sluice::net
