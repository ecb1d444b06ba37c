// From the configuration's settings to the gateway's options.
#pragma once

#include "sluice/config/config.h"
#include "sluice/transport/gateway/options.h"

namespace sluice {

// Requires config.gateway.
[[nodiscard]] gateway::GatewayOptions GatewayOptionsOf(const config::Config& config);

}  // namespace sluice
