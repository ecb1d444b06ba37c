// `gateway: { access_log: { file: ..., format: ... } }`: a line for each request.
#pragma once

#include <string>

#include "sluice/config/config.h"
#include "sluice/config/fields.h"

namespace sluice::config {

// A file is relative to `base_dir`.
[[nodiscard]] AccessLogSettings ReadAccessLog(const Value& value, const std::string& base_dir);

}  // namespace sluice::config
