#include "sluice/server/certificate_watch.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <string_view>
#include <utility>

#include "sluice/base/small_file.h"

namespace sluice {
namespace {

// As the configuration allows. What lies behind it is not compared.
constexpr std::size_t kMaxBytes = kMaxPemBytes;

// Hashes what it is given, piece by piece; the pieces do not stay.
class Digest {
 public:
  explicit Digest(const HashKey& key) : key_(key) {}
  Digest(const Digest&) = delete;
  Digest& operator=(const Digest&) = delete;
  ~Digest() { ::explicit_bzero(block_.data(), block_.size()); }

  // So that no two lists of files give the same: each with its length, or that it is not there.
  void AddFile(const std::string& path) {
    const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    struct stat about {};
    const bool there = file >= 0 && ::fstat(file, &about) == 0 && S_ISREG(about.st_mode);
    std::size_t size = 0;
    while (there && size < kMaxBytes) {
      const ssize_t got = ::read(file, block_.data() + kContent, block_.size() - kContent);
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) break;
      size += static_cast<std::size_t>(got);
      Add('c', static_cast<std::size_t>(got));
    }
    if (file >= 0) ::close(file);
    const std::string end = there ? std::to_string(size) : "-";
    std::ranges::copy(end, block_.begin() + kContent);
    Add('e', end.size());
  }

  [[nodiscard]] const Hash128& value() const { return so_far_; }

 private:
  static constexpr std::size_t kContent = sizeof(Hash128) + 1;

  // In front of a block's content: the hash of all before it, and what it is.
  void Add(char what, std::size_t size) {
    std::memcpy(block_.data(), &so_far_, sizeof(Hash128));
    block_[sizeof(Hash128)] = what;
    so_far_ = key_(std::string_view(block_.data(), kContent + size));
  }

  const HashKey& key_;
  Hash128 so_far_{};
  std::array<char, 16 * 1024> block_{};
};

}  // namespace

CertificateWatch::CertificateWatch(std::vector<std::string> files)
    : files_(std::move(files)), key_(HashKey::Random()), in_force_(Contents()) {}

Hash128 CertificateWatch::Contents() const {
  Digest digest(key_);
  for (const std::string& file : files_) digest.AddFile(file);
  return digest.value();
}

CertificateWatch::Seen CertificateWatch::Look(const std::function<absl::Status()>& load) {
  // Before loading: what changes in between is seen by the next look.
  const Hash128 contents = Contents();
  if (contents == in_force_) {
    failed_.reset();
    return {};
  }
  if (contents != failed_) tries_ = 0;
  if (tries_ >= kPatience) return {};
  absl::Status loaded = load();
  if (loaded.ok()) {
    in_force_ = contents;
    failed_.reset();
    return {.event = Event::kReplaced, .why = absl::OkStatus()};
  }
  failed_ = contents;
  if (++tries_ < kPatience) return {};
  return {.event = Event::kBroken, .why = std::move(loaded)};
}

}  // namespace sluice
