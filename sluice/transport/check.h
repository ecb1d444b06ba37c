// A door's question to the engine, as something to wait for.
//
//   co_await transport::Decided(limiter, {.method = ..., ...}, outcome);
//   if (!outcome.allowed()) ...
//
// Where all rules count in memory it is answered on the spot, without suspending.
#pragma once

#include <coroutine>

#include "sluice/limiter/limiter.h"

namespace sluice::transport {

class Decided {
 public:
  // What the request refers to, and the outcome, stay where they are until it was awaited.
  Decided(Limiter& limiter, const LimitRequest& request, Outcome& outcome)
      : limiter_(limiter), request_(request), outcome_(outcome) {}

  bool await_ready() {
    if (limiter_.rules()->has_remote()) [[unlikely]]
      return false;
    limiter_.Check(request_, outcome_);
    return true;
  }
  bool await_suspend(std::coroutine_handle<> waiter) {
    return !limiter_.Check(request_, outcome_, [waiter] { waiter.resume(); });
  }
  void await_resume() {}

 private:
  Limiter& limiter_;
  const LimitRequest request_;
  Outcome& outcome_;
};

}  // namespace sluice::transport
