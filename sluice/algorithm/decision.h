// What an algorithm answers about one charge, in the field's three numbers.
//
//   remaining    what may still be spent now, after this call; rounded down
//   retry_after  how long until the same cost passes, if nobody else spends; rounded up, exact:
//                the same call at now + retry_after passes, one nanosecond earlier it does not
//   reset_after  how long until nothing is owed any more; rounded up
//
// A denial and a look change no state. The verdict of a forced charge (Charge) tells whether there
// was room; its numbers are those after the charge, so that whoever waits retry_after passes.
#pragma once

#include <cstdint>

#include "sluice/base/time.h"

namespace sluice {

enum class Verdict : std::uint8_t {
  kAllowed,
  kDelayed,  // allowed, but only after `delay` (leaky bucket)
  kLimited,
  kNever,  // the cost is above the capacity: no wait helps
};

// In retry_after: no wait helps.
inline constexpr Duration kNever = Duration::max();
// In retry_after and reset_after: somebody else decides when (concurrency without a time to live).
inline constexpr Duration kUnknown = Duration{-1};

struct Decision {
  Verdict verdict = Verdict::kAllowed;
  std::uint64_t remaining = 0;
  // 0 when allowed; kNever exactly when the verdict is kNever; or kUnknown.
  Duration retry_after{0};
  Duration reset_after{0};  // or kUnknown
  Duration delay{0};        // > 0 exactly when the verdict is kDelayed

  [[nodiscard]] bool allowed() const { return verdict <= Verdict::kDelayed; }
  friend bool operator==(const Decision&, const Decision&) = default;
};

// What a charge took, so that it can be given back. Opaque to everybody but the algorithm that made
// it. A receipt is good for one undo (which may be of a part of the units);
// that of a lease for several, together of at most its units.
struct Receipt {
  // What the charge marked. Buckets: the instant before it, in ticks. Windows: the window's number.
  // First-hit and calendar: the start. Log: the tick of the entry. Concurrency: the slot.
  std::int64_t before = 0;
  // Buckets: when, in ticks. Log and concurrency: free for the keeper's generation.
  std::int64_t charged_at = 0;
  // Token bucket: all that was undone on the key before the charge. Set by the keeper.
  std::uint64_t undone_before = 0;
  // What was charged; 0 says that there is nothing to give back.
  std::uint64_t units = 0;
};

// One decision over a small state: the answer, the state to keep, and the way back.
template <typename State>
struct Step {
  Decision decision;
  State next;       // equal to the state that was given when nothing was charged
  Receipt receipt;  // units 0 when nothing was charged
  // The state given was impossible (a window far ahead of now) and counted as absent.
  bool damaged = false;
};

}  // namespace sluice
