// A coroutine that returns a value to the coroutine that awaits it. For one event loop's thread.
//
//   Task<int> Add(Stream& stream) {          Spawn(Serve(...));   // runs on its own until it ends
//     const std::size_t n = co_await stream.Read(buffer);
//     co_return n + 1;
//   }
//
// A task starts when it is called and runs until it first has to wait. What needs no waiting costs
// a call, so that a function may be a task for the sake of its rare case. A task must be awaited to
// its end, at once or later (`Task<void> pump = Pump(); ...; co_await pump;`): destroying one that
// still waits is a mistake, for somebody holds its handle.
//
// Why not asio::awaitable: it allocates a frame and a cancellation slot for every operation, and
// cannot be started now and awaited later. Here no exception passes: one that tries ends the
// process.
//
// Frames come from a small store per thread: a loop in steady state allocates nothing.
//
// A trap: g++ 12 makes wrong code of a co_await inside the condition of an `if` or a loop (frames
// are resumed that are gone). Await into a variable first, then test it.
#pragma once

#include <array>
#include <cassert>
#include <coroutine>
#include <cstddef>
#include <cstdlib>
#include <exception>
#include <new>
#include <optional>
#include <utility>

namespace sluice::net {

namespace internal {

// Freed frames of the thread, by size in steps of 128 bytes, up to a bound for each size.
class FrameStore {
 public:
  static constexpr std::size_t kStep = 128;
  static constexpr std::size_t kClasses = 32;                         // larger frames are not kept
  static constexpr std::size_t kKeptBytes = std::size_t{256} * 1024;  // of each class

  FrameStore() = default;
  FrameStore(const FrameStore&) = delete;
  FrameStore& operator=(const FrameStore&) = delete;
  ~FrameStore() {
    for (List& list : lists_) {
      while (list.head != nullptr) ::operator delete(Pop(list));
    }
  }

  static void* Allocate(std::size_t size) { return OfThread().Take((size + kStep - 1) / kStep); }
  static void Free(void* frame, std::size_t size) noexcept {
    OfThread().Keep(frame, (size + kStep - 1) / kStep);
  }

 private:
  struct Node {
    Node* next;
  };
  struct List {
    Node* head = nullptr;
    std::size_t size = 0;
  };

  static FrameStore& OfThread() {
    thread_local FrameStore store;
    return store;
  }
  static void* Pop(List& list) noexcept {
    Node* node = list.head;
    list.head = node->next;
    --list.size;
    return node;
  }
  void* Take(std::size_t steps) {
    if (steps < kClasses && lists_[steps].head != nullptr) return Pop(lists_[steps]);
    return ::operator new(steps* kStep);
  }
  void Keep(void* frame, [[maybe_unused]] std::size_t steps) noexcept {
#ifndef __SANITIZE_ADDRESS__  // which could not see a use after the end
    if (steps < kClasses && lists_[steps].size * steps * kStep < kKeptBytes) {
      lists_[steps].head = ::new (frame) Node{lists_[steps].head};
      ++lists_[steps].size;
      return;
    }
#endif
    ::operator delete(frame);
  }

  std::array<List, kClasses> lists_;
};

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
