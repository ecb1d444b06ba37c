#include "sluice/store/memory/snapshot_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace sluice {
namespace {

// What the owner wrote, for people; it may be gone, or not yet written.
std::string OwnerOf(int fd) {
  std::array<char, 32> text{};
  const ssize_t size = pread(fd, text.data(), text.size(), 0);
  if (size <= 0) return "another process";
  return absl::StrCat(
      "process ",
      absl::StripSuffix(absl::string_view(text.data(), static_cast<std::size_t>(size)), "\n"));
}

void WriteOwner(int fd) {
  const std::string text = absl::StrCat(getpid(), "\n");
  // Only for people: whoever has the lock has it whatever stands there.
  if (ftruncate(fd, 0) != 0 || pwrite(fd, text.data(), text.size(), 0) < 0) return;
}

}  // namespace

absl::StatusOr<SnapshotLock> SnapshotLock::Take(const std::string& path) {
  const std::string name = path + ".lock";
  const int fd = ::open(name.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, S_IRUSR | S_IWUSR);
  if (fd < 0) {
    const int error = errno;
    const std::string message =
        absl::StrCat("cannot keep a snapshot at ", path, ": ", name, ": ", std::strerror(error));
    const bool denied = error == EACCES || error == EPERM || error == EROFS;
    return denied ? absl::PermissionDeniedError(message) : absl::UnavailableError(message);
  }
  SnapshotLock lock{memory::FileDescriptor(fd)};
  int taken = 0;
  do {
    taken = flock(fd, LOCK_EX | LOCK_NB);
  } while (taken != 0 && errno == EINTR);
  if (taken != 0 && errno == EWOULDBLOCK) {
    return absl::FailedPreconditionError(
        absl::StrCat("snapshot ", path, " is in use by ", OwnerOf(fd)));
  }
  if (taken != 0) return lock;  // a file system without locks
  // Somebody may have removed the file between its opening and the lock: then it guards nothing.
  if (!memory::SameFile(fd, name)) return Take(path);
  WriteOwner(fd);
  return lock;
}

}  // namespace sluice
