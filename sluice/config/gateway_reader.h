// The `gateway` of a file: where it listens, where it forwards to, how it treats connections.
#pragma once

#include "sluice/config/config.h"
#include "sluice/config/fields.h"

namespace sluice::config {

void ReadGateway(const Value& value, Config& config);

}  // namespace sluice::config
