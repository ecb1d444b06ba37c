// Awaits something that ends by a call from a Task.
//
//   auto [come] = co_await Await<bool>([&](auto done) { timer.Start(length, std::move(done)); });
//
// `done` is a small function object. Whoever is given it must call it exactly once, on the loop's
// thread, and never from inside the initiating call.
#pragma once

#include <coroutine>
#include <tuple>
#include <utility>

namespace sluice::net {

template <class Start, class... Results>
class CallAwaiter {
 public:
  explicit CallAwaiter(Start start) : start_(std::move(start)) {}

  bool await_ready() const noexcept { return false; }
  void await_suspend(std::coroutine_handle<> waiter) {
    waiter_ = waiter;
    start_(Done{this});
  }
  std::tuple<Results...> await_resume() { return std::move(results_); }

 private:
  struct Done {
    CallAwaiter* self;
    void operator()(Results... results) const {
      self->results_ = {std::move(results)...};
      self->waiter_.resume();
    }
  };

  Start start_;
  std::tuple<Results...> results_;
  std::coroutine_handle<> waiter_;
};

template <class... Results, class Start>
[[nodiscard]] auto Await(Start start) {
  return CallAwaiter<Start, Results...>(std::move(start));
}

}  // namespace sluice::net
