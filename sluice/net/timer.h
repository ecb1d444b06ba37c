// One-shot timers of a loop: for what must come at its instant. Deadlines that hardly ever pass are
// cheaper as deadlines.h has them.
//
// Guarantee: never early; as late as the kernel's timers and the loop are. Cost: a place in a heap,
// and a system call where the first one to come changes to an earlier instant, or comes. For one
// thread.
#pragma once

#include <chrono>
#include <cstddef>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "sluice/base/placed_heap.h"
#include "sluice/base/time.h"
#include "sluice/net/ready_set.h"

namespace sluice::net {

class Timers;

class Timer {
 public:
  using Instant = std::chrono::steady_clock::time_point;
  // Whether the instant has come, or the wait was called off.
  using Done = absl::AnyInvocable<void(bool come)>;

  explicit Timer(Timers& timers) : timers_(timers) {}
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;
  ~Timer() { Cancel(); }

  // Calls `done` then, never from inside this call. A wait that is under way is called off.
  void Start(Instant at, Done done);
  void Start(Duration after, Done done);
  // The wait, if there is one, is called off: soon, never from inside this call.
  void Cancel();

 private:
  friend class Timers;
  static constexpr std::size_t kNone = ~std::size_t{0};

  Timers& timers_;
  Instant at_;
  std::size_t place_ = kNone;  // in the heap
  Done done_;
};

class Timers final : private ReadySet::Member, private Waiter {
 public:
  explicit Timers(ReadySet& set);
  Timers(const Timers&) = delete;
  Timers& operator=(const Timers&) = delete;
  ~Timers();

  // A timer runs, or somebody has yet to be told that his was called off.
  [[nodiscard]] bool pending() const { return !heap_.empty() || !called_off_.empty(); }

 private:
  friend class Timer;

  void Insert(Timer& timer);
  void Remove(Timer& timer);
  void CallOff(Timer& timer);
  void Arm();
  void OnReady(std::uint32_t events) override;
  void OnWake(Wake why) override;

  ReadySet& set_;
  const int descriptor_;
  Timer::Instant armed_ = Timer::Instant::max();
  PlacedHeap<Timer, &Timer::at_, &Timer::place_> heap_;
  std::vector<Timer::Done> called_off_;
  std::vector<Timer::Done> telling_;  // empty but for the while that they are told
};

}  // namespace sluice::net
