#include "tests/vectors/vector_run.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace sluice::vectors {
namespace {

// Several decisions as one: what a caller is told.
struct Folded {
  bool allowed = true;
  std::uint64_t remaining = ~std::uint64_t{0};
  Duration retry_after{0};
  Duration reset_after{0};
  Duration delay{0};
  std::vector<int> violated;
};

Folded Fold(const std::vector<Decision>& decisions) {
  Folded folded;
  for (std::size_t i = 0; i < decisions.size(); ++i) {
    const Decision& decision = decisions[i];
    folded.remaining = std::min(folded.remaining, decision.remaining);
    folded.delay = std::max(folded.delay, decision.delay);
    folded.reset_after = decisions.size() == 1 ? decision.reset_after
                                               : std::max(folded.reset_after, decision.reset_after);
    if (decision.allowed()) continue;
    folded.allowed = false;
    folded.violated.push_back(static_cast<int>(i));
    folded.retry_after = decisions.size() == 1 ? decision.retry_after
                                               : std::max(folded.retry_after, decision.retry_after);
  }
  return folded;
}

// `late`: the answer may be that much later, never sooner.
void ExpectWait(Duration expected, Duration got, Duration late, const char* what) {
  if (late == Duration{0} || expected == kNever || expected == kUnknown) {
    EXPECT_EQ(got, expected) << what;
    return;
  }
  EXPECT_GE(got, expected) << what;
  EXPECT_LE(got, expected + late) << what;
}

void Compare(const Expected& expected, const Folded& got, Duration late) {
  if (expected.allowed) {
    EXPECT_EQ(got.allowed, *expected.allowed);
  }
  if (expected.remaining) {
    EXPECT_EQ(got.remaining, *expected.remaining);
  }
  if (expected.delay) {
    EXPECT_EQ(got.delay, *expected.delay);
  }
  if (expected.violated) {
    EXPECT_EQ(got.violated, *expected.violated);
  }
  if (expected.retry_after) ExpectWait(*expected.retry_after, got.retry_after, late, "retry_after");
  if (expected.reset_after) ExpectWait(*expected.reset_after, got.reset_after, late, "reset_after");
}

// What the runner charged, so that a refund knows what there is to give back.
class Charges {
 public:
  explicit Charges(Subject& subject) : subject_(subject) {}

  void Add(std::uint64_t units) { units_.push_back(units); }

  void Refund(std::uint64_t units, Now now) {
    for (std::size_t i = units_.size(); i > 0 && units > 0; --i) {
      const std::uint64_t part = std::min(units, units_[i - 1]);
      if (part == 0) continue;
      subject_.Undo(static_cast<int>(i), part, now);
      units_[i - 1] -= part;
      units -= part;
    }
  }

 private:
  Subject& subject_;
  std::vector<std::uint64_t> units_;
};

Now After(Now now, Duration by) { return {now.steady + by, now.wall + by}; }

void RunStep(const Step& step, Subject& subject, Charges& charges, Duration late) {
  switch (step.op) {
    case Op::kAcquire: {
      Folded got = Fold(subject.Acquire(step.cost, step.now));
      if (step.expected.allowed.value_or(false) && !got.allowed && got.retry_after <= late) {
        got = Fold(subject.Acquire(step.cost, After(step.now, got.retry_after)));
      }
      Compare(step.expected, got, late);
      if (got.allowed && step.cost > 0) charges.Add(step.cost);
      return;
    }
    case Op::kPeek:
      return Compare(step.expected, Fold(subject.Look(step.cost, step.now)), late);
    case Op::kForce:
      charges.Add(step.cost);
      return Compare(step.expected, Fold(subject.Force(step.cost, step.now)), late);
    case Op::kRefund:
      charges.Refund(step.cost, step.now);
      return Compare(step.expected, Fold(subject.Look(0, step.now)), late);
    case Op::kRelease:
      EXPECT_EQ(subject.Release(step.handle, step.now), step.expected.released.value_or(true));
      return Compare(step.expected, Fold(subject.Look(0, step.now)), late);
    case Op::kResize:
      subject.Resize(*step.resized);
      return Compare(step.expected, Fold(subject.Look(0, step.now)), late);
  }
}

}  // namespace

void Run(const Vector& vector, Subject& subject, Duration late) {
  SCOPED_TRACE(vector.id + ": " + vector.note);
  Charges charges(subject);
  for (std::size_t i = 0; i < vector.steps.size(); ++i) {
    SCOPED_TRACE("step " + std::to_string(i));
    RunStep(vector.steps[i], subject, charges, late);
  }
}

Duration ResolutionOf(const Vector& vector) {
  Duration late{0};
  for (const Limit& limit : vector.limits) {
    if (const auto* log = std::get_if<sliding_window_log::Limit>(&limit)) {
      late = std::max(late, log->tick);
    }
  }
  return late;
}

}  // namespace sluice::vectors
