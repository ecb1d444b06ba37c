// Everything in the file that is not about rules: doors, bounds, the stores, the log.
#pragma once

#include <string>

#include "sluice/config/config.h"
#include "sluice/config/fields.h"

namespace sluice::config {

// Takes `gateway` (gateway_reader.h), `admin`, `store`, `limits`, `log`, `headers`, `body`,
// `threads`. Paths are relative to `base_dir`.
void ReadSettings(Fields& root, const std::string& base_dir, Config& config);

// `path` as seen from `base_dir`; an absolute path is itself.
[[nodiscard]] std::string PathFrom(const std::string& base_dir, std::string_view path);

}  // namespace sluice::config
