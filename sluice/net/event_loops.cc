#include "sluice/net/event_loops.h"

#include <sched.h>

#include <algorithm>
#include <future>

#include "sluice/net/await.h"

namespace sluice::net {
namespace {

std::size_t UsableCores() {
  cpu_set_t cores;
  if (::sched_getaffinity(0, sizeof(cores), &cores) != 0) return 1;
  return static_cast<std::size_t>(std::max(1, CPU_COUNT(&cores)));
}

}  // namespace

EventLoop::EventLoop(std::size_t index)
    : index_(index),
      context_(BOOST_ASIO_CONCURRENCY_HINT_UNSAFE_IO),
      deadlines_(context_),
      hangups_(context_) {}

Task<void> EventLoop::Sleep(Duration length) {
  Timer timer(context_);
  timer.expires_after(std::chrono::duration_cast<std::chrono::steady_clock::duration>(length));
  co_await Await<error_code>([&timer](auto done) { timer.async_wait(std::move(done)); });
}

EventLoops::EventLoops(std::size_t count) {
  if (count == 0) count = UsableCores();
  for (std::size_t i = 0; i < count; ++i) loops_.push_back(std::make_unique<EventLoop>(i));
}

void EventLoops::Start() {
  for (const std::unique_ptr<EventLoop>& loop : loops_) {
    guards_.emplace_back(loop->context().get_executor());
    threads_.emplace_back([&context = loop->context()] { context.run(); });
  }
}

void EventLoops::Stop() {
  if (threads_.empty()) return;
  OnEach([](EventLoop& loop) {
    loop.deadlines().Stop();
    loop.hangups().Stop();
  });
  guards_.clear();
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
