// A coroutine that returns a value to the coroutine that awaits it. For one event loop's thread.
//
//   Task<bool> Skip(Stream& stream, ReadBuffer& buffer) {
//     const std::size_t size = co_await stream.Read(buffer, kMaxBytes);
//     buffer.Clear();
//     co_return size > 0;
//   }
//   Spawn(Serve(...));  // runs on its own until it ends
//
// A task starts when it is called and runs until it first has to wait. What needs no waiting costs
// a call, so that a function may be a task for the sake of its rare case. A task must be awaited to
// its end, at once or later (`Task<void> pump = Pump(); ...; co_await pump;`): destroying one that
// still waits is a mistake, for somebody holds its handle.
//
// Why not asio::awaitable: it allocates a frame and a cancellation slot for every operation, and
// cannot be started now and awaited later (docs/design/0011). No exception passes here: one that
// tries ends the process.
//
// Frames come from a store of each thread (frame_store.h): in steady state nothing is allocated.
//
// A trap: g++ 12 makes wrong code of a co_await inside the condition of an `if` or a loop (frames
// are resumed that are gone). Await into a variable first, then test it.
#pragma once

#include <cassert>
#include <coroutine>
#include <cstddef>
#include <exception>
#include <optional>
#include <utility>

#include "sluice/net/internal/frame_store.h"

namespace sluice::net {

namespace internal {

struct PromiseBase {
  // At the end: on with whoever waits.
  struct Final {
    bool await_ready() const noexcept { return false; }
    template <class Promise>
    std::coroutine_handle<> await_suspend(std::coroutine_handle<Promise> self) noexcept {
      const std::coroutine_handle<> next = self.promise().waiter;
      if (next) return next;
      return std::noop_coroutine();
    }
    void await_resume() const noexcept {}
  };

  static void* operator new(std::size_t size) { return FrameStore::Allocate(size); }
  static void operator delete(void* frame, std::size_t size) noexcept {
    FrameStore::Free(frame, size);
  }
  std::suspend_never initial_suspend() noexcept { return {}; }
  Final final_suspend() noexcept { return {}; }
  void unhandled_exception() noexcept { std::terminate(); }

  std::coroutine_handle<> waiter;
};

template <class T>
struct Promise : PromiseBase {
  template <class U>
  void return_value(U&& result) {
    value.emplace(std::forward<U>(result));
  }
  T Take() { return std::move(*value); }

  std::optional<T> value;
};

template <>
struct Promise<void> : PromiseBase {
  void return_void() noexcept {}
  void Take() noexcept {}
};

}  // namespace internal

template <class T = void>
class [[nodiscard]] Task {
 public:
  struct promise_type : internal::Promise<T> {  // NOLINT: the language's name
    Task get_return_object() {
      return Task(std::coroutine_handle<promise_type>::from_promise(*this));
    }
  };

  Task(Task&& other) noexcept : frame_(std::exchange(other.frame_, nullptr)) {}
  Task& operator=(Task&&) = delete;
  ~Task() {
    assert(!frame_ || frame_.done());
    if (frame_) frame_.destroy();
  }

  [[nodiscard]] bool done() const { return frame_.done(); }

  bool await_ready() const noexcept { return frame_.done(); }
  void await_suspend(std::coroutine_handle<> waiter) noexcept { frame_.promise().waiter = waiter; }
  T await_resume() { return frame_.promise().Take(); }

 private:
  explicit Task(std::coroutine_handle<promise_type> frame) : frame_(frame) {}

  std::coroutine_handle<promise_type> frame_;
};

namespace internal {

// Nobody waits for this one: its frame goes away at its end.
struct Detached {
  struct promise_type {  // NOLINT: the language's name
    static void* operator new(std::size_t size) { return FrameStore::Allocate(size); }
    static void operator delete(void* frame, std::size_t size) noexcept {
      FrameStore::Free(frame, size);
    }
    Detached get_return_object() noexcept { return {}; }
    std::suspend_never initial_suspend() noexcept { return {}; }
    std::suspend_never final_suspend() noexcept { return {}; }
    void return_void() noexcept {}
    void unhandled_exception() noexcept { std::terminate(); }
  };
};

inline Detached Detach(Task<void> task) { co_await task; }

}  // namespace internal

// Lets a task that has been started run to its end on its own.
inline void Spawn(Task<void> task) {
  if (!task.done()) internal::Detach(std::move(task));
}

}  // namespace sluice::net
