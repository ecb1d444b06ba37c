// Lines from several threads into one file, without any of them waiting for the disk.
//
//   thread 0 ── ring ──┐
//   thread 1 ── ring ──┴── writer thread ── write(2), in batches ──> file, or standard output
//
// Add() copies the line into its thread's ring and returns; it takes no lock, allocates nothing and
// asks the kernel nothing, but for a wake-up when the ring is half full. A line that finds no room
// is dropped and counted. The lines of one ring stay in order, and none is ever cut or mixed with
// another.
//
// What a program that rotates files does is kept up with: after Reopen(), and when the file was
// deleted, the path is opened anew. While a disk is full or the path cannot be opened, that is told
// once in the log, lines wait in the rings, and writing goes on as soon as it can. What still waits
// at the end is told, too.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "sluice/base/time.h"

namespace sluice {

class LineWriter {
 public:
  struct Options {
    std::string path;       // appended to, made if it is not there; empty: standard output
    std::size_t rings = 1;  // one for each thread that adds
    std::size_t ring_bytes = std::size_t{1} << 20;  // rounded up to a power of two
    Duration last_words = std::chrono::seconds{2};  // for what is left at the end
  };

  // Errors: kUnavailable when the file cannot be opened, with the reason.
  [[nodiscard]] static absl::StatusOr<std::unique_ptr<LineWriter>> Open(const Options& options);
  LineWriter(const LineWriter&) = delete;
  LineWriter& operator=(const LineWriter&) = delete;
  // Writes what is there. What a full disk, or a pipe that nobody reads, does not take within
  // `last_words` is lost, which the log tells.
  ~LineWriter();

  // `line` ends with its newline and holds no other. From one thread for each ring.
  void Add(std::size_t ring, std::string_view line);

  // From any thread; done by the writer soon after.
  void Reopen();

  // Of lines, so far. From any thread.
  [[nodiscard]] std::uint64_t dropped() const;
  // Times that writing or opening began to fail.
  [[nodiscard]] std::uint64_t failures() const { return failures_.load(std::memory_order_relaxed); }

 private:
  class Ring;

  LineWriter(const Options& options, int descriptor);
  void Run();
  bool WriteAll();
  bool WriteRing(Ring& ring);
  [[nodiscard]] bool FileIsGone() const;
  bool OpenAgain();
  void Failing(std::string_view what, int error);
  [[nodiscard]] std::string_view file() const {
    return path_.empty() ? std::string_view("standard output") : path_;
  }

  const std::string path_;
  const Duration last_words_;
  int descriptor_;
  bool regular_ = false;        // a file; else a pipe, a terminal or a socket, which can block
  bool failing_ = false;        // and the log has told so
  std::size_t first_ring_ = 0;  // to be written first: its last line may be half written
  std::vector<std::unique_ptr<Ring>> rings_;
  std::atomic<std::uint64_t> failures_ = 0;

  std::mutex mutex_;  // of the writer's sleep; no lock is needed to wake it
  std::condition_variable wake_;
  std::atomic<bool> stopping_ = false;
  std::atomic<bool> reopen_ = false;
  std::thread thread_;
};

}  // namespace sluice
