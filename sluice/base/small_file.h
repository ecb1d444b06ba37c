// The whole of a small file that somebody has made by hand or by a tool: settings, certificates,
// keys. Blocks for as long as the disk does.
#pragma once

#include <cstddef>
#include <string>

#include "absl/status/statusor.h"

namespace sluice {

// Of certificates and keys. All authorities that a system believes in have 220 KB.
inline constexpr std::size_t kMaxPemBytes = std::size_t{4} << 20;

// Errors say why, without the file's name:
//   kNotFound          there is no such file
//   kPermissionDenied  we may not read it
//   kInvalidArgument   anything else: a folder, more than `max_bytes`, an error of the disk
[[nodiscard]] absl::StatusOr<std::string> ReadSmallFile(const std::string& path,
                                                        std::size_t max_bytes);

}  // namespace sluice
