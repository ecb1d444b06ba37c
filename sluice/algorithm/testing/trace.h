// Random traces: a client of one key that spends, looks, takes back in any order, while the clock
// goes on, and sometimes back. The guarantees speak of what it spent when, net of what was undone.
#pragma once

#include <cstdint>
#include <random>
#include <vector>

#include "sluice/algorithm/testing/pure_key.h"

namespace sluice::testing {

class Random {
 public:
  explicit Random(std::uint64_t seed) : engine_(seed) {}
  // In [0, n); n > 0.
  std::uint64_t Below(std::uint64_t n) { return engine_() % n; }
  // In [least, most].
  std::int64_t Between(std::int64_t least, std::int64_t most) {
    return least + static_cast<std::int64_t>(Below(static_cast<std::uint64_t>(most - least) + 1));
  }
  bool Chance(int per_cent) { return Below(100) < static_cast<std::uint64_t>(per_cent); }

 private:
  std::mt19937_64 engine_;
};

// Both clocks at `at`.
[[nodiscard]] Now At(Duration at);
[[nodiscard]] Now After(Now now, Duration by);

struct Spending {
  Now now;              // as the clock read
  Now latest;           // the latest that it had read until then: no later than the true time
  Duration delay;       // leaky bucket: it leaves at now + delay
  std::uint64_t units;  // net of what was undone
  Receipt receipt;      // units: what is left to undo
};

struct TraceOptions {
  Now start = At(std::chrono::hours{1000});
  Duration stride;          // a typical wait; mostly shorter, sometimes 20 times as long
  std::uint64_t most_cost;  // costs are from 1 to this
  int undo_per_cent = 20;
  int back_per_cent = 0;     // how often the clock steps back, by up to kMostBack strides
  bool forward_undo = true;  // false: undo only the latest (leaky bucket)
};

class Trace {
 public:
  // The clock is never behind its latest reading by more than so many strides.
  static constexpr int kMostBack = 3;

  Trace(const Limit& limit, const TraceOptions& options, std::uint64_t seed)
      : options_(options),
        random_(seed),
        key_(limit),
        now_(options.start),
        latest_(options.start) {}

  // One step: time passes, then a charge, a look or an undo. True when something was spent.
  bool Step();

  [[nodiscard]] const std::vector<Spending>& spendings() const { return spendings_; }
  [[nodiscard]] PureKey& key() { return key_; }
  [[nodiscard]] Now now() const { return now_; }
  [[nodiscard]] Random& random() { return random_; }
  // After a reload, nothing from before can be undone.
  void ForgetReceipts();

 private:
  void Wait();
  void UndoOne();
  bool Spend();

  TraceOptions options_;
  Random random_;
  PureKey key_;
  Now now_;
  Now latest_;
  std::vector<Spending> spendings_;
};

}  // namespace sluice::testing
