// Reading a configuration file, or one that it names, as a whole.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "sluice/config/diagnostics.h"

namespace sluice::config {

// The bytes of a file of at most `max_bytes`; else a complaint about the file as a whole, or, when
// it is named in another file, at `named_at`.
std::optional<std::string> ReadFile(const std::string& path, std::size_t max_bytes,
                                    std::optional<Location> named_at, Diagnostics& diagnostics);

}  // namespace sluice::config
