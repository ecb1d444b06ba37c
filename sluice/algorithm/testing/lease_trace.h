// Random traces of a key that several nodes lease from, in true time: leases, charges, undos of
// both, on a server that hears of each as it comes; and the units, each spent by its node at some
// moment while its lease is good, or given back, now or long after.
//
//   node    asked ───────── good for ─────────>|          undo sent
//   server     `──> decided ── lease's end ────────>|           `──────> undone
//   units             | | spent |  |           |
//
// The guarantees speak of when units are spent, net of what was undone until then.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "sluice/algorithm/testing/pure_key.h"
#include "sluice/algorithm/testing/trace.h"

namespace sluice::testing {

struct LeaseTraceOptions {
  Duration stride;          // a typical wait; mostly shorter, sometimes 20 times as long
  Duration length;          // of leases; somewhat shorter, too
  std::uint64_t most_cost;  // costs are from 1 to this
  // What must not be done: leases are charged as of the moment of taking, as any other charge.
  bool charged_when_taken = false;
  // Of the same algorithm: halfway the rule changes to it, as a shared store does that. Receipts
  // from before are worth nothing then, but leases go on.
  std::optional<Limit> reload_to = std::nullopt;
};

// Units that left, and when.
struct Spent {
  Time at;
  std::uint64_t units;
  std::int64_t window;  // that they were charged to, by the receipt
};

// The key, wherever it lies; asked in the order of time.
class LeasedKey {
 public:
  virtual ~LeasedKey() = default;
  virtual PureKey::Answer Charge(std::uint64_t cost, Now now) = 0;
  virtual PureKey::Answer Lease(std::uint64_t cost, Now now, Duration length) = 0;
  virtual void Undo(const Receipt& receipt, bool lease, std::uint64_t units, Now now) = 0;
};

class LeaseTrace {
 public:
  // `key`: null: the pure functions with a plain place for the state.
  LeaseTrace(const Limit& limit, const LeaseTraceOptions& options, std::uint64_t seed,
             LeasedKey* key = nullptr);

  // Goes on until some units are spent, which are then the last of spent(). False: it is over.
  bool Step();

  [[nodiscard]] const std::vector<Spent>& spent() const { return spent_; }
  [[nodiscard]] int leases() const { return leases_; }
  [[nodiscard]] Time reloaded() const { return reloaded_; }

 private:
  struct Charged {
    Receipt receipt;
    bool lease = false;
    Time good_until;           // lease: it may be spent before
    std::uint64_t left = 0;    // lease: neither spent nor on its way back. Charge: not undone
    std::size_t spent_as = 0;  // charge: its place in spent()
    bool before_reload = false;
  };
  struct Event {
    std::size_t charged;
    std::uint64_t units;
    bool undo;
  };

  PureKey::Answer Acquire(std::uint64_t cost);
  void Undo(const Charged& charged, std::uint64_t units);
  void Do();
  void Charge(std::uint64_t cost);
  void Lease(std::uint64_t cost);
  void Plan(std::size_t lease, Time from);
  void GiveBack();
  bool Happen(const Event& event);
  void Reload(const Limit& to);
  [[nodiscard]] Now TrueNow() const { return At(now_); }

  static constexpr int kSteps = 120;

  Limit limit_;
  const LeaseTraceOptions options_;
  Random random_;
  PureKey key_;
  LeasedKey* const elsewhere_;
  Duration now_ = std::chrono::hours{24 * 7 * 500};
  int steps_ = 0;
  int leases_ = 0;
  Time reloaded_ = Time::max();
  std::vector<Charged> charged_;
  std::vector<Spent> spent_;
  std::multimap<Time, Event> to_come_;
};

}  // namespace sluice::testing
