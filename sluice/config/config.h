// The whole configuration, typed: what a file says, after all complaints were made.
//
// Every number is within its range and every default is filled in; nothing below asks again.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sluice/base/log.h"
#include "sluice/base/time.h"
#include "sluice/config/redis_url.h"
#include "sluice/rule/rule_set.h"

namespace sluice::config {

// HOST:PORT as written; an IPv6 host without its brackets.
struct Endpoint {
  std::string host;
  std::uint16_t port = 0;
  friend bool operator==(const Endpoint&, const Endpoint&) = default;
};

// `cors: { ... }` of the gateway.
struct CorsSettings {
  std::vector<std::string> origins;  // as browsers write them, or `*` alone; empty: no `cors`
  bool exempt_preflight = false;
  bool credentials = false;  // never with `*`
  friend bool operator==(const CorsSettings&, const CorsSettings&) = default;
};

// PEM files: a certificate, with those that signed it behind it, and its key.
struct CertificateSettings {
  std::string certificate;
  std::string key;
  friend bool operator==(const CertificateSettings&, const CertificateSettings&) = default;
};

enum class TlsVersion : std::uint8_t { k12, k13 };
inline constexpr std::size_t kMaxCertificates = 256;

// `tls`: how the gateway shows itself to clients.
struct TlsSettings {
  std::vector<CertificateSettings> certificates;  // 1 to kMaxCertificates; the first is the default
  TlsVersion min_version = TlsVersion::k12;
  friend bool operator==(const TlsSettings&, const TlsSettings&) = default;
};

// `upstream_tls`: how it speaks to `https` upstreams. `tls` of the shared store, too.
struct UpstreamTlsSettings {
  std::string ca;           // PEM; empty: the system's authorities
  std::string server_name;  // empty: the host of each upstream, or of the store
  bool verify = true;
  std::optional<CertificateSettings> own;  // shown to upstreams that ask for one
  friend bool operator==(const UpstreamTlsSettings&, const UpstreamTlsSettings&) = default;
};

inline constexpr std::size_t kMaxUpstreams = 64;

// One of `gateway.upstream`: `http://HOST[:PORT]` or `https://HOST[:PORT]`.
struct UpstreamSettings {
  Endpoint address;
  bool https = false;
  std::uint32_t weight = 1;
  friend bool operator==(const UpstreamSettings&, const UpstreamSettings&) = default;
};

// `upstream_health`: when an upstream is left out, and for how long.
struct UpstreamHealthSettings {
  int failures = 3;  // in a row
  Duration rest = std::chrono::seconds{10};
  friend bool operator==(const UpstreamHealthSettings&, const UpstreamHealthSettings&) = default;
};

// `health_check`: active checks of the upstreams.
struct HealthCheckSettings {
  std::string path;  // empty: no checks
  Duration every = std::chrono::seconds{5};
  Duration timeout = std::chrono::seconds{1};
  int failures = 2;   // in a row, and it is down
  int successes = 1;  // in a row, and it is up again
  int min_status = 200;
  int max_status = 399;
  friend bool operator==(const HealthCheckSettings&, const HealthCheckSettings&) = default;
};

enum class AccessForm : std::uint8_t { kCombined, kJson };

// `access_log: { ... }` of the gateway.
struct AccessLogSettings {
  bool on = false;
  std::string file;  // path, relative to the file's folder; empty: standard output
  AccessForm form = AccessForm::kCombined;
  bool query = false;                    // paths with their query
  std::uint64_t buffer_bytes = 1 << 20;  // of lines that wait for the disk; for each thread
  friend bool operator==(const AccessLogSettings&, const AccessLogSettings&) = default;
};

struct GatewaySettings {
  Endpoint listen;
  std::optional<TlsSettings> tls;  // nothing: plain HTTP
  std::vector<UpstreamSettings> upstreams;
  UpstreamTlsSettings upstream_tls;
  UpstreamHealthSettings upstream_health;
  HealthCheckSettings health_check;
  Duration resolve_every = std::chrono::seconds{30};  // names of upstreams
  std::string health_path;                            // answered by the gateway itself; empty: none
  Duration connect_timeout = std::chrono::seconds{2};  // to the upstream; also for a free one
  Duration response_timeout =
      std::chrono::seconds{60};  // until the upstream's answer begins, and between its parts
  Duration idle_timeout =
      std::chrono::seconds{60};  // of a client's kept connection between requests
  Duration header_timeout =
      std::chrono::seconds{10};  // from a request's first byte to the end of its head
  Duration body_timeout =
      std::chrono::seconds{30};  // for a request's body to go on; to skip all of a refused one
  Duration write_timeout =
      std::chrono::seconds{60};  // for a client that reads nothing of its answer
  Duration upstream_idle_timeout =
      std::chrono::seconds{30};  // of a kept connection to the upstream
  Duration tunnel_idle_timeout =
      std::chrono::hours{1};  // of an upgraded connection through which nothing passes
  std::vector<std::string> upgrades = {"websocket"};  // protocols in lower case (upgrades.h)
  CorsSettings cors;
  AccessLogSettings access_log;
  Duration drain = std::chrono::seconds{10};  // at shutdown, for what is in flight
  Duration drain_delay{0};                    // before it: not ready, but serving
  friend bool operator==(const GatewaySettings&, const GatewaySettings&) = default;
};

struct AdminSettings {
  Endpoint listen;
  friend bool operator==(const AdminSettings&, const AdminSettings&) = default;
};

// `store: { memory: { ... } }`
struct MemorySettings {
  std::uint64_t max_keys = 1'000'000;
  std::string snapshot;  // path, relative to the file's folder; empty: none
  Duration snapshot_every = std::chrono::seconds{60};
  friend bool operator==(const MemorySettings&, const MemorySettings&) = default;
};

// `store: { redis: { sentinel: { ... } } }`: who is asked which server is the primary.
struct SentinelSettings {
  std::string master;           // what they call it
  std::vector<Endpoint> nodes;  // at least one, none twice
  std::string user;             // of their own, as is the password
  std::string password;
  friend bool operator==(const SentinelSettings&, const SentinelSettings&) = default;
};

// `store: { redis: { ... } }`: what all nodes count in together. Holds a password: show it nobody.
struct RedisSettings {
  RedisUrl url;  // with what `username`, `password_file` and `database` say; `tls` as below
  std::optional<SentinelSettings> sentinel;  // then `url` has neither host nor path
  // Some servers of a cluster, none twice, which know all others; empty: it is none. Then `url` has
  // neither host nor path, and database 0.
  std::vector<Endpoint> cluster;
  std::optional<UpstreamTlsSettings> tls;  // never with a Unix socket; nothing: without TLS
  std::string prefix = "sluice";           // of all keys; stands in them as it is
  bool hash_identities = false;            // keys tell nobody who is counted
  // For the hashes of identities (SipHash); nothing: a public one.
  std::optional<std::array<std::uint8_t, 16>> hash_key;
  Duration deadline = std::chrono::milliseconds{5};  // of one decision
  Duration connect_wait = std::chrono::seconds{2};   // doors open after it without the store
  friend bool operator==(const RedisSettings&, const RedisSettings&) = default;
};

// `limits: { ... }`: every bound by its name.
struct Bounds {
  std::uint64_t connections = 10'000;             // of clients, all loops together
  std::uint64_t connections_per_client = 5'000;   // of one; half of `connections` if not given
  std::uint64_t upstream_connections = 1'000;     // all loops together
  std::uint64_t idle_upstream_connections = 256;  // kept for later requests
  std::uint64_t header_bytes = 32 * 1024;         // of a request's or an answer's head
  std::uint64_t header_fields = 100;
  std::uint64_t body_bytes = 0;               // of a request's content; 0: no bound
  std::uint64_t outside_bytes = 64 << 20;     // states that do not fit a word (memory_store.h)
  std::uint64_t slots = 65'536;               // concurrency slots held at once
  std::uint64_t waiting_for_store = 8192;     // requests, for the shared one; all loops together
  std::uint64_t remembered_denials = 65'536;  // of the shared store; 0: none
  std::uint64_t leased_keys = 4096;           // that are watched and leased; all loops together
  friend bool operator==(const Bounds&, const Bounds&) = default;
};

struct LogSettings {
  log::Level level = log::Level::kInfo;
  log::Format format = log::Format::kText;
  friend bool operator==(const LogSettings&, const LogSettings&) = default;
};

// `headers: [...]`: the dialects of rate limit fields that answers carry. None at all: `none`.
// Never two that write one field in two ways.
struct HeaderSettings {
  bool draft_11 = true;
  bool draft_07 = false;
  bool draft_06 = false;
  bool envoy = false;
  bool x_delta = false;
  bool x_epoch = false;
  friend bool operator==(const HeaderSettings&, const HeaderSettings&) = default;
};

enum class BodyForm : std::uint8_t { kProblem, kJson };

inline constexpr std::int64_t kMaxNodes = 100'000;

struct Config {
  std::optional<GatewaySettings> gateway;
  std::optional<AdminSettings> admin;
  MemorySettings memory;               // of `scope: node`, and of rules while the store is away
  std::optional<RedisSettings> redis;  // nothing: all is counted in memory
  Bounds bounds;
  LogSettings log;
  HeaderSettings headers;
  BodyForm body = BodyForm::kProblem;  // of denials
  std::uint32_t threads = 0;           // 0: one for each core
  std::string node_name;               // `node: { name }`; empty: none
  std::int64_t node_count = 1;         // among so many each has its share of `scope: node`
  std::shared_ptr<const RuleSet> rules;
};

}  // namespace sluice::config
