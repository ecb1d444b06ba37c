#include "sluice/base/line_writer.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cassert>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "sluice/base/log.h"

namespace sluice {
namespace {

using namespace std::chrono_literals;

constexpr auto kTurn = 50ms;         // the writer looks at the rings so often
constexpr int kLookEveryTurns = 20;  // and whether its file is still there
// A pipe that can be written to takes as much at once, so that a write never blocks.
constexpr std::size_t kPipeBytes = 4096;
constexpr int kPipePatienceMs = 100;

int OpenFile(const std::string& path) {
  // Not to wait for somebody who reads, where the path is a pipe's.
  return ::open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0640);
}

bool IsRegular(int descriptor) {
  struct stat status {};
  return ::fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode);
}

}  // namespace

// Bytes in a circle; one thread puts in, one takes out.
class LineWriter::Ring {
 public:
  explicit Ring(std::size_t bytes) : bytes_(std::bit_ceil(bytes)) {}

  // False: there is no room. `*half` tells that the ring has just become half full.
  bool Put(std::string_view line, bool* half) {
    const std::uint64_t end = end_.load(std::memory_order_relaxed);
    const std::uint64_t used = end - begin_.load(std::memory_order_acquire);
    if (line.size() > bytes_.size() - used) {
      dropped_.store(dropped_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
      return false;
    }
    const std::size_t at = end & (bytes_.size() - 1);
    const std::size_t first = std::min(line.size(), bytes_.size() - at);
    std::memcpy(&bytes_[at], line.data(), first);
    std::memcpy(bytes_.data(), line.data() + first, line.size() - first);
    end_.store(end + line.size(), std::memory_order_release);
    *half = used < bytes_.size() / 2 && used + line.size() >= bytes_.size() / 2;
    return true;
  }

  // What can be taken out as one piece.
  [[nodiscard]] std::string_view Next() const {
    const std::uint64_t begin = begin_.load(std::memory_order_relaxed);
    const std::uint64_t used = end_.load(std::memory_order_acquire) - begin;
    const std::size_t at = begin & (bytes_.size() - 1);
    return {&bytes_[at], std::min<std::size_t>(used, bytes_.size() - at)};
  }

  void Take(std::size_t size) {
    if (size == 0) return;
    mid_line_ = Next()[size - 1] != '\n';
    begin_.store(begin_.load(std::memory_order_relaxed) + size, std::memory_order_release);
  }

  // Forgets the rest of a line of which a part was taken.
  void DropRestOfLine() {
    while (mid_line_) {
      const std::string_view next = Next();
      if (next.empty()) return;
      Take(std::min(next.find('\n'), next.size() - 1) + 1);
    }
  }

  // How many lines that was. Once nobody puts any in.
  std::size_t DropAll() {
    std::ptrdiff_t lines = 0;
    for (std::string_view next = Next(); !next.empty(); next = Next()) {
      lines += std::count(next.begin(), next.end(), '\n');
      Take(next.size());
    }
    return static_cast<std::size_t>(lines);
  }

  [[nodiscard]] std::uint64_t dropped() const { return dropped_.load(std::memory_order_relaxed); }

 private:
  std::vector<char> bytes_;
  bool mid_line_ = false;  // of the writer
  // Each on a cache line of its own: two threads write them.
  alignas(64) std::atomic<std::uint64_t> begin_ = 0;
  alignas(64) std::atomic<std::uint64_t> end_ = 0;
  std::atomic<std::uint64_t> dropped_ = 0;
};

absl::StatusOr<std::unique_ptr<LineWriter>> LineWriter::Open(const Options& options) {
  const int descriptor = options.path.empty() ? STDOUT_FILENO : OpenFile(options.path);
  if (descriptor < 0) {
    return absl::UnavailableError(
        absl::StrCat("cannot write to ", options.path, ": ", std::strerror(errno)));
  }
  return std::unique_ptr<LineWriter>(new LineWriter(options, descriptor));
}

LineWriter::LineWriter(const Options& options, int descriptor)
    : path_(options.path),
      last_words_(options.last_words),
      descriptor_(descriptor),
      regular_(IsRegular(descriptor)) {
  for (std::size_t i = 0; i < options.rings; ++i) {
    rings_.push_back(std::make_unique<Ring>(options.ring_bytes));
  }
  thread_ = std::thread([this] { Run(); });
}

LineWriter::~LineWriter() {
  stopping_ = true;
  wake_.notify_one();
  thread_.join();
  if (!path_.empty()) ::close(descriptor_);
}

void LineWriter::Add(std::size_t ring, std::string_view line) {
  assert(!line.empty() && line.back() == '\n');
  bool half = false;
  // Without the lock a wake-up can be lost; then the writer comes a turn later.
  if (rings_[ring]->Put(line, &half) && half) wake_.notify_one();
}

void LineWriter::Reopen() {
  reopen_ = true;
  wake_.notify_one();
}

std::uint64_t LineWriter::dropped() const {
  std::uint64_t sum = 0;
  for (const std::unique_ptr<Ring>& ring : rings_) sum += ring->dropped();
  return sum;
}

void LineWriter::Run() {
  // A pipe whose reader has gone is an error like any other.
  sigset_t pipe;
  ::sigemptyset(&pipe);
  ::sigaddset(&pipe, SIGPIPE);
  ::pthread_sigmask(SIG_BLOCK, &pipe, nullptr);
  for (int turn = 1; !stopping_; ++turn) {
    {
      std::unique_lock lock(mutex_);
      wake_.wait_for(lock, kTurn);
    }
    if (turn % kLookEveryTurns == 0 && FileIsGone()) reopen_ = true;
    // What was added before the file was renamed belongs into it.
    if (reopen_ && !FileIsGone()) WriteAll();
    if (reopen_ && OpenAgain()) reopen_ = false;
    WriteAll();
  }
  const auto end = std::chrono::steady_clock::now() + last_words_;
  bool all = WriteAll();
  while (!all && std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(kTurn);
    all = WriteAll();
  }
  if (all) return;
  std::size_t lines = 0;
  for (const std::unique_ptr<Ring>& ring : rings_) lines += ring->DropAll();
  log::Error("lines are lost", {{"file", file()}, {"lines", lines}});
}

// A file that was deleted still takes lines, which nobody will ever read.
bool LineWriter::FileIsGone() const {
  struct stat status {};
  return regular_ && ::fstat(descriptor_, &status) == 0 && status.st_nlink == 0;
}

bool LineWriter::OpenAgain() {
  if (path_.empty()) return true;
  const int descriptor = OpenFile(path_);
  if (descriptor < 0) {
    Failing("cannot open the file anew; the old one is kept", errno);
    return false;
  }
  // The rest of a line would make no sense in the new file.
  for (const std::unique_ptr<Ring>& ring : rings_) ring->DropRestOfLine();
  ::close(std::exchange(descriptor_, descriptor));
  regular_ = IsRegular(descriptor_);
  return true;
}

// False: some of it could not be written now.
bool LineWriter::WriteAll() {
  for (std::size_t i = 0; i < rings_.size(); ++i) {
    const std::size_t ring = (first_ring_ + i) % rings_.size();
    if (WriteRing(*rings_[ring])) continue;
    first_ring_ = ring;
    return false;
  }
  if (!reopen_ && std::exchange(failing_, false)) log::Info("lines are written again");
  return true;
}

bool LineWriter::WriteRing(Ring& ring) {
  for (std::string_view next = ring.Next(); !next.empty(); next = ring.Next()) {
    if (!regular_) {
      next = next.substr(0, kPipeBytes);
      pollfd room{.fd = descriptor_, .events = POLLOUT, .revents = 0};
      if (::poll(&room, 1, kPipePatienceMs) != 1) return false;
    }
    const ssize_t written = ::write(descriptor_, next.data(), next.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) {
      if (errno != EAGAIN) Failing("lines cannot be written", errno);
      return false;
    }
    ring.Take(static_cast<std::size_t>(written));
  }
  return true;
}

void LineWriter::Failing(std::string_view what, int error) {
  if (std::exchange(failing_, true)) return;
  failures_.fetch_add(1, std::memory_order_relaxed);
  log::Error(what, {{"file", file()}, {"why", std::strerror(error)}});
}

}  // namespace sluice
