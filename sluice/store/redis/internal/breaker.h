// Whether a store that fails is asked again. Pure: time comes in, nothing is called.
//
//             N groups in a row fail               a probe is answered
//   closed ───────────────────────────> open ───────────────────────────> half-open
//     ^                                  ^ ^                               │   │
//     │                                  │ `──── a trial or a probe fails ─'   │
//     `─────────────────── a trial is answered, or nobody asks for a while ────'
//
// While it is open nothing is admitted, so that nobody waits for what does not come; the probes,
// one each `probe_every`, tell when that is over. While it is half-open a few are admitted as
// trials: what a probe does not do (write, above all) may still fail.
//
// A group that was admitted in one state says nothing in the next: of a thousand that were on their
// way when it opened, none closes or opens it again.
#pragma once

#include <cstdint>

#include "sluice/base/time.h"
#include "sluice/store/redis/redis_health.h"

namespace sluice::redis {

class Breaker {
 public:
  explicit Breaker(BreakerOptions options) : options_(options) {}

  // Of one that was admitted, to be given back with its end.
  using Ticket = std::uint32_t;

  // False: no.
  bool Admit(Ticket* ticket);
  // Each of those that were admitted ends once, in one of these. True: that changed the state.
  bool Succeeded(Ticket ticket);
  // `refused`: the server said no, which a probe, who writes nothing, does not hear. Then only a
  // trial closes it again.
  bool Failed(Ticket ticket, Time now, bool refused = false);
  void Neither(Ticket ticket);  // it says nothing of the store

  // Opens, whatever the state: it is known that nothing can come of it.
  void Trip(Time now) {
    refused_ = false;
    Enter(BreakerState::kOpen, now);
  }

  // Probes are wanted while it is not closed, the next one from this instant on.
  [[nodiscard]] bool WantsProbe(Time now) const {
    return state_ != BreakerState::kClosed && now >= next_probe_;
  }
  [[nodiscard]] Time next_probe() const { return next_probe_; }
  void WantProbeNow() { next_probe_ = Time::min(); }
  void ProbeSent(Time now) { next_probe_ = now + options_.probe_every; }
  // True: the state has changed.
  bool ProbeAnswered(Time now);
  bool ProbeFailed(Time now);

  [[nodiscard]] BreakerState state() const { return state_; }

 private:
  void Enter(BreakerState state, Time now);

  const BreakerOptions options_;
  BreakerState state_ = BreakerState::kClosed;
  Ticket epoch_ = 0;      // of the state: those of others are worth nothing
  int failed_ = 0;        // in a row
  bool refused_ = false;  // the last of those that opened it
  int trials_ = 0;        // that run
  Time next_probe_ = Time::min();
  Time since_ = Time::min();
};

}  // namespace sluice::redis
