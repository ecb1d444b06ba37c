// From the configuration's settings to the gateway's options, and from its counters to /metrics.
#pragma once

#include <string>

#include "sluice/config/config.h"
#include "sluice/transport/gateway/gateway.h"

namespace sluice {

// Requires config.gateway.
[[nodiscard]] gateway::GatewayOptions GatewayOptionsOf(const config::Config& config);

// Appends.
void WriteGatewayMetrics(const gateway::Gateway::Counters& counters, std::string& out);

}  // namespace sluice
