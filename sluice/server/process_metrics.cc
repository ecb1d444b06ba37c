#include "sluice/server/process_metrics.h"

#include <vector>

#include "sluice/telemetry/prometheus.h"

namespace sluice {

void WriteStoreMetrics(const MemoryStats& stats, std::string& out) {
  PrometheusWriter writer(out);
  writer.Single(
      "sluice_store_keys", "gauge",
      "Keys in the table; those that owe nothing any more stay until their place is taken.",
      stats.table_slots_occupied);
  writer.Single("sluice_store_keys_live", "gauge",
                "Keys that owe something: an estimate from a sample, coarse where there are few.",
                stats.keys_live);
  writer.Single("sluice_store_keys_max", "gauge", "The bound: store.memory.max_keys.",
                stats.max_keys);
  writer.Single("sluice_store_bytes", "gauge", "Memory that the store has taken.", stats.bytes);
  writer.Single("sluice_store_inserted_total", "counter", "Keys that came in.", stats.inserted);
  writer.Single("sluice_store_reclaimed_total", "counter",
                "Places of keys that owed nothing, given to others.", stats.reclaimed);
  writer.Single("sluice_store_evicted_total", "counter",
                "Keys that still owed something, forgotten for want of room.", stats.evicted);
  writer.Single("sluice_store_refused_total", "counter",
                "Requests denied because all concurrency slots of the process were taken.",
                stats.refused);
  writer.Single("sluice_store_damaged_total", "counter", "Impossible states that were dropped.",
                stats.damaged);
  writer.Single("sluice_store_converted_total", "counter",
                "States taken over under other numbers, after a reload or a change of plan.",
                stats.conversions);
  writer.Single("sluice_store_events_dropped_total", "counter",
                "Events of sliding logs forgotten early for want of room.", stats.events_dropped);
  writer.Single("sluice_store_blocks", "gauge",
                "Blocks for states that do not fit a word (limits.outside_bytes).",
                stats.outside_blocks);
  writer.Single("sluice_store_blocks_used", "gauge", "Of these, in use.",
                stats.outside_blocks_used);
  writer.Single("sluice_store_slots_used", "gauge", "Concurrency slots that are held.",
                stats.concurrency_slots_used);
}

namespace {

// Only where they are configured, or were.
void WriteCheckMetrics(const gateway::Gateway::Counters& counters, PrometheusWriter& writer) {
  std::vector<gateway::Gateway::UpstreamCounts> checked;
  for (const auto& upstream : counters.upstreams) {
    if (upstream.up || upstream.checks_passed + upstream.checks_failed > 0) {
      checked.push_back(upstream);
    }
  }
  if (checked.empty()) return;
  writer.Family("sluice_upstream_up", "gauge",
                "What active checks say: 1 up, 0 down. One that is down gets no requests while "
                "another is up.");
  for (const auto& upstream : checked) {
    if (upstream.up) writer.Sample({{"upstream", upstream.name}}, *upstream.up ? 1 : 0);
  }
  writer.Family("sluice_upstream_checks_total", "counter",
                "Active checks, by their result; they are not counted as requests.");
  for (const auto& upstream : checked) {
    writer.Sample({{"upstream", upstream.name}, {"result", "passed"}}, upstream.checks_passed);
    writer.Sample({{"upstream", upstream.name}, {"result", "failed"}}, upstream.checks_failed);
  }
}

}  // namespace

void WriteGatewayMetrics(const gateway::Gateway::Counters& counters, std::string& out) {
  PrometheusWriter writer(out);
  writer.Single("sluice_gateway_requests_total", "counter", "Requests that the limiter decided on.",
                counters.requests);
  const gateway::BookTotals& books = counters.books;
  writer.Single("sluice_gateway_admitted_total", "counter",
                "Of these, allowed, be it after a wait in a queue.", books.admitted);
  writer.Single("sluice_gateway_denied_total", "counter", "Of these, denied.", books.denied);
  writer.Family("sluice_gateway_ended_total", "counter",
                "Admitted requests that have ended: forwarded whole; failed by the upstream; "
                "aborted by the client or by our shutdown.");
  writer.Sample({{"result", "forwarded"}}, books.Ended(gateway::RequestEnd::kForwarded));
  writer.Sample({{"result", "failed"}}, books.Ended(gateway::RequestEnd::kFailed));
  writer.Sample({{"result", "aborted"}}, books.Ended(gateway::RequestEnd::kAborted));
  writer.Single("sluice_gateway_requests_in_flight", "gauge",
                "Admitted requests that have not ended.", books.in_flight());
  writer.Single("sluice_gateway_upstream_errors_total", "counter",
                "Requests that ended with 502, 503 or 504, or were broken off by the upstream.",
                counters.upstream_errors);
  writer.Single("sluice_gateway_retries_total", "counter",
                "Requests sent once more because a kept connection had died unused.",
                counters.retries);
  writer.Single("sluice_gateway_client_left_total", "counter",
                "Clients that left before their answer ended.", counters.client_left);
  writer.Family("sluice_gateway_tls_handshakes_total", "counter",
                "TLS handshakes with clients, by whether a ticket spared the most of it.");
  writer.Sample({{"resumed", "false"}}, counters.tls_full);
  writer.Sample({{"resumed", "true"}}, counters.tls_resumed);
  writer.Single("sluice_gateway_tls_failures_total", "counter",
                "TLS handshakes that clients began and that failed.", counters.tls_failures);
  writer.Single("sluice_gateway_connections", "gauge", "Connections of clients, open now.",
                counters.connections);
  writer.Single("sluice_gateway_connections_refused_total", "counter",
                "Connections closed at once: limits.connections_per_client.",
                counters.connections_refused);
  writer.Family("sluice_upstream_requests_total", "counter", "Requests that were sent to it.");
  for (const auto& upstream : counters.upstreams) {
    writer.Sample({{"upstream", upstream.name}}, upstream.requests);
  }
  writer.Family("sluice_upstream_failures_total", "counter",
                "No connection to it, no answer in time that can be read, or one that broke off.");
  for (const auto& upstream : counters.upstreams) {
    writer.Sample({{"upstream", upstream.name}}, upstream.failures);
  }
  writer.Family("sluice_upstream_failing", "gauge",
                "Threads that have left it out and not heard from it since; 0: all is well.");
  for (const auto& upstream : counters.upstreams) {
    if (upstream.in_force) writer.Sample({{"upstream", upstream.name}}, upstream.resting_in);
  }
  WriteCheckMetrics(counters, writer);
}

void WriteAccessLogMetrics(const LineWriter& lines, std::string& out) {
  PrometheusWriter writer(out);
  writer.Single("sluice_access_log_dropped_total", "counter",
                "Lines lost because the disk was too slow or full.", lines.dropped());
  writer.Single("sluice_access_log_failures_total", "counter",
                "Times that writing the access log, or opening it anew, began to fail.",
                lines.failures());
}

void WriteServerMetrics(const ReloadCounts& reloads, std::uint64_t generation, bool draining,
                        std::string_view node, std::string& out) {
  PrometheusWriter writer(out);
  writer.Family("sluice_reloads_total", "counter", "Reloads of the configuration, by their end.");
  writer.Sample({{"result", "succeeded"}}, reloads.succeeded);
  writer.Sample({{"result", "failed"}}, reloads.failed);
  writer.Single("sluice_rules_generation", "gauge", "The generation of the rules in force.",
                generation);
  writer.Single("sluice_draining", "gauge", "1 while the process is shutting down.",
                draining ? 1 : 0);
  writer.Family("sluice_build_info", "gauge", "Always 1; the labels tell the build.");
  writer.Sample({{"version", SLUICE_VERSION}, {"node", node}}, 1);
}

}  // namespace sluice
