// A limit in a snapshot: by value, so that the process that reads it needs no configuration to know
// what the states in it mean.
//
// What MakeLimit() derives is derived again. The ticks that states are counted in are written as
// well and compared, so that a version that chooses others does not misread the states.
#pragma once

#include <string>

#include "sluice/algorithm/limit.h"
#include "sluice/store/memory/internal/snapshot_file.h"

namespace sluice::memory {

// Concurrency limits are not written: requires another one.
void PutLimit(std::string& out, const Limit& limit);

// The limit, equal to the one that was written; input.ok() says whether it is one.
[[nodiscard]] Limit TakeLimit(SnapshotInput& input);

}  // namespace sluice::memory
