#include "sluice/config/settings_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <string_view>
#include <vector>

#include "sluice/base/ascii.h"
#include "sluice/config/cors.h"
#include "sluice/config/upgrades.h"

namespace sluice::config {
namespace {

using namespace std::chrono_literals;

constexpr Duration kLongest = 24h;  // of a timeout

// Whether `text` ends in a port that is a number, but none that exists.
bool PortIsTooLarge(std::string_view text) {
  const std::string_view port = text.substr(text.rfind(':') + 1);
  std::uint16_t number = 0;
  const auto [stop, error] = std::from_chars(port.data(), port.data() + port.size(), number);
  return error == std::errc::result_out_of_range && stop == port.data() + port.size();
}

// HOST:PORT; `fallback_port` where there is none, or none is allowed without it.
std::optional<Endpoint> ParseEndpoint(std::string_view text,
                                      std::optional<std::uint16_t> fallback_port) {
  std::string_view host = text;
  std::string_view port;
  if (text.starts_with('[')) {
    const std::size_t end = text.find(']');
    if (end == text.npos || !IpAddress::Parse(text.substr(0, end + 1))) return std::nullopt;
    host = text.substr(1, end - 1);
    port = text.substr(end + 1);
  } else {
    host = text.substr(0, text.find(':'));
    port = text.substr(host.size());
  }
  const bool bad = host.empty() || host.find_first_of("/@?# \t[]") != host.npos;
  if (bad) return std::nullopt;
  if (port.empty()) {
    if (!fallback_port) return std::nullopt;
    return Endpoint{std::string(host), *fallback_port};
  }
  port.remove_prefix(1);
  Endpoint endpoint{.host = std::string(host)};
  const char* end = port.data() + port.size();
  const auto [stop, error] = std::from_chars(port.data(), end, endpoint.port);
  if (error != std::errc() || stop != end) return std::nullopt;
  return endpoint;
}

void ReadListen(Fields& fields, Endpoint& endpoint) {
  const auto listen = fields.Require("listen", "write for example `listen: 0.0.0.0:8080`");
  const auto text = listen ? listen->Text() : std::nullopt;
  if (!text) return;
  if (const auto parsed = ParseEndpoint(*text, std::nullopt)) {
    endpoint = *parsed;
  } else if (PortIsTooLarge(*text)) {
    listen->Complain(fmt::format("must have a port up to 65535, got {}", Quoted(*text)));
  } else {
    listen->Complain(fmt::format("must be HOST:PORT, got {}", Quoted(*text)),
                     "write for example `127.0.0.1:8080` or `\"[::]:8080\"`");
  }
}

// `http://HOST[:PORT]`, with nothing after it: requests keep their own path.
void ReadUpstreamUrl(const Value& url, Endpoint& endpoint) {
  const auto text = url.Text();
  if (!text) return;
  if (text->starts_with("https://")) {
    url.Complain("with `https` is known, but not in this version", "write an `http://` URL");
    return;
  }
  constexpr std::string_view kScheme = "http://";
  std::string_view rest = *text;
  if (!rest.starts_with(kScheme)) {
    url.Complain(fmt::format("must be a URL, got {}", Quoted(*text)),
                 "write for example `http://127.0.0.1:9000`");
    return;
  }
  rest.remove_prefix(kScheme.size());
  if (rest.ends_with('/')) rest.remove_suffix(1);
  if (rest.find_first_of("/?#") != rest.npos) {
    url.Complain(fmt::format("must end after the port, got {}", Quoted(*text)),
                 "requests keep their own path");
    return;
  }
  const auto parsed = ParseEndpoint(rest, 80);
  if (parsed && parsed->port != 0) {
    endpoint = *parsed;
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
    ReadUpstreamUrl(item, upstream.address);
    return upstream;
  }
  Fields fields(item.node(), "`upstream`", item.diagnostics());
  if (const auto url =
          fields.Require("url", "write where requests go: `url: http://10.0.0.1:9000`")) {
    ReadUpstreamUrl(*url, upstream.address);
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

void ReadGateway(const Value& value, Config& config) {
  GatewaySettings gateway;
  Fields fields(value.node(), "`gateway`", value.diagnostics());
  ReadListen(fields, gateway.listen);
  ReadUpstreams(fields, gateway);
  if (const auto path = fields.Take("health_path")) ReadHealthPath(*path, gateway.health_path);
  if (const auto health = fields.Take("upstream_health")) {
    ReadUpstreamHealth(*health, gateway.upstream_health);
  }
  ReadTimeout(fields, "connect_timeout", 1ms, gateway.connect_timeout);
  ReadTimeout(fields, "response_timeout", 1ms, gateway.response_timeout);
  ReadTimeout(fields, "idle_timeout", 1ms, gateway.idle_timeout);
  ReadTimeout(fields, "header_timeout", 1ms, gateway.header_timeout);
  ReadTimeout(fields, "body_timeout", 1ms, gateway.body_timeout);
  ReadTimeout(fields, "write_timeout", 1ms, gateway.write_timeout);
  ReadTimeout(fields, "upstream_idle_timeout", 1ms, gateway.upstream_idle_timeout);
  ReadTimeout(fields, "tunnel_idle_timeout", 1ms, gateway.tunnel_idle_timeout);
  ReadTimeout(fields, "drain", 0ms, gateway.drain);
  if (const auto upgrades = fields.Take("upgrades")) gateway.upgrades = ReadUpgrades(*upgrades);
  if (const auto cors = fields.Take("cors")) gateway.cors = ReadCors(*cors);
  fields.Later({"tls"});
  fields.Finish();
  config.gateway = std::move(gateway);
}

void ReadAdmin(const Value& value, Config& config) {
  AdminSettings admin;
  Fields fields(value.node(), "`admin`", value.diagnostics());
  ReadListen(fields, admin.listen);
  fields.Later({"tls", "token_file"});
  fields.Finish();
  config.admin = std::move(admin);
}

void ReadBound(Fields& fields, std::string_view name, std::int64_t min, std::int64_t max,
               std::uint64_t& bound) {
  if (const auto value = fields.Take(name)) {
    bound = static_cast<std::uint64_t>(
        value->Integer(min, max).value_or(static_cast<std::int64_t>(bound)));
  }
}

void ReadByteBound(Fields& fields, std::string_view name, std::int64_t min, std::int64_t max,
                   std::uint64_t& bound) {
  if (const auto value = fields.Take(name)) {
    bound = static_cast<std::uint64_t>(
        value->Bytes(min, max).value_or(static_cast<std::int64_t>(bound)));
  }
}

void ReadMemory(const Value& value, const std::string& base_dir, MemorySettings& memory) {
  Fields fields(value.node(), "`memory`", value.diagnostics());
  ReadBound(fields, "max_keys", 1, std::int64_t{1} << 30, memory.max_keys);
  if (const auto snapshot = fields.Take("snapshot")) {
    if (const auto path = snapshot->Text()) memory.snapshot = PathFrom(base_dir, *path);
  }
  if (const auto every = fields.Take("snapshot_every")) {
    memory.snapshot_every = every->Length(1s, kLongest).value_or(memory.snapshot_every);
    if (memory.snapshot.empty()) every->Complain("means nothing without `snapshot`");
  }
  fields.Finish();
}

void ReadStore(const Value& value, const std::string& base_dir, Config& config) {
  Fields fields(value.node(), "`store`", value.diagnostics());
  if (const auto memory = fields.Take("memory")) ReadMemory(*memory, base_dir, config.memory);
  fields.Later({"redis"});
  fields.Finish();
}

void ReadBounds(const Value& value, Bounds& bounds) {
  Fields fields(value.node(), "`limits`", value.diagnostics());
  ReadBound(fields, "connections", 1, 10'000'000, bounds.connections);
  ReadBound(fields, "upstream_connections", 1, 1'000'000, bounds.upstream_connections);
  ReadBound(fields, "idle_upstream_connections", 0, 1'000'000, bounds.idle_upstream_connections);
  ReadByteBound(fields, "header_bytes", 1024, 1 << 20, bounds.header_bytes);
  ReadBound(fields, "header_fields", 1, 10'000, bounds.header_fields);
  ReadByteBound(fields, "outside_bytes", 0, std::int64_t{1} << 38, bounds.outside_bytes);
  ReadBound(fields, "slots", 0, std::int64_t{1} << 26, bounds.slots);
  fields.Finish();
}

void ReadLog(const Value& value, LogSettings& log) {
  static constexpr std::array<Value::Word<log::Level>, 5> kLevels = {
      {{"debug", log::Level::kDebug},
       {"info", log::Level::kInfo},
       {"warning", log::Level::kWarning},
       {"error", log::Level::kError},
       {"off", log::Level::kOff}}};
  static constexpr std::array<Value::Word<log::Format>, 2> kFormats = {
      {{"human", log::Format::kText}, {"json", log::Format::kJson}}};
  Fields fields(value.node(), "`log`", value.diagnostics());
  if (const auto level = fields.Take("level")) {
    log.level = level->OneOf(kLevels).value_or(log.level);
  }
  if (const auto format = fields.Take("format")) {
    log.format = format->OneOf(kFormats).value_or(log.format);
  }
  fields.Finish();
}

// A word of `headers`. Those with one `field` write it in different ways.
struct Dialect {
  std::string_view word;
  bool HeaderSettings::*setting = nullptr;
  std::string_view field;
};
constexpr std::array<Dialect, 6> kDialects = {
    {{"draft-11", &HeaderSettings::draft_11, "RateLimit"},
     {"draft-07", &HeaderSettings::draft_07, "RateLimit"},
     {"draft-06", &HeaderSettings::draft_06, "RateLimit-Limit"},
     {"envoy", &HeaderSettings::envoy, "X-RateLimit-Limit"},
     {"x-delta", &HeaderSettings::x_delta, "X-RateLimit-Limit"},
     {"x-epoch", &HeaderSettings::x_epoch, "X-RateLimit-Limit"}}};

void ReadHeaders(const Value& value, HeaderSettings& headers) {
  static constexpr auto kWords = [] {
    std::array<Value::Word<const Dialect*>, kDialects.size() + 1> words{};
    for (std::size_t i = 0; i < kDialects.size(); ++i) {
      words[i] = {kDialects[i].word, &kDialects[i]};
    }
    words.back() = {"none", nullptr};
    return words;
  }();
  headers = {.draft_11 = false};
  bool none = false;
  std::vector<const Dialect*> chosen;
  for (const Value& item : value.Items()) {
    const auto word = item.OneOf(kWords);
    if (!word) continue;
    if (*word == nullptr) {
      none = true;
      continue;
    }
    const Dialect& dialect = **word;
    const auto rival = std::find_if(chosen.begin(), chosen.end(), [&](const Dialect* other) {
      return other->field == dialect.field;
    });
    if (rival == chosen.end()) {
      headers.*dialect.setting = true;
      chosen.push_back(&dialect);
    } else if (*rival == &dialect) {
      item.Complain(fmt::format("has {} twice", Quoted(dialect.word)));
    } else {
      item.Complain(fmt::format("has {} beside {}, and each writes `{}` in its own way",
                                Quoted(dialect.word), Quoted((*rival)->word), dialect.field),
                    "leave one of the two out");
    }
  }
  if (none && !chosen.empty()) {
    value.Complain("has `none` beside others", "leave one of the two out");
  }
}

}  // namespace

std::string PathFrom(const std::string& base_dir, std::string_view path) {
  return (std::filesystem::path(base_dir) / std::filesystem::path(path))
      .lexically_normal()
      .string();
}

void ReadSettings(Fields& root, const std::string& base_dir, Config& config) {
  if (const auto value = root.Take("gateway")) ReadGateway(*value, config);
  if (const auto value = root.Take("admin")) ReadAdmin(*value, config);
  if (const auto value = root.Take("store")) ReadStore(*value, base_dir, config);
  if (const auto value = root.Take("limits")) ReadBounds(*value, config.bounds);
  if (const auto value = root.Take("log")) ReadLog(*value, config.log);
  if (const auto value = root.Take("headers")) ReadHeaders(*value, config.headers);
  static constexpr std::array<Value::Word<BodyForm>, 2> kBodies = {
      {{"problem", BodyForm::kProblem}, {"json", BodyForm::kJson}}};
  if (const auto value = root.Take("body")) {
    config.body = value->OneOf(kBodies).value_or(config.body);
  }
  if (const auto value = root.Take("threads")) {
    config.threads = static_cast<std::uint32_t>(value->Integer(1, 1024).value_or(1));
  }
}

}  // namespace sluice::config
