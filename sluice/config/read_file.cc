#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "sluice/config/document.h"

namespace sluice::config {

std::optional<std::string> ReadFile(const std::string& path, std::size_t max_bytes,
                                    std::optional<Location> named_at, Diagnostics& diagnostics) {
  const auto complain = [&](const std::string& why) {
    if (named_at) {
      diagnostics.Error(*named_at, fmt::format("{} can not be read: {}", Quoted(path), why));
    } else {
      diagnostics.Error({diagnostics.AddFile(path, ""), 0, 0}, "can not be read: " + why);
    }
    return std::nullopt;
  };
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) return complain("it is a folder");
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  if (!file) return complain(std::strerror(errno == 0 ? EIO : errno));
  std::string bytes(max_bytes + 1, '\0');
  file.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  if (file.bad()) return complain("reading stopped half way");
  bytes.resize(static_cast<std::size_t>(file.gcount()));
  if (bytes.size() > max_bytes) {
    return complain(fmt::format("it has more than {} bytes", max_bytes));
  }
  return bytes;
}

}  // namespace sluice::config
