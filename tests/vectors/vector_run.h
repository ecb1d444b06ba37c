// Runs vectors through anything that keeps states for limits: a subject.
#pragma once

#include <cstdint>
#include <vector>

#include "sluice/algorithm/decision.h"
#include "sluice/algorithm/limit.h"
#include "sluice/base/time.h"
#include "tests/vectors/vector_reader.h"

namespace sluice::vectors {

// One fresh key under each limit of a vector.
class Subject {
 public:
  virtual ~Subject() = default;

  // One request: decides under every limit, charges all or none. A decision for each limit, in
  // their order. Acquire and Force number their charges from 1, in the order in which they come.
  virtual std::vector<Decision> Acquire(std::uint64_t cost, Now now) = 0;
  virtual std::vector<Decision> Look(std::uint64_t cost, Now now) = 0;
  virtual std::vector<Decision> Force(std::uint64_t cost, Now now) = 0;
  // Gives back `units` of charge number `charge`. The runner never gives back more than was
  // charged, but may give back one charge in parts.
  virtual void Undo(int charge, std::uint64_t units, Now now) = 0;
  // Concurrency: gives the slots of a charge back; false when they were back already.
  virtual bool Release(int charge, Now now) = 0;
  // Concurrency: the same slots under another limit.
  virtual void Resize(const Limit& limit) = 0;
};

// Runs one vector and checks every answer with GoogleTest's EXPECT. `late` is by how much an answer
// may come later than the vector says (the log's tick), never sooner: where the vector allows and
// the subject says "in at most `late`", it is asked again then.
void Run(const Vector& vector, Subject& subject, Duration late = Duration{0});

// How much later than its vector a subject may answer.
[[nodiscard]] Duration ResolutionOf(const Vector& vector);

}  // namespace sluice::vectors
