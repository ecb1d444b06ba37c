#include "sluice/config/read_file.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>

namespace sluice::config {

std::optional<std::string> ReadFile(const std::string& path, std::size_t max_bytes,
                                    std::optional<Location> named_at, Diagnostics& diagnostics) {
  const auto complain = [&](const std::string& why) {
    if (named_at) {
      diagnostics.Error(*named_at, fmt::format("{} cannot be read: {}", Quoted(path), why));
    } else {
      diagnostics.Error({diagnostics.AddFile(path, ""), 0, 0}, "cannot be read: " + why);
    }
    return std::nullopt;
  };
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) return complain("it is a folder");
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  if (!file) return complain(std::strerror(errno == 0 ? EIO : errno));
  std::string bytes;
  char block[16 * 1024];
  while (bytes.size() <= max_bytes && (file.read(block, sizeof block), file.gcount() > 0)) {
    bytes.append(block, static_cast<std::size_t>(file.gcount()));
  }
  if (file.bad()) return complain("reading stopped half way");
  if (bytes.size() > max_bytes) {
    return complain(fmt::format("it has more than {} bytes", max_bytes));
  }
  return bytes;
}

}  // namespace sluice::config
