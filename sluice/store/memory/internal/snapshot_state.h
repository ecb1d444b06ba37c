// One key's state in a snapshot, in numbers that another process can read.
//
//   written at                       read at
//   steady s0, wall w0               steady s1, wall w1        passed = max(0, w1 - w0)
//
//   an instant t of the steady clock is written as  t - s0  and read as  s1 - passed + (t - s0)
//
// What runs on the wall clock (windows aligned to it, calendars) is written as it is: UTC is UTC in
// every process. A wall clock that stepped back in between counts as if no time had passed: nothing
// is paid back by it.
//
// Two kinds are dated in whole steps of the steady clock: events of a log (ticks) and the counts of
// a strict counter (sub-windows). The steps of the new process begin at other instants; what is
// read is dated at the next step, so that it leaves up to one step later, never sooner.
#pragma once

#include <cstdint>
#include <string>

#include "sluice/algorithm/limit.h"
#include "sluice/base/time.h"
#include "sluice/store/memory/internal/outside_image.h"
#include "sluice/store/memory/internal/snapshot_file.h"

namespace sluice::memory {

// When a state is read.
struct Restored {
  Now now;
  Duration passed{0};  // since it was written, by the wall clock; >= 0

  Restored(Now read_at, WallTime written_at);
  // An instant that was `relative` ns ahead of the clock when it was written. Within 146 years of
  // the steady clock's zero, where the algorithms let time stand still.
  [[nodiscard]] std::int64_t SteadyNs(std::int64_t relative) const;
  // The moment at which it is asked whether a state still matters: a wall clock behind the one that
  // it was written by has passed nothing.
  [[nodiscard]] Now AtLeastWritten() const { return {now.steady, latest_wall}; }

 private:
  WallTime latest_wall;
};

// Of a limit whose states are words (Keeper::kWord).
void PutWord(std::string& out, const Limit& limit, std::uint64_t word, Now now);
// 0: it owes nothing any more; input.ok() says whether it was a state at all.
[[nodiscard]] std::uint64_t TakeWord(SnapshotInput& input, const Limit& limit, const Restored& at);

// Of a limit whose states lie in blocks.
void PutImage(std::string& out, const Limit& limit, OutsideImage& image, Now now);
void TakeImage(SnapshotInput& input, const Limit& limit, const Restored& at, OutsideImage& image);

}  // namespace sluice::memory
