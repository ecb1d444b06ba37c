// One process at a time for one snapshot: two that keep the same file would each write over what
// the other counted, and quotas would be forgotten without a word.
//
//   absl::StatusOr<SnapshotLock> lock = SnapshotLock::Take("counters.snapshot");   // then the
//   store
//
// Lies in a file of its own, `PATH.lock`, which stays and holds the process id of its last owner;
// the snapshot itself is replaced each time. The system lets go of it when the process ends,
// however it ends. To take it is also the proof, at the start, that the snapshot's folder can be
// written.
#pragma once

#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "sluice/store/memory/internal/snapshot_file.h"

namespace sluice {

class SnapshotLock {
 public:
  // Errors: kFailedPrecondition: another process has it; kPermissionDenied, kUnavailable: the file
  // cannot be made. On a file system without locks every call succeeds.
  static absl::StatusOr<SnapshotLock> Take(const std::string& path);

 private:
  explicit SnapshotLock(memory::FileDescriptor file) : file_(std::move(file)) {}

  memory::FileDescriptor file_;
};

}  // namespace sluice
