// A lock for sections of a few hundred nanoseconds, one byte large. After a while it lets others
// run: its holder may have been put to sleep by the kernel.
#pragma once

#include <sched.h>

#include <atomic>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace sluice::memory {

// One turn of waiting for another thread; `turn` counts from 0.
inline void WaitTurn(unsigned turn) {
  constexpr unsigned kTurnsBeforeYield = 64;
  if (turn >= kTurnsBeforeYield) {
    sched_yield();
    return;
  }
#if defined(__x86_64__)
  _mm_pause();
#endif
}

class SpinLock {
 public:
  void lock() {
    for (unsigned turn = 0; held_.exchange(true, std::memory_order_acquire); ++turn) {
      while (held_.load(std::memory_order_relaxed)) WaitTurn(turn++);
    }
  }
  bool try_lock() { return !held_.exchange(true, std::memory_order_acquire); }
  void unlock() { held_.store(false, std::memory_order_release); }

 private:
  std::atomic<bool> held_{false};
};

}  // namespace sluice::memory
