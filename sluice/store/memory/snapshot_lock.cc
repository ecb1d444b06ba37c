#include "sluice/store/memory/snapshot_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

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

bool IsStill(int fd, const std::string& name) {
  struct stat open_file {};
  struct stat named {};
  return fstat(fd, &open_file) == 0 && stat(name.c_str(), &named) == 0 &&
         open_file.st_dev == named.st_dev && open_file.st_ino == named.st_ino;
}

void WriteOwner(int fd) {
  const std::string text = absl::StrCat(getpid(), "\n");
  // Only for people: whoever has the lock has it whatever stands there.
  if (ftruncate(fd, 0) != 0 || pwrite(fd, text.data(), text.size(), 0) < 0) return;
}

}  // namespace

absl::StatusOr<SnapshotLock> SnapshotLock::Take(const std::string& path) {
  const std::string name = path + ".lock";
  const int fd = open(name.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, S_IRUSR | S_IWUSR);
  if (fd < 0) {
    const int error = errno;
    const std::string message =
        absl::StrCat("cannot keep a snapshot at ", path, ": ", name, ": ", std::strerror(error));
    const bool denied = error == EACCES || error == EPERM || error == EROFS;
    return denied ? absl::PermissionDeniedError(message) : absl::UnavailableError(message);
  }
  SnapshotLock lock(fd);
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
  if (!IsStill(fd, name)) return Take(path);
  WriteOwner(fd);
  return lock;
}

SnapshotLock::~SnapshotLock() {
  if (fd_ >= 0) close(fd_);
}
SnapshotLock::SnapshotLock(SnapshotLock&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
SnapshotLock& SnapshotLock::operator=(SnapshotLock&& other) noexcept {
  std::swap(fd_, other.fd_);
  return *this;
}

}  // namespace sluice
