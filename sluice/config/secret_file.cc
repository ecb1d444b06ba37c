#include "sluice/config/secret_file.h"

#include <fmt/format.h>

#include <filesystem>

#include "sluice/config/read_file.h"
#include "sluice/config/settings_reader.h"

namespace sluice::config {
namespace {

constexpr std::size_t kMaxBytes = 4096;

}  // namespace

std::optional<std::string> ReadSecretFile(const Value& value, const std::string& base_dir) {
  const auto written = value.Text();
  if (!written) return std::nullopt;
  const std::string path = PathFrom(base_dir, *written);
  auto secret = ReadFile(path, kMaxBytes, value.node().location, value.diagnostics());
  if (!secret) return std::nullopt;
  WarnIfAllCanRead(value, *written, path);
  if (secret->ends_with('\n')) secret->pop_back();
  if (secret->ends_with('\r')) secret->pop_back();
  if (secret->empty()) {
    value.Complain(fmt::format("names {}, which is empty", Quoted(*written)));
    return std::nullopt;
  }
  if (secret->find_first_of(std::string_view("\n\r\0", 3)) != std::string::npos) {
    value.Complain(fmt::format("names {}, which holds more than one line", Quoted(*written)),
                   "it must hold the secret and nothing else");
    return std::nullopt;
  }
  return secret;
}

// Group rights are left alone: a group for those who may use keys is a common arrangement.
void WarnIfAllCanRead(const Value& value, std::string_view written, const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code error;
  const fs::perms rights = fs::status(path, error).permissions();
  if (error || (rights & fs::perms::others_read) == fs::perms::none) return;
  value.diagnostics().Warning(
      value.node().location,
      fmt::format("`{}` names {}, which every user of this machine can read", value.name(),
                  Quoted(written)),
      "`chmod o= FILE`, or `defaultMode: 0440` of a Kubernetes Secret's volume");
}

}  // namespace sluice::config
