// The `gateway` of a file: where it listens, where it forwards to, how it treats connections.
#pragma once

#include <string>

#include "sluice/config/config.h"
#include "sluice/config/fields.h"

namespace sluice::config {

// Files that it names are relative to `base_dir`.
void ReadGateway(const Value& value, const std::string& base_dir, Config& config);

}  // namespace sluice::config
