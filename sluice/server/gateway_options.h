// From the configuration's settings to the gateway's options.
#pragma once

#include "sluice/config/config.h"
#include "sluice/server/certificates.h"
#include "sluice/transport/gateway/options.h"

namespace sluice {

// Requires config.gateway, and `tls` loaded for it. `access_log` may be null.
[[nodiscard]] gateway::GatewayOptions GatewayOptionsOf(const config::Config& config,
                                                       const TlsContexts& tls,
                                                       const gateway::AccessLog* access_log);

}  // namespace sluice
