#include "sluice/config/read_file.h"

#include <fmt/format.h>

#include <utility>

#include "sluice/base/small_file.h"

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
  absl::StatusOr<std::string> bytes = ReadSmallFile(path, max_bytes);
  if (bytes.ok()) return *std::move(bytes);
  return complain(std::string(bytes.status().message()),
                  absl::IsPermissionDenied(bytes.status()) ? kNotAllowed : "");
}

}  // namespace sluice::config
