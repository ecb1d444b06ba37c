#include "sluice/store/memory/internal/snapshot_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <utility>

#include "absl/strings/str_cat.h"
#include "sluice/base/siphash.h"
#include "sluice/store/memory/internal/snapshot_bytes.h"

namespace sluice::memory {
namespace {

// The bytes behind the name show a transfer that took the file for text.
constexpr std::string_view kMagic{"SLUICE\x1a\n", 8};
constexpr std::size_t kPreambleSize = 16;
constexpr std::size_t kSizeBytes = 4;
constexpr std::size_t kCheckBytes = 8;

std::uint64_t CheckOf(std::string_view bytes) {
  constexpr std::array<std::uint8_t, 16> kKey{};
  return SipHash128<1, 3>::Of(kKey.data(), bytes).lo;
}

std::uint64_t FromBytes(const char* bytes, std::size_t size) {
  std::uint64_t value = 0;
  for (std::size_t i = size; i-- > 0;) value = value << 8 | static_cast<std::uint8_t>(bytes[i]);
  return value;
}

// The number of a block stands before it only in what is checked, not in the file.
std::string NumberBytes(std::uint64_t number) {
  std::string bytes;
  PutU64(bytes, number);
  return bytes;
}

std::string Message(const std::string& path, std::string_view what) {
  return absl::StrCat("snapshot ", path, ": ", absl::string_view(what.data(), what.size()));
}

absl::Status SystemError(const std::string& path, std::string_view doing, int error) {
  const std::string message = Message(
      path, absl::StrCat(absl::string_view(doing.data(), doing.size()), ": ", strerror(error)));
  switch (error) {
    case EACCES:
    case EPERM:
    case EROFS:
      return absl::PermissionDeniedError(message);
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
      return absl::ResourceExhaustedError(message);
    default:
      return absl::UnavailableError(message);
  }
}

// Makes the rename of a file in it last.
absl::Status SyncFolderOf(const std::string& path) {
  std::string folder = std::filesystem::path(path).parent_path().string();
  if (folder.empty()) folder = ".";
  const FileDescriptor opened(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (opened.get() < 0) return SystemError(path, "open its folder to sync it", errno);
  // Some file systems have nothing to sync in a folder, and say EINVAL.
  if (fsync(opened.get()) != 0 && errno != EINVAL) {
    return SystemError(path, "sync its folder", errno);
  }
  return absl::OkStatus();
}

}  // namespace

std::string SnapshotPreamble(std::uint32_t version) {
  std::string bytes(kMagic);
  PutU32(bytes, version);
  PutU32(bytes, static_cast<std::uint32_t>(CheckOf(bytes)));
  return bytes;
}

void AppendSnapshotBlock(std::uint64_t number, std::string_view bytes, std::string& out) {
  std::string checked = NumberBytes(number);
  const std::size_t of_number = checked.size();
  checked.reserve(of_number + kSizeBytes + bytes.size());
  PutU32(checked, static_cast<std::uint32_t>(bytes.size()));
  checked.append(bytes);
  out.append(checked, of_number);
  PutU64(out, CheckOf(checked));
}

bool SameFile(int fd, const std::string& path) {
  struct stat open_file {};
  struct stat named {};
  return fstat(fd, &open_file) == 0 && stat(path.c_str(), &named) == 0 &&
         open_file.st_dev == named.st_dev && open_file.st_ino == named.st_ino;
}

FileDescriptor::~FileDescriptor() {
  if (fd_ >= 0) close(fd_);
}
FileDescriptor::FileDescriptor(FileDescriptor&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)) {}
FileDescriptor& FileDescriptor::operator=(FileDescriptor&& other) noexcept {
  std::swap(fd_, other.fd_);
  return *this;
}

absl::StatusOr<SnapshotOutput> SnapshotOutput::Create(const std::string& path) {
  const std::string temporary = path + ".tmp";
  for (;;) {
    // Not truncated here: another one may be writing it, or may have just renamed it.
    FileDescriptor file(
        open(temporary.c_str(), O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, S_IRUSR | S_IWUSR));
    if (file.get() < 0) return SystemError(path, "create " + temporary, errno);
    // Where there are no locks one has to go without.
    while (flock(file.get(), LOCK_EX) != 0 && errno == EINTR) {
    }
    // Whoever had the lock before has renamed or removed that file.
    if (!SameFile(file.get(), temporary)) continue;
    SnapshotOutput output(path, std::move(file));
    // One that a crash left behind may have another mode, and old bytes.
    if (fchmod(output.file_.get(), S_IRUSR | S_IWUSR) != 0 ||
        ftruncate(output.file_.get(), 0) != 0) {
      return SystemError(path, "create " + temporary, errno);
    }
    return output;
  }
}

SnapshotOutput::SnapshotOutput(std::string path, FileDescriptor file)
    : path_(std::move(path)),
      temporary_(path_ + ".tmp"),
      file_(std::move(file)),
      framed_(SnapshotPreamble()) {}

SnapshotOutput::SnapshotOutput(SnapshotOutput&& other) noexcept
    : path_(std::move(other.path_)),
      temporary_(std::move(other.temporary_)),
      file_(std::move(other.file_)),
      ours_(std::exchange(other.ours_, false)),
      blocks_(other.blocks_),
      pending_(std::move(other.pending_)),
      framed_(std::move(other.framed_)) {}

SnapshotOutput::~SnapshotOutput() {
  // Before the lock goes with the file: the name may be another's afterwards.
  if (ours_) unlink(temporary_.c_str());
}

absl::Status SnapshotOutput::FinishBlock(std::string_view bytes) {
  AppendSnapshotBlock(blocks_++, bytes, framed_);
  return WriteOut();
}

absl::Status SnapshotOutput::Append(std::string_view bytes) {
  while (!bytes.empty()) {
    const std::size_t fits = std::min(bytes.size(), kMaxSnapshotBlock - pending_.size());
    pending_.append(bytes.substr(0, fits));
    bytes.remove_prefix(fits);
    if (pending_.size() < kMaxSnapshotBlock) break;
    if (absl::Status status = FinishBlock(pending_); !status.ok()) return status;
    pending_.clear();
  }
  return absl::OkStatus();
}

absl::Status SnapshotOutput::WriteOut() {
  std::string_view left = framed_;
  while (!left.empty()) {
    const ssize_t written = write(file_.get(), left.data(), left.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return SystemError(path_, "write " + temporary_, errno);
    left.remove_prefix(static_cast<std::size_t>(written));
  }
  framed_.clear();
  return absl::OkStatus();
}

absl::Status SnapshotOutput::Commit() {
  if (!pending_.empty()) {
    if (absl::Status status = FinishBlock(pending_); !status.ok()) return status;
  }
  if (absl::Status status = FinishBlock({}); !status.ok()) return status;
  if (fsync(file_.get()) != 0) return SystemError(path_, "sync " + temporary_, errno);
  if (rename(temporary_.c_str(), path_.c_str()) != 0) {
    return SystemError(path_, "rename " + temporary_, errno);
  }
  ours_ = false;
  return SyncFolderOf(path_);
}

absl::StatusOr<std::optional<SnapshotInput>> SnapshotInput::Open(const std::string& path) {
  // Without waiting: the name may be that of a pipe.
  FileDescriptor file(open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  if (file.get() < 0) {
    if (errno == ENOENT) return std::nullopt;
    return SystemError(path, "open", errno);
  }
  SnapshotInput input(path, std::move(file));
  struct stat about {};
  if (fstat(input.file_.get(), &about) != 0) return SystemError(path, "open", errno);
  if (!S_ISREG(about.st_mode)) input.Fail("is no file");
  input.CheckPreamble();
  if (!input.ok()) return input.status();
  return input;
}

SnapshotInput::SnapshotInput(std::string path, FileDescriptor file)
    : path_(std::move(path)), file_(std::move(file)) {}

std::string SnapshotInput::Told(std::string_view what) const { return Message(path_, what); }

void SnapshotInput::Fail(std::string_view what) {
  if (status_.ok()) status_ = absl::DataLossError(Told(what));
  at_ = end_ = 0;
}

// As much as there is up to `size`.
std::size_t SnapshotInput::ReadSome(char* to, std::size_t size) {
  std::size_t done = 0;
  while (done < size && ok()) {
    const ssize_t got = read(file_.get(), to + done, size - done);
    if (got == 0) break;
    if (got > 0) {
      done += static_cast<std::size_t>(got);
    } else if (errno != EINTR) {
      status_ = SystemError(path_, "read", errno);
    }
  }
  return done;
}

bool SnapshotInput::ReadFully(char* to, std::size_t size) {
  if (ReadSome(to, size) < size) Fail("is cut short");
  return ok();
}

void SnapshotInput::CheckPreamble() {
  if (!ok()) return;
  char bytes[kPreambleSize];
  const std::size_t size = ReadSome(bytes, sizeof bytes);
  const std::string_view start(bytes, std::min(size, kMagic.size()));
  if (!ok()) return;
  if (start != kMagic.substr(0, start.size())) return Fail("is no snapshot of Sluice");
  if (size < sizeof bytes) return Fail("is cut short");
  constexpr std::size_t kVersionAt = kMagic.size();
  constexpr std::size_t kCheckAt = kVersionAt + 4;
  const std::uint64_t version = FromBytes(bytes + kVersionAt, 4);
  const auto check = static_cast<std::uint32_t>(CheckOf({bytes, kCheckAt}));
  if (FromBytes(bytes + kCheckAt, 4) != check) return Fail("is damaged in its first bytes");
  if (version > kSnapshotVersion) {
    status_ = absl::FailedPreconditionError(Told(
        absl::StrCat("is of format ", version,
                     ", which a later version wrote; this one reads up to ", kSnapshotVersion)));
  } else if (version == 0) {
    Fail("is of format 0, which never was");
  }
}

bool SnapshotInput::HaveMore() {
  if (NextBlock()) return true;
  if (ok()) Fail("ends in the middle of an entry");
  return false;
}

bool SnapshotInput::NextBlock() {
  if (!ok() || ended_) return false;
  char head[kSizeBytes];
  if (!ReadFully(head, sizeof head)) return false;
  const std::size_t size = FromBytes(head, sizeof head);
  if (size > kMaxSnapshotBlock) {
    Fail(absl::StrCat("block ", blocks_, " is damaged: a size of ", size));
    return false;
  }
  const std::string number = NumberBytes(blocks_);
  block_.assign(number.begin(), number.end());
  block_.insert(block_.end(), head, head + sizeof head);
  const std::size_t start = block_.size();
  block_.resize(start + size + kCheckBytes);
  if (!ReadFully(block_.data() + start, size + kCheckBytes)) return false;
  const std::string_view checked(block_.data(), start + size);
  if (CheckOf(checked) != FromBytes(block_.data() + start + size, kCheckBytes)) {
    Fail(absl::StrCat("block ", blocks_, " is damaged: its check does not match"));
    return false;
  }
  ++blocks_;
  at_ = start;
  end_ = start + size;
  if (size > 0) return true;
  ended_ = true;
  char more;
  if (ReadSome(&more, 1) > 0) Fail("goes on behind its end");
  return false;
}

std::uint64_t SnapshotInput::Fixed(int bytes) {
  std::uint64_t value = 0;
  for (int i = 0; i < bytes; ++i) value |= std::uint64_t{U8()} << 8 * i;
  return ok() ? value : 0;
}

std::uint64_t SnapshotInput::Varint() {
  std::uint64_t value = 0;
  for (int shift = 0; shift < 64; shift += 7) {
    const std::uint8_t byte = U8();
    const std::uint64_t bits = byte & 0x7f;
    if (bits << shift >> shift != bits) break;
    value |= bits << shift;
    if (byte < 0x80) return ok() ? value : 0;
  }
  Fail("has a number that is too long");
  return 0;
}

void SnapshotInput::ExpectEnd() {
  if (!ok()) return;
  if (at_ < end_ || NextBlock()) Fail("goes on behind its last entry");
}

}  // namespace sluice::memory
