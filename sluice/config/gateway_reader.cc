#include "sluice/config/gateway_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "sluice/base/ascii.h"
#include "sluice/config/access_log.h"
#include "sluice/config/cors.h"
#include "sluice/config/endpoint_reader.h"
#include "sluice/config/settings_reader.h"
#include "sluice/config/tls_reader.h"
#include "sluice/config/upgrades.h"

namespace sluice::config {
namespace {

using namespace std::chrono_literals;

constexpr Duration kLongest = 24h;  // of a timeout

// `http://HOST[:PORT]` or `https://...`, with nothing after it: requests keep their own path.
void ReadUpstreamUrl(const Value& url, UpstreamSettings& upstream) {
  const auto text = url.Text();
  if (!text) return;
  constexpr std::string_view kHttp = "http://";
  constexpr std::string_view kHttps = "https://";
  upstream.https = text->starts_with(kHttps);
  if (!upstream.https && !text->starts_with(kHttp)) {
    url.Complain(fmt::format("must be a URL, got {}", Quoted(*text)),
                 "write for example `http://127.0.0.1:9000`");
    return;
  }
  std::string_view rest = text->substr((upstream.https ? kHttps : kHttp).size());
  if (rest.ends_with('/')) rest.remove_suffix(1);
  if (rest.find_first_of("/?#") != rest.npos) {
    url.Complain(fmt::format("must end after the port, got {}", Quoted(*text)),
                 "requests keep their own path");
    return;
  }
  const auto parsed = ParseEndpoint(rest, upstream.https ? 443 : 80);
  if (parsed && parsed->port != 0) {
    upstream.address = *parsed;
  } else if (PortIsTooLarge(rest) || (parsed && parsed->port == 0)) {
    url.Complain(fmt::format("must have a port from 1 to 65535, got {}", Quoted(*text)));
  } else {
    url.Complain(fmt::format("must name a host, got {}", Quoted(*text)),
                 "write for example `http://127.0.0.1:9000`");
  }
}

// A URL, or `{ url, weight }`.
UpstreamSettings ReadUpstream(const Value& item) {
  UpstreamSettings upstream;
  if (item.node().kind != NodeKind::kMap) {
    ReadUpstreamUrl(item, upstream);
    return upstream;
  }
  Fields fields(item.node(), "`upstream`", item.diagnostics());
  if (const auto url =
          fields.Require("url", "write where requests go: `url: http://10.0.0.1:9000`")) {
    ReadUpstreamUrl(*url, upstream);
  }
  if (const auto weight = fields.Take("weight")) {
    upstream.weight = static_cast<std::uint32_t>(weight->Integer(1, 1000).value_or(1));
  }
  fields.Finish();
  return upstream;
}

void ReadUpstreams(Fields& fields, GatewaySettings& gateway) {
  const auto upstream =
      fields.Require("upstream", "write where requests go: `upstream: http://127.0.0.1:9000`");
  if (!upstream) return;
  for (const Value& item : upstream->Items()) {
    const UpstreamSettings one = ReadUpstream(item);
    for (const UpstreamSettings& other : gateway.upstreams) {
      if (other.address.port != one.address.port || one.address.port == 0) continue;
      if (!EqualsIgnoringCase(other.address.host, one.address.host)) continue;
      item.Complain("names an upstream that stands before it", "give that one a `weight` instead");
    }
    gateway.upstreams.push_back(one);
  }
  if (gateway.upstreams.size() > kMaxUpstreams) {
    upstream->Complain(
        fmt::format("has {} upstreams; {} are the most", gateway.upstreams.size(), kMaxUpstreams));
  }
}

void ReadHealthPath(const Value& value, std::string& path) {
  const auto text = value.Text();
  if (!text) return;
  if (!text->starts_with('/') || text->find_first_of("?#% \t*") != text->npos) {
    value.Complain(fmt::format("must be one path, got {}", Quoted(*text)),
                   "write for example `/.sluice/health`");
    return;
  }
  path = *text;
}

// What a check asks for; unlike the gateway's own path it may have a query.
void ReadCheckedPath(const Value& value, std::string& path) {
  const auto text = value.Text();
  if (!text) return;
  const bool printable =
      std::all_of(text->begin(), text->end(), [](char c) { return c > ' ' && c <= '~'; });
  if (!text->starts_with('/') || !printable || text->find('#') != text->npos) {
    value.Complain(fmt::format("must be a path, got {}", Quoted(*text)),
                   "write for example `/healthz`");
    return;
  }
  path = *text;
}

// `200`, or `200-399`.
void ReadStatusRange(const Value& value, HealthCheckSettings& check) {
  const auto text = value.Text();
  if (!text) return;
  const auto number = [](std::string_view digits) {
    int status = 0;
    const auto [stop, error] =
        std::from_chars(digits.data(), digits.data() + digits.size(), status);
    const bool whole = error == std::errc() && stop == digits.data() + digits.size();
    return whole && digits.size() == 3 && status >= 200 && status <= 599 ? status : 0;
  };
  const std::size_t dash = text->find('-');
  const int min = number(text->substr(0, dash));
  const int max = dash == text->npos ? min : number(text->substr(dash + 1));
  if (min == 0 || max < min) {
    value.Complain(
        fmt::format("must be a status from 200 to 599, or a range of them, got {}", Quoted(*text)),
        "write for example `200-399`");
    return;
  }
  check.min_status = min;
  check.max_status = max;
}

void ReadHealthCheck(const Value& value, HealthCheckSettings& check) {
  Fields fields(value.node(), "`health_check`", value.diagnostics());
  if (const auto path =
          fields.Require("path", "write what upstreams are asked for: `path: /healthz`")) {
    ReadCheckedPath(*path, check.path);
  }
  if (const auto every = fields.Take("every")) {
    check.every = every->Length(100ms, kLongest).value_or(check.every);
  }
  if (const auto timeout = fields.Take("timeout")) {
    check.timeout = timeout->Length(10ms, 1min).value_or(check.timeout);
  }
  if (const auto failures = fields.Take("failures")) {
    check.failures = static_cast<int>(failures->Integer(1, 1000).value_or(check.failures));
  }
  if (const auto successes = fields.Take("successes")) {
    check.successes = static_cast<int>(successes->Integer(1, 1000).value_or(check.successes));
  }
  if (const auto status = fields.Take("status")) ReadStatusRange(*status, check);
  fields.Finish();
}

void ReadUpstreamHealth(const Value& value, UpstreamHealthSettings& health) {
  Fields fields(value.node(), "`upstream_health`", value.diagnostics());
  if (const auto failures = fields.Take("failures")) {
    health.failures = static_cast<int>(failures->Integer(1, 1000).value_or(health.failures));
  }
  if (const auto rest = fields.Take("rest")) {
    health.rest = rest->Length(1ms, kLongest).value_or(health.rest);
  }
  fields.Finish();
}

void ReadTimeout(Fields& fields, std::string_view name, Duration min, Duration& timeout) {
  if (const auto value = fields.Take(name)) {
    timeout = value->Length(min, kLongest).value_or(timeout);
  }
}

void ReadTlsOfBothSides(Fields& fields, const std::string& base_dir, GatewaySettings& gateway) {
  if (const auto tls = fields.Take("tls")) gateway.tls = ReadTls(*tls, base_dir);
  const auto upstream_tls = fields.Take("upstream_tls");
  if (!upstream_tls) return;
  gateway.upstream_tls = ReadClientTls(*upstream_tls, base_dir);
  const auto https = [](const UpstreamSettings& upstream) { return upstream.https; };
  if (std::ranges::none_of(gateway.upstreams, https)) {
    upstream_tls->Complain("means nothing without an `https://` upstream");
  }
}

}  // namespace

void ReadGateway(const Value& value, const std::string& base_dir, Config& config) {
  GatewaySettings gateway;
  Fields fields(value.node(), "`gateway`", value.diagnostics());
  ReadListen(fields, gateway.listen);
  ReadUpstreams(fields, gateway);
  ReadTlsOfBothSides(fields, base_dir, gateway);
  if (const auto path = fields.Take("health_path")) ReadHealthPath(*path, gateway.health_path);
  if (const auto health = fields.Take("upstream_health")) {
    ReadUpstreamHealth(*health, gateway.upstream_health);
  }
  if (const auto check = fields.Take("health_check")) {
    ReadHealthCheck(*check, gateway.health_check);
  }
  ReadTimeout(fields, "resolve_every", 1s, gateway.resolve_every);
  ReadTimeout(fields, "connect_timeout", 1ms, gateway.connect_timeout);
  ReadTimeout(fields, "response_timeout", 1ms, gateway.response_timeout);
  ReadTimeout(fields, "idle_timeout", 1ms, gateway.idle_timeout);
  ReadTimeout(fields, "header_timeout", 1ms, gateway.header_timeout);
  ReadTimeout(fields, "body_timeout", 1ms, gateway.body_timeout);
  ReadTimeout(fields, "write_timeout", 1ms, gateway.write_timeout);
  ReadTimeout(fields, "upstream_idle_timeout", 1ms, gateway.upstream_idle_timeout);
  ReadTimeout(fields, "tunnel_idle_timeout", 1ms, gateway.tunnel_idle_timeout);
  ReadTimeout(fields, "drain", 0ms, gateway.drain);
  ReadTimeout(fields, "drain_delay", 0ms, gateway.drain_delay);
  if (const auto upgrades = fields.Take("upgrades")) gateway.upgrades = ReadUpgrades(*upgrades);
  if (const auto cors = fields.Take("cors")) gateway.cors = ReadCors(*cors);
  if (const auto log = fields.Take("access_log")) {
    gateway.access_log = ReadAccessLog(*log, base_dir);
  }
  fields.Elsewhere(kBoundNames, "limits");
  fields.Finish();
  config.gateway = std::move(gateway);
}

}  // namespace sluice::config
