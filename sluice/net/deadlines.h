// Deadlines for the many things that may take too long and hardly ever do.
//
// A timer per read is dear: it is set and cancelled for every request and expires for none. Here
// one timer per loop turns a wheel; setting a deadline writes a number.
//
//      slot   0    1    2    3    4   ...  511          a tick is 50 ms
//            [ ]  [a]  [ ]  [b,c] [ ]      [ ]
//                       ^ now: the entries of this slot are looked at. One that is due fires; one
//                         that was put off meanwhile moves to the slot of its new time.
//
// Guarantee: fires no sooner than asked for, and at most two ticks and one turn of the loop later.
// Cost: Set() and Clear() are a few instructions, a tick touches only its slot. With nothing set
// the timer stands still. For one thread.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>

#include "sluice/base/time.h"
#include "sluice/net/timer.h"

namespace sluice::net {

class Deadlines;

// Something with a deadline, at most one at a time. May be destroyed at any time, also from inside
// OnDeadline() of any.
class Deadline {
 public:
  explicit Deadline(Deadlines& deadlines) : deadlines_(deadlines) {}
  Deadline(const Deadline&) = delete;
  Deadline& operator=(const Deadline&) = delete;
  virtual ~Deadline() { Unlink(); }

  // Replaces the deadline before.
  void Set(Duration after);
  void Clear() { due_ = kNever; }

  // The time has come. The deadline is not set any more.
  virtual void OnDeadline() = 0;

 private:
  friend class Deadlines;
  static constexpr std::uint64_t kNever = ~std::uint64_t{0};

  void Unlink();

  Deadlines& deadlines_;
  std::uint64_t due_ = kNever;   // in ticks
  std::uint64_t looked_at_ = 0;  // the tick whose slot it is in
  Deadline* next_ = nullptr;
  Deadline** link_ = nullptr;  // what points here; null outside the wheel
};

// A deadline that is a member of something, and calls one of its functions.
template <class Owner, void (Owner::*kCall)()>
class Alarm final : public Deadline {
 public:
  Alarm(Owner& owner, Deadlines& deadlines) : Deadline(deadlines), owner_(owner) {}
  void OnDeadline() override { (owner_.*kCall)(); }

 private:
  Owner& owner_;
};

class Deadlines {
 public:
  static constexpr Duration kTick = std::chrono::milliseconds(50);

  explicit Deadlines(Timers& timers) : timer_(timers) {}
  Deadlines(const Deadlines&) = delete;
  Deadlines& operator=(const Deadlines&) = delete;
  ~Deadlines();

  // Turns the wheel by one slot. The timer calls it; so does a test.
  void Tick();

  // Cancels the timer, so that the loop can run out of work. Nothing fires from then on.
  void Stop();

 private:
  friend class Deadline;
  static constexpr std::size_t kSlots = 512;

  void Link(Deadline& deadline, std::uint64_t tick);
  void RunTimer();
  void OnTimer();

  std::array<Deadline*, kSlots> slots_{};
  std::uint64_t now_ = 0;  // ticks so far
  std::size_t linked_ = 0;
  bool running_ = false;
  bool stopped_ = false;
  Timer::Instant next_;  // tick
  Timer timer_;
};

inline void Deadline::Set(Duration after) {
  // One more tick for the part of the present one that is gone.
  due_ = deadlines_.now_ + 1 +
         static_cast<std::uint64_t>((after + Deadlines::kTick - Duration{1}) / Deadlines::kTick);
  // In the wheel and looked at in time: nothing to do. It is moved on when its slot comes.
  if (link_ == nullptr || looked_at_ > due_) deadlines_.Link(*this, due_);
}

}  // namespace sluice::net
