#include "sluice/net/event_loops.h"

#include <sched.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <future>

#include "sluice/net/await.h"

namespace sluice::net {
namespace {

std::size_t UsableCores() {
  cpu_set_t cores;
  if (::sched_getaffinity(0, sizeof(cores), &cores) != 0) return 1;
  return static_cast<std::size_t>(std::max(1, CPU_COUNT(&cores)));
}

// What is posted by what was posted is run before the kernel is asked again, so many times over.
constexpr int kRounds = 4;

// The loop that this thread runs.
thread_local const EventLoop* running_here = nullptr;

class RunningHere {
 public:
  explicit RunningHere(const EventLoop& loop) : before_(std::exchange(running_here, &loop)) {}
  RunningHere(const RunningHere&) = delete;
  RunningHere& operator=(const RunningHere&) = delete;
  ~RunningHere() { running_here = before_; }

 private:
  const EventLoop* const before_;
};

}  // namespace

EventLoop::Bell::Bell(ReadySet& set) : descriptor_(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {
  // It is never read: each time that it is rung is an edge.
  const bool watched =
      descriptor_ >= 0 && set.Add(descriptor_, EPOLLIN | std::uint32_t{EPOLLET}, *this);
  if (!watched) std::abort();  // no loop without it
}

EventLoop::Bell::~Bell() { ::close(descriptor_); }

void EventLoop::Bell::Ring() const { ::eventfd_write(descriptor_, 1); }

EventLoop::EventLoop(std::size_t index)
    : index_(index), bell_(ready_), timers_(ready_), deadlines_(timers_) {}

// What was posted and never run may post more when it goes.
EventLoop::~EventLoop() {
  while (!posted_.empty()) std::exchange(posted_, {}).clear();
}

void EventLoop::Post(absl::AnyInvocable<void()> work) {
  bool news = false;
  {
    const std::lock_guard lock(mutex_);
    posted_.push_back(std::move(work));
    news = !has_posted_.exchange(true);
  }
  // The loop's own thread looks before it waits.
  if (news && running_here != this) bell_.Ring();
}

Task<void> EventLoop::Sleep(Duration length) {
  Timer timer(timers_);
  co_await Await<bool>([&](auto done) { timer.Start(length, std::move(done)); });
}

bool EventLoop::HasWork() const {
  return has_posted_ || outside_ > 0 || ready_.due() || ready_.awaited() || timers_.pending();
}

bool EventLoop::RunPosted() {
  if (!has_posted_.load(std::memory_order_relaxed)) return false;
  {
    const std::lock_guard lock(mutex_);
    has_posted_ = false;
    running_.swap(posted_);
  }
  for (absl::AnyInvocable<void()>& work : running_) {
    work();
    work = nullptr;  // what it holds goes before the next one runs
  }
  running_.clear();
  return true;
}

bool EventLoop::Turn(bool may_wait) {
  bool happened = ready_.Wait(may_wait && !has_posted_);
  for (int i = 0; i < kRounds && RunPosted(); ++i) happened = true;
  return happened;
}

void EventLoop::Run() {
  const RunningHere here(*this);
  while (!finishing_ || HasWork()) Turn(/*may_wait=*/true);
}

void EventLoop::Finish() {
  finishing_ = true;
  bell_.Ring();
}

bool EventLoop::RunOnce() {
  const RunningHere here(*this);
  if (!HasWork()) return false;
  while (!Turn(/*may_wait=*/true)) {
  }
  return true;
}

void EventLoop::Poll() {
  const RunningHere here(*this);
  while (Turn(/*may_wait=*/false)) {
  }
}

EventLoops::EventLoops(std::size_t count) {
  if (count == 0) count = UsableCores();
  for (std::size_t i = 0; i < count; ++i) loops_.push_back(std::make_unique<EventLoop>(i));
}

void EventLoops::Start() {
  for (const std::unique_ptr<EventLoop>& loop : loops_) {
    threads_.emplace_back([&loop = *loop] { loop.Run(); });
  }
}

void EventLoops::Stop() {
  if (threads_.empty()) return;
  OnEach([](EventLoop& loop) { loop.deadlines().Stop(); });
  for (const std::unique_ptr<EventLoop>& loop : loops_) loop->Finish();
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
}

void EventLoops::Wait(EventLoop& loop, void (*call)(const void*), const void* work) {
  if (threads_.empty()) return call(work);
  // Shared, for the thread that sets it may still be at it when the waiting one goes on.
  auto done = std::make_shared<std::promise<void>>();
  loop.Post([done, call, work] {
    call(work);
    done->set_value();
  });
  done->get_future().wait();
}

}  // namespace sluice::net
