// Awaits an asynchronous operation of Asio from a Task.
//
//   auto [error, size] = co_await Await<error_code, std::size_t>(
//       [&](auto done) { socket.async_read_some(buffer, std::move(done)); });
//
// `done` is a small function object; Asio recycles what it allocates for it. The operation must
// call it exactly once, on the loop's thread, and never from inside the initiating call. All of
// Asio's operations keep to that.
#pragma once

#include <boost/system/error_code.hpp>
#include <coroutine>
#include <tuple>
#include <utility>

namespace sluice::net {

using boost::system::error_code;

template <class Start, class... Results>
class AsioAwaiter {
 public:
  explicit AsioAwaiter(Start start) : start_(std::move(start)) {}

  bool await_ready() const noexcept { return false; }
  void await_suspend(std::coroutine_handle<> waiter) {
    waiter_ = waiter;
    start_(Done{this});
  }
  std::tuple<Results...> await_resume() { return std::move(results_); }

 private:
  struct Done {
    AsioAwaiter* self;
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
  return AsioAwaiter<Start, Results...>(std::move(start));
}

}  // namespace sluice::net
