#include "sluice/base/small_file.h"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "absl/strings/str_cat.h"

namespace sluice {
namespace {

absl::Status CannotOpen(int error) {
  const char* why = std::strerror(error);
  if (error == ENOENT || error == ENOTDIR) return absl::NotFoundError(why);
  if (error == EACCES || error == EPERM) return absl::PermissionDeniedError(why);
  return absl::InvalidArgumentError(why);
}

}  // namespace

absl::StatusOr<std::string> ReadSmallFile(const std::string& path, std::size_t max_bytes) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) {
    return absl::InvalidArgumentError("it is a folder");
  }
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  if (!file) return CannotOpen(errno == 0 ? EIO : errno);
  std::string bytes;
  char block[16 * 1024];
  while (bytes.size() <= max_bytes && (file.read(block, sizeof block), file.gcount() > 0)) {
    bytes.append(block, static_cast<std::size_t>(file.gcount()));
  }
  if (file.bad()) return absl::InvalidArgumentError("reading stopped half way");
  if (bytes.size() > max_bytes) {
    return absl::InvalidArgumentError(absl::StrCat("it has more than ", max_bytes, " bytes"));
  }
  return bytes;
}

}  // namespace sluice
