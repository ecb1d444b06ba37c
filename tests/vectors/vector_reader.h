// The vectors of tests/vectors/*.json: what every algorithm must answer, step by step.
//
// They are data so that all that keeps states is held against the same answers: the pure functions
// (sluice/algorithm/vectors_test.cc), and every store (tests/conformance). A reader of vectors
// needs vector_run.h to run them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "sluice/algorithm/decision.h"
#include "sluice/algorithm/limit.h"
#include "sluice/base/time.h"

namespace sluice::vectors {

enum class Op : std::uint8_t {
  kAcquire,
  kPeek,     // decides with its cost, charges nothing
  kForce,    // charges whatever the room
  kRefund,   // undoes the latest charges, `cost` units in all
  kRelease,  // concurrency: the slots of acquisition number `handle`
  kResize,   // concurrency: another limit from now on
};

// What a step must answer; what is not said is not checked.
struct Expected {
  std::optional<bool> allowed;
  std::optional<std::uint64_t> remaining;
  std::optional<Duration> retry_after;
  std::optional<Duration> reset_after;
  std::optional<Duration> delay;
  std::optional<bool> released;
  std::optional<std::vector<int>> violated;  // which of the limits said no
};

struct Step {
  Now now;  // both clocks show t_ns
  Op op = Op::kAcquire;
  std::uint64_t cost = 0;
  int handle = 0;                // kRelease: the n-th allowed acquisition, from 1
  std::optional<Limit> resized;  // kResize
  Expected expected;
};

struct Vector {
  std::string id;
  std::string note;
  // Needs an operation that this version does not have; has no limits, no steps.
  bool later = false;
  std::vector<Limit> limits;  // several: all are charged, or none
  std::vector<Step> steps;
};

// A configuration that must be accepted, or refused with a word for the reason.
struct Validation {
  std::string id;
  absl::StatusOr<Limit> made;
  std::string error;  // "": accepted
};

struct VectorFile {
  std::vector<Vector> vectors;
  std::vector<Validation> validation;
};

// `path` from the project's root. A file that cannot be read is a test's own mistake: it throws,
// which fails the test.
[[nodiscard]] VectorFile Read(std::string_view path);

}  // namespace sluice::vectors
