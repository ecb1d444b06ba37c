// A store keeps states and nothing else: it answers as the pure functions do.

#include "sluice/algorithm/testing/pure_key.h"
#include "sluice/algorithm/testing/trace.h"
#include "tests/conformance/store_under_test.h"

namespace sluice::conformance {
namespace {

using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::seconds;

// The same trace through both.
class Pair {
 public:
  Pair(Store& store, Claim claim, std::uint64_t seed)
      : store_(store), claim_(std::move(claim)), pure_(*claim_.limit), random_(seed) {}

  void Step(Now now) {
    const std::uint64_t what = random_.Below(10);
    const bool slots = std::holds_alternative<concurrency::Limit>(*claim_.limit);
    if (what < 6 || (what < 7 && slots)) {
      Acquire(1 + random_.Below(6), now);
    } else if (what < 7) {
      Force(1 + random_.Below(6), now);
    } else if (what < 8) {
      const std::uint64_t cost = random_.Below(6);
      EXPECT_EQ(Apply(cost, ClaimKind::kBinding, now, 0).decision.remaining,
                pure_.Look(0, now).remaining);
    } else if (!charges_.empty()) {
      Undo(now);
    }
  }

 private:
  struct Charge {
    Claim claim;
    Receipt receipt;
  };

  // Asks the store; `keep` 0: gives what it took back at once.
  Claim Apply(std::uint64_t cost, ClaimKind kind, Now now, int keep) {
    Claim claim = claim_;
    claim.cost = keep == 0 ? 0 : cost;
    claim.kind = kind;
    ClaimGroup group{.claims = {&claim, 1}};
    store_.Apply({&group, 1}, now);
    return claim;
  }

  void Acquire(std::uint64_t cost, Now now) {
    const Decision looked = pure_.Look(cost, now);
    const Decision seen = Apply(cost, ClaimKind::kLook, now, 1).decision;
    EXPECT_EQ(seen.verdict, looked.verdict);
    EXPECT_EQ(seen.retry_after, looked.retry_after);
    Expect(Apply(cost, ClaimKind::kBinding, now, 1), pure_.Acquire(cost, now));
  }
  void Force(std::uint64_t cost, Now now) {
    const std::uint64_t most = 2 * CapacityOf(*claim_.limit);
    Expect(Apply(cost, ClaimKind::kSoft, now, 1), pure_.Force(cost, now, most));
  }
  void Expect(const Claim& got, const sluice::testing::PureKey::Answer& right) {
    EXPECT_EQ(got.decision, right.decision);
    EXPECT_EQ(got.receipt.units, right.receipt.units);
    if (got.receipt.units > 0) charges_.push_back({got, right.receipt});
  }
  void Undo(Now now) {
    const std::size_t which = random_.Below(charges_.size());
    Charge charge = charges_[which];
    charges_.erase(charges_.begin() + static_cast<std::ptrdiff_t>(which));
    const std::uint64_t units = 1 + random_.Below(charge.receipt.units);
    store_.Undo(charge.claim, units, now);
    pure_.Undo(charge.receipt, units, now);
  }

  Store& store_;
  const Claim claim_;
  sluice::testing::PureKey pure_;
  sluice::testing::Random random_;
  std::vector<Charge> charges_;
};

TEST_P(StoreConformance, AnswersAsThePureFunctionsDoOnAnyTrace) {
  const auto kTraces = static_cast<std::uint64_t>(Few(60));
  constexpr int kSteps = 120;
  std::vector<NamedLimit> limits = EveryRate(12, minutes{1});
  limits.push_back({"whole windows only", SlidingLog(200, minutes{1})});
  limits.push_back({"large costs", SlidingLog(200, minutes{1}, true)});
  limits.push_back({"no whole tick", TokenBucket(7'919, hours{1}, 13)});
  limits.push_back({"large", FixedWindow(std::int64_t{1} << 50, seconds{10})});
  limits.push_back({"large counter", SlidingCounter(std::int64_t{1} << 50, seconds{10})});
  limits.push_back({"slots", Concurrency(9, seconds{20})});
  for (const NamedLimit& named : limits) {
    // Its keys have other edges than those of the pure functions.
    const auto* window = std::get_if<fixed_window::Limit>(&named.limit);
    if (window != nullptr && window->per_key_offset) continue;
    SCOPED_TRACE(named.name);
    const Registered& limit = Register(named.limit);
    for (std::uint64_t trace = 0; trace < kTraces; ++trace) {
      SCOPED_TRACE(trace);
      Pair pair(store(), ClaimOn(named.name + std::to_string(trace), limit), trace);
      sluice::testing::Random random(trace);
      for (int i = 0; i < kSteps && !HasFailure(); ++i) {
        pair.Step(clock_.Read());
        clock_.Advance(Whole(Duration{random.Below(10'000'000'000)}));
        // What was over once, events and slots, may be forgotten at once or later.
        const bool back = !std::holds_alternative<sliding_window_log::Limit>(named.limit) &&
                          !std::holds_alternative<concurrency::Limit>(named.limit);
        if (back && random.Chance(5)) clock_.Advance(-Whole(Duration{random.Below(5'000'000'000)}));
      }
    }
  }
}

}  // namespace
}  // namespace sluice::conformance
