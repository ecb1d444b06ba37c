#include "sluice/config/read_file.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>

namespace sluice::config {
namespace {

constexpr std::string_view kNotAllowed = "let the user that Sluice runs as read it";

}  // namespace

std::optional<std::string> ReadFile(const std::string& path, std::size_t max_bytes,
                                    std::optional<Location> named_at, Diagnostics& diagnostics) {
  const auto complain = [&](const std::string& why, std::string_view hint = "") {
    if (named_at) {
      diagnostics.Error(*named_at, fmt::format("{} cannot be read: {}", Quoted(path), why), hint);
    } else {
      diagnostics.Error({diagnostics.AddFile(path, ""), 0, 0}, "cannot be read: " + why);
    }
    return std::nullopt;
  };
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) return complain("it is a folder");
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    const int why = errno == 0 ? EIO : errno;
    return complain(std::strerror(why), why == EACCES ? kNotAllowed : "");
  }
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
