#include "sluice/server/gateway_options.h"

namespace sluice {

static_assert(config::kMaxUpstreams <= gateway::Balancer::kMaxUpstreams);

gateway::GatewayOptions GatewayOptionsOf(const config::Config& config, const TlsContexts& tls,
                                         const gateway::AccessLog* access_log) {
  const config::GatewaySettings& settings = *config.gateway;
  gateway::GatewayOptions options;
  options.listen = {.host = settings.listen.host, .port = settings.listen.port};
  for (const config::UpstreamSettings& upstream : settings.upstreams) {
    options.upstreams.push_back(
        {.address = {.host = upstream.address.host, .port = upstream.address.port},
         .weight = upstream.weight,
         .tls = upstream.https ? tls.upstreams : nullptr});
  }
  options.tls = tls.clients;
  options.health_path = settings.health_path;
  options.upstream_health = {.failures = settings.upstream_health.failures,
                             .rest = settings.upstream_health.rest};
  options.health_check = {.path = settings.health_check.path,
                          .every = settings.health_check.every,
                          .timeout = settings.health_check.timeout,
                          .failures = settings.health_check.failures,
                          .successes = settings.health_check.successes,
                          .min_status = settings.health_check.min_status,
                          .max_status = settings.health_check.max_status};
  options.resolve_every = settings.resolve_every;
  options.connect_timeout = settings.connect_timeout;
  options.response_timeout = settings.response_timeout;
  options.idle_timeout = settings.idle_timeout;
  options.header_timeout = settings.header_timeout;
  options.body_timeout = settings.body_timeout;
  options.write_timeout = settings.write_timeout;
  options.upstream_idle_timeout = settings.upstream_idle_timeout;
  options.tunnel_idle_timeout = settings.tunnel_idle_timeout;
  options.upgrades = settings.upgrades;
  options.cors = {.origins = settings.cors.origins,
                  .exempt_preflight = settings.cors.exempt_preflight,
                  .credentials = settings.cors.credentials};
  options.access_log = access_log;
  options.connections = config.bounds.connections;
  options.connections_per_client = config.bounds.connections_per_client;
  options.upstream_connections = config.bounds.upstream_connections;
  options.idle_upstream_connections = config.bounds.idle_upstream_connections;
  if (config.bounds.body_bytes != 0) options.body_bytes = config.bounds.body_bytes;
  options.header_bytes = config.bounds.header_bytes;
  options.header_fields = config.bounds.header_fields;
  options.body = config.body == config::BodyForm::kJson ? transport::BodyForm::kJson
                                                        : transport::BodyForm::kProblem;
  options.headers = {.draft_11 = config.headers.draft_11,
                     .draft_07 = config.headers.draft_07,
                     .draft_06 = config.headers.draft_06,
                     .envoy = config.headers.envoy,
                     .x_delta = config.headers.x_delta,
                     .x_epoch = config.headers.x_epoch};
  return options;
}

}  // namespace sluice
