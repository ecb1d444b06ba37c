// A snapshot as a file: a stream of bytes of which none is believed before it was checked, and that
// is there as a whole or not at all.
//
//   | magic 8 | version 4 | check 4 |  block  |  block  | ... | empty block |
//                                     | size 4 | bytes | check 8 |
//
// A block's check is SipHash-1-3 under a fixed key over its number, its size and its bytes: a bit
// that flipped, a block that is missing, or comes twice, or from another place of the file is
// noticed before anything in it is used. The empty block says that nothing is missing at the end.
// The first 16 bytes keep their meaning in all versions, so that a damaged version number is told
// from a later version. This guards against accidents; against a forger the file's mode does.
//
// Cost: at most one block (256 KB) in memory on either side; about 1 GB/s.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace sluice::memory {

inline constexpr std::size_t kMaxSnapshotBlock = std::size_t{256} << 10;

inline constexpr std::uint32_t kSnapshotVersion = 1;

// What a file begins with.
[[nodiscard]] std::string SnapshotPreamble(std::uint32_t version = kSnapshotVersion);
// Appends block `number` (from 0) to `out`. Empty `bytes`, at most kMaxSnapshotBlock, end the file.
void AppendSnapshotBlock(std::uint64_t number, std::string_view bytes, std::string& out);

// An open file, closed at the end.
class FileDescriptor {
 public:
  explicit FileDescriptor(int fd) : fd_(fd) {}
  ~FileDescriptor();
  FileDescriptor(FileDescriptor&& other) noexcept;
  FileDescriptor& operator=(FileDescriptor&& other) noexcept;
  [[nodiscard]] int get() const { return fd_; }

 private:
  int fd_;
};

// Whether the open file is still the one that bears the name.
[[nodiscard]] bool SameFile(int fd, const std::string& path);

// Writes to `PATH.tmp`, which becomes PATH at Commit(). Whoever writes the same snapshot at the
// same time, in this process or another one, waits for the one before.
//
// Errors: kPermissionDenied; kResourceExhausted: the disk is full; kUnavailable: all else. PATH is
// as it was before then, and PATH.tmp is gone.
class SnapshotOutput {
 public:
  static absl::StatusOr<SnapshotOutput> Create(const std::string& path);
  ~SnapshotOutput();
  SnapshotOutput(SnapshotOutput&& other) noexcept;
  SnapshotOutput& operator=(SnapshotOutput&&) = delete;

  absl::Status Append(std::string_view bytes);
  // Ends, syncs and renames the file, and syncs its folder. Nothing can be appended afterwards.
  absl::Status Commit();

 private:
  SnapshotOutput(std::string path, FileDescriptor file);
  absl::Status WriteOut();
  absl::Status FinishBlock(std::string_view bytes);

  std::string path_;
  std::string temporary_;
  FileDescriptor file_;
  bool ours_ = true;  // the temporary file is there, and this object's to remove
  std::uint64_t blocks_ = 0;
  std::string pending_;  // bytes of the block to come
  std::string framed_;   // blocks to be written
};

// Reads what SnapshotOutput wrote. After the first thing that is wrong every number read is 0 and
// ok() is false; whoever loops over a count asks ok() in each turn.
class SnapshotInput {
 public:
  // nullopt: there is no such file. Errors as MemoryStore::Open.
  static absl::StatusOr<std::optional<SnapshotInput>> Open(const std::string& path);

  [[nodiscard]] std::uint8_t U8() {
    if (at_ == end_ && !HaveMore()) return 0;
    return static_cast<std::uint8_t>(block_[at_++]);
  }
  [[nodiscard]] std::uint32_t U32() { return static_cast<std::uint32_t>(Fixed(4)); }
  [[nodiscard]] std::uint64_t U64() { return Fixed(8); }
  [[nodiscard]] std::int64_t I64() { return static_cast<std::int64_t>(U64()); }
  [[nodiscard]] std::uint64_t Varint();
  // Nothing may follow any more.
  void ExpectEnd();

  [[nodiscard]] bool ok() const { return status_.ok(); }
  [[nodiscard]] const absl::Status& status() const { return status_; }
  // What was read makes no sense: kDataLoss, with the file's name before `what`.
  void Fail(std::string_view what);
  // The file's name and `what`, as all messages are.
  [[nodiscard]] std::string Told(std::string_view what) const;

 private:
  SnapshotInput(std::string path, FileDescriptor file);
  [[nodiscard]] std::uint64_t Fixed(int bytes);
  void CheckPreamble();
  // Makes the next byte be there. False: none is left, which is told.
  bool HaveMore();
  // Reads and checks the next block. False: it is the last, empty one, or damaged, which is told.
  bool NextBlock();
  bool ReadFully(char* to, std::size_t size);
  std::size_t ReadSome(char* to, std::size_t size);

  std::string path_;
  FileDescriptor file_;
  absl::Status status_;
  std::vector<char> block_;
  std::size_t at_ = 0;
  std::size_t end_ = 0;
  std::uint64_t blocks_ = 0;
  bool ended_ = false;
};

}  // namespace sluice::memory
