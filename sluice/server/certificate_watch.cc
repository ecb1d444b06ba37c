#include "sluice/server/certificate_watch.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <utility>

#include "sluice/base/small_file.h"

namespace sluice {
namespace {

// As the configuration allows. What lies behind it is not compared.
constexpr std::uintmax_t kMaxBytes = kMaxPemBytes;

// Appends what is in the file, so that no two lists of files give the same bytes.
void AppendFile(const std::string& path, std::string& out) {
  std::error_code error;
  std::ifstream file;
  if (std::filesystem::is_regular_file(path, error)) file.open(path, std::ios::binary);
  if (!file.is_open()) {
    out += "-\n";
    return;
  }
  std::string bytes(std::min(kMaxBytes, std::filesystem::file_size(path, error)), '\0');
  file.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  bytes.resize(static_cast<std::size_t>(file.gcount()));
  out += std::to_string(bytes.size()) + "\n" + bytes;
}

}  // namespace

CertificateWatch::CertificateWatch(std::vector<std::string> files)
    : files_(std::move(files)), key_(HashKey::Random()), in_force_(Contents()) {}

Hash128 CertificateWatch::Contents() const {
  std::string all;
  for (const std::string& file : files_) AppendFile(file, all);
  return key_(all);
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
