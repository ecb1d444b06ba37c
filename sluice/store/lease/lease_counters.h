// What an event loop's leases have come to since its start, for the operator. Written by the loop
// alone; any thread may read, each number by itself.
#pragma once

#include "sluice/base/one_writer_counter.h"

namespace sluice {

struct LeaseCounters {
  OneWriterCounter granted;     // leases
  OneWriterCounter denied;      // asked for, and there was no room
  OneWriterCounter unanswered;  // asked for, and the store did not answer, or was not there
  // units = taken - put_back + returned + what is held now
  OneWriterCounter units;     // of the leases that were granted
  OneWriterCounter taken;     // by requests
  OneWriterCounter put_back;  // of those, by requests that did not pass
  OneWriterCounter returned;  // to the store
  OneWriterCounter keys;      // of which something is held now
  OneWriterCounter asking;    // leases that are asked for now
};

}  // namespace sluice
