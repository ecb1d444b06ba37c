#include "sluice/server/gateway_options.h"

#include "sluice/telemetry/prometheus.h"

namespace sluice {

gateway::GatewayOptions GatewayOptionsOf(const config::Config& config) {
  const config::GatewaySettings& settings = *config.gateway;
  gateway::GatewayOptions options;
  options.listen = {.host = settings.listen.host, .port = settings.listen.port};
  options.upstream = {.host = settings.upstream.host, .port = settings.upstream.port};
  options.connect_timeout = settings.connect_timeout;
  options.response_timeout = settings.response_timeout;
  options.idle_timeout = settings.idle_timeout;
  options.header_timeout = settings.header_timeout;
  options.body_timeout = settings.body_timeout;
  options.write_timeout = settings.write_timeout;
  options.upstream_idle_timeout = settings.upstream_idle_timeout;
  options.connections = config.bounds.connections;
  options.upstream_connections = config.bounds.upstream_connections;
  options.idle_upstream_connections = config.bounds.idle_upstream_connections;
  options.header_bytes = config.bounds.header_bytes;
  options.header_fields = config.bounds.header_fields;
  options.rate_limit_fields = config.headers.draft_11;
  return options;
}

void WriteGatewayMetrics(const gateway::Gateway::Counters& counters, std::string& out) {
  PrometheusWriter writer(out);
  writer.Single("sluice_gateway_requests_total", "counter", "Requests that the gateway read.",
                counters.requests);
  writer.Single("sluice_gateway_upstream_errors_total", "counter",
                "Requests that ended with 502 or 504, or were broken off by the upstream.",
                counters.upstream_errors);
  writer.Single("sluice_gateway_retries_total", "counter",
                "Requests sent once more because a kept connection had died unused.",
                counters.retries);
  writer.Single("sluice_gateway_client_left_total", "counter",
                "Clients that left before their answer ended.", counters.client_left);
  writer.Single("sluice_gateway_connections", "gauge", "Connections of clients, open now.",
                counters.connections);
}

}  // namespace sluice
