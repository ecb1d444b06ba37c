// What became of the requests that the limiter decided on, to the request:
//
//   decided on = admitted + denied
//   admitted   = forwarded + failed + aborted + in flight
//
// A request is entered once, when it was decided on, and, if it was admitted, closed once, when it
// ends, whatever happened to it between: held in a queue, sent a second time, drained. One loop
// writes; anybody reads, and never sees a request closed that was not entered.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace sluice::gateway {

enum class RequestEnd : std::uint8_t {
  kForwarded,  // the upstream's answer was passed on whole; an upgraded connection has ended
  kFailed,     // by the upstream: 502, 503, 504, or an answer that broke off
  kAborted,    // the client left, its body was bad or slow, or the drain was over
};
inline constexpr std::size_t kRequestEnds = 3;

// The books at one moment, of one loop or of several.
struct BookTotals {
  std::uint64_t admitted = 0;
  std::uint64_t denied = 0;
  std::array<std::uint64_t, kRequestEnds> ended{};  // by RequestEnd

  [[nodiscard]] std::uint64_t Ended(RequestEnd how) const {
    return ended[static_cast<std::size_t>(how)];
  }
  [[nodiscard]] std::uint64_t in_flight() const {
    return admitted - ended[0] - ended[1] - ended[2];
  }
};

class Books {
 public:
  void EnterAdmitted() { Add(admitted_); }
  void EnterDenied() { Add(denied_); }
  void Close(RequestEnd how) { Add(ended_[static_cast<std::size_t>(how)]); }

  void AddTo(BookTotals& sum) const {
    // In this order: see the guarantee above.
    for (std::size_t i = 0; i < kRequestEnds; ++i) {
      sum.ended[i] += ended_[i].load(std::memory_order_acquire);
    }
    sum.admitted += admitted_.load(std::memory_order_relaxed);
    sum.denied += denied_.load(std::memory_order_relaxed);
  }

 private:
  using Counter = std::atomic<std::uint64_t>;
  static void Add(Counter& counter) {
    counter.store(counter.load(std::memory_order_relaxed) + 1, std::memory_order_release);
  }

  Counter admitted_ = 0;
  Counter denied_ = 0;
  std::array<Counter, kRequestEnds> ended_{};
};

}  // namespace sluice::gateway
