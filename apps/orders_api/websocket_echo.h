// A WebSocket (RFC 6455) that sends back every message as it came, text or binary.
#pragma once

#include "sluice/net/http_service.h"

namespace sluice::orders_api {

// Takes the connection over and serves it until either side ends it. A request that asks for no
// WebSocket gets a 426.
net::Task<net::Answer> EchoWebSocket(net::Exchange& exchange);

}  // namespace sluice::orders_api
