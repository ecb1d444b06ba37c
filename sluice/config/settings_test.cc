// What a file says besides rules: doors, bounds, dialects, logs.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <string>

#include "sluice/config/settings_reader.h"
#include "sluice/config/testing/load_text.h"

namespace sluice::config {
namespace {

using namespace std::chrono_literals;

TEST(SettingsTest, ReadsHealthChecks) {
  const auto read = [](const std::string& check) {
    return LoadText("f",
                    "gateway: { listen: a:1, upstream: http://a, health_check: " + check + " }", "",
                    1)
        .config.value()
        .gateway->health_check;
  };
  EXPECT_EQ(read("{ path: /up }"), (HealthCheckSettings{.path = "/up"}));
  EXPECT_EQ(read("{ path: /up, status: 200-204 }").max_status, 204);
  EXPECT_EQ(read("{ path: \"/up?deep\", every: 2s, timeout: 300ms, failures: 4, successes: 3, "
                 "status: 204 }"),
            (HealthCheckSettings{.path = "/up?deep",
                                 .every = 2s,
                                 .timeout = 300ms,
                                 .failures = 4,
                                 .successes = 3,
                                 .min_status = 204,
                                 .max_status = 204}));
}

TEST(SettingsTest, ReadsTheBoundsOfTheSharedStore) {
  const Config config =
      LoadText("t.yaml",
               "limits: { waiting_for_store: 10, remembered_denials: 0, leased_keys: 8 }\n", ".", 1)
          .config.value();
  EXPECT_EQ(config.bounds,
            (Bounds{.waiting_for_store = 10, .remembered_denials = 0, .leased_keys = 8}));
  EXPECT_FALSE(LoadText("t.yaml", "limits: { waiting_for_store: 0 }\n", ".", 1).config);
}

TEST(SettingsTest, ReadsEverySetting) {
  const Config config = LoadText("f", R"(
gateway:
  listen: "[::]:8080"
  upstream: http://backend
  resolve_every: 9s
  connect_timeout: 1s
  response_timeout: 2m
  idle_timeout: 3s
  header_timeout: 4s
  body_timeout: 5s
  write_timeout: 6s
  upstream_idle_timeout: 7s
  tunnel_idle_timeout: 8h
  upgrades: [WebSocket, ssh]
  drain: 0
admin: { listen: 127.0.0.1:0 }
store:
  memory: { max_keys: 10M, snapshot: state/sluice.snapshot, snapshot_every: 5m }
limits:
  connections: 5
  upstream_connections: 6
  idle_upstream_connections: 4
  header_bytes: 8KiB
  header_fields: 7
  outside_bytes: 1GiB
  slots: 9
log: { level: warning, format: json }
headers: [none]
body: json
threads: 2
node: { name: n1, region: eu }
)",
                                 "/etc/sluice", 7)
                            .config.value();
  EXPECT_EQ(config.gateway, (GatewaySettings{.listen = {"::", 8080},
                                             .upstreams = {{.address = {"backend", 80}}},
                                             .resolve_every = 9s,
                                             .connect_timeout = 1s,
                                             .response_timeout = 2min,
                                             .idle_timeout = 3s,
                                             .header_timeout = 4s,
                                             .body_timeout = 5s,
                                             .write_timeout = 6s,
                                             .upstream_idle_timeout = 7s,
                                             .tunnel_idle_timeout = 8h,
                                             .upgrades = {"websocket", "ssh"},
                                             .drain = 0s}));
  EXPECT_EQ(config.admin->listen, (Endpoint{"127.0.0.1", 0}));
  EXPECT_EQ(config.memory, (MemorySettings{.max_keys = 10'000'000,
                                           .snapshot = "/etc/sluice/state/sluice.snapshot",
                                           .snapshot_every = 5min}));
  EXPECT_EQ(config.bounds, (Bounds{.connections = 5,
                                   .connections_per_client = 2,  // half of it
                                   .upstream_connections = 6,
                                   .idle_upstream_connections = 4,
                                   .header_bytes = 8192,
                                   .header_fields = 7,
                                   .outside_bytes = 1 << 30,
                                   .slots = 9}));
  EXPECT_EQ(config.log, (LogSettings{log::Level::kWarning, log::Format::kJson}));
  EXPECT_EQ(config.headers, HeaderSettings{.draft_11 = false});
  EXPECT_EQ(config.body, BodyForm::kJson);
  EXPECT_EQ(config.threads, 2u);
  EXPECT_EQ(config.node_name, "n1");
  EXPECT_EQ(config.rules->options().region, "eu");
  EXPECT_EQ(config.rules->generation(), 7u);
}

TEST(SettingsTest, AClientMayHaveHalfOfAllConnectionsUnlessToldOtherwise) {
  EXPECT_EQ(Good("rules: []\n").bounds.connections_per_client, 5'000U);
  EXPECT_EQ(Good("limits: { connections: 100 }\n").bounds.connections_per_client, 50U);
  EXPECT_EQ(Good("limits: { connections: 1 }\n").bounds.connections_per_client, 1U);
}

TEST(SettingsTest, ABodyHasNoBoundUnlessThereIsOne) {
  EXPECT_EQ(Good("rules: []\n").bounds.body_bytes, 0U);
  EXPECT_EQ(Good("limits: { body_bytes: 7MiB }\n").bounds.body_bytes, 7U << 20);
}

TEST(SettingsTest, TheDrainBeginsAtOnceUnlessToldOtherwise) {
  const std::string gateway = "gateway: { listen: a:1, upstream: http://a";
  EXPECT_EQ(Good(gateway + " }\n").gateway->drain_delay, 0s);
  EXPECT_EQ(Good(gateway + ", drain_delay: 4s }\n").gateway->drain_delay, 4s);
}

TEST(SettingsTest, AnAccessLogNeedsAFileAndRoomForALine) {
  const auto with = [](std::string_view log) {
    return fmt::format("gateway: {{ listen: a:1, upstream: http://a, access_log: {} }}\n", log);
  };
  EXPECT_EQ(Good("gateway: { listen: a:1, upstream: http://a }\n").gateway->access_log,
            AccessLogSettings{});
  EXPECT_EQ(
      Good(with("{ file: /log, format: json, query: true, buffer: 512KiB }")).gateway->access_log,
      (AccessLogSettings{.on = true,
                         .file = "/log",
                         .form = AccessForm::kJson,
                         .query = true,
                         .buffer_bytes = 512 << 10}));
  EXPECT_EQ(Good(with("{ file: stdout }")).gateway->access_log, AccessLogSettings{.on = true});
  EXPECT_NE(Complaints(with("{ format: json }")).find("needs `file`"), std::string::npos);
  EXPECT_NE(Complaints(with("{ file: a, buffer: 1KiB }")).find("`buffer`"), std::string::npos);
}

TEST(SettingsTest, ReadsEveryDialectOfHeaders) {
  EXPECT_EQ(Good("rules: []\n").headers, HeaderSettings{.draft_11 = true});
  EXPECT_EQ(Good("headers: draft-07\n").headers,
            (HeaderSettings{.draft_11 = false, .draft_07 = true}));
  EXPECT_EQ(Good("headers: [draft-11, draft-06, envoy]\n").headers,
            (HeaderSettings{.draft_06 = true, .envoy = true}));
  EXPECT_EQ(Good("headers: [x-delta, draft-07]\n").headers,
            (HeaderSettings{.draft_11 = false, .draft_07 = true, .x_delta = true}));
  EXPECT_EQ(Good("headers: x-epoch\n").headers,
            (HeaderSettings{.draft_11 = false, .x_epoch = true}));
}

TEST(SettingsTest, ReadsWhichOriginsMayReadAnswers) {
  const auto cors = [](const std::string& text) {
    return Good("gateway: { listen: a:1, upstream: http://a, cors: " + text + " }\n").gateway->cors;
  };
  EXPECT_EQ(cors("{ origins: \"*\" }"), CorsSettings{.origins = {"*"}});
  EXPECT_EQ(cors("{ origins: [https://a.example, \"http://[::1]:3000\"], preflight: exempt }"),
            (CorsSettings{.origins = {"https://a.example", "http://[::1]:3000"},
                          .exempt_preflight = true}));
  EXPECT_EQ(cors("{ origins: https://a.example, preflight: limit, credentials: true }"),
            (CorsSettings{.origins = {"https://a.example"}, .credentials = true}));
}

TEST(SettingsTest, SaysWhatIsWrongWithAnOrigin) {
  EXPECT_EQ(
      Complaints(R"(gateway:
  listen: a:1
  upstream: http://a
  cors:
    preflight: no
    origins:
    - "*"
    - https://a.example/
    - https://A.example
    - https://a.example:443
    - "https://*.example"
    - a.example
    - "null"
    - https://fine.example
)"),
      "5:16 `preflight` must be one of limit, exempt; got `no`\n"
      "7:7 `origins` has `*` beside others = `*` lists every origin; leave one of the two out\n"
      "8:7 `origins` must have SCHEME://HOST[:PORT] or `*`, got `https://a.example/`"
      " = write for example `https://app.example.com`, with nothing after it\n"
      "9:7 `origins` must be in lower case, got `https://A.example` = browsers send an origin so, "
      "and no other would ever match\n"
      "10:7 `origins` has the scheme's own port in `https://a.example:443` = leave it out, as "
      "browsers do\n"
      "11:7 `origins` must have SCHEME://HOST[:PORT] or `*`, got `https://*.example`"
      " = write for example `https://app.example.com`, with nothing after it\n"
      "12:7 `origins` must have SCHEME://HOST[:PORT] or `*`, got `a.example`"
      " = write for example `https://app.example.com`, with nothing after it\n"
      "13:7 `origins` must have SCHEME://HOST[:PORT] or `*`, got `null`"
      " = write for example `https://app.example.com`, with nothing after it\n");
  EXPECT_EQ(Complaints("gateway:\n  listen: a:1\n  upstream: http://a\n"
                       "  cors: { credentials: true, origins: \"*\" }\n"),
            "4:24 `credentials` can not go with `*`: browsers refuse such an answer = list the "
            "origins\n");
  EXPECT_EQ(
      Complaints("gateway: { listen: a:1, upstream: http://a, cors: { preflight: exempt } }"),
      "1:51 `cors` needs `origins` = write for example `origins: [\"https://app.example.com\"]`\n");
}

TEST(SettingsTest, SaysWhatIsWrongWithASetting) {
  EXPECT_EQ(Complaints(R"(gateway:
  listen: 8080
  upstream: https://backend
  idle_timeout: 0
  tls: {}
admin: { listen: "::1:9464", tls: {} }
store: { memory: { max_keys: 0, snapshot_every: 1s }, redis: {} }
limits: { header_bytes: 10, conections: 5 }
log: { level: verbose, format: text }
headers: [draft-11, none, draft-06, x-delta, x-epoch, draft-07, draft-11, github]
body: xml
threads: 0
rls: {}
apis: {}
)"),
            "2:11 `listen` must be HOST:PORT, got `8080` = write for example `127.0.0.1:8080` or "
            "`\"[::]:8080\"`\n"
            "4:17 `idle_timeout` must be at least 1ms, got 0\n"
            "5:8 `tls` needs `certificate` = write `certificate: fullchain.pem` and `key: "
            "privkey.pem`\n"
            "5:8 `tls` needs `key` = write `certificate: fullchain.pem` and `key: privkey.pem`\n"
            "6:18 `listen` must be HOST:PORT, got `::1:9464` = write for example `127.0.0.1:8080` "
            "or `\"[::]:8080\"`\n"
            "6:30 `tls` is known, but not in this version = leave it out\n"
            "7:30 `max_keys` must be at least 1, got 0\n"
            "7:49 `snapshot_every` means nothing without `snapshot`\n"
            "7:62 `redis` needs `url` = write for example `url: redis://127.0.0.1:6379`\n"
            "8:25 `header_bytes` must be at least 1024 bytes, got 10\n"
            "8:29 unknown field `conections`; did you mean `connections`?\n"
            "9:15 `level` must be one of debug, info, warning, error, off; got `verbose`\n"
            "9:32 `format` must be one of human, json; got `text`\n"
            "10:10 `headers` has `none` beside others = leave one of the two out\n"
            "10:46 `headers` has `x-epoch` beside `x-delta`, and each writes `X-RateLimit-Limit` "
            "in its own way = leave one of the two out\n"
            "10:55 `headers` has `draft-07` beside `draft-11`, and each writes `RateLimit` in its "
            "own way = leave one of the two out\n"
            "10:65 `headers` has `draft-11` twice\n"
            "10:75 `headers` must be one of draft-11, draft-07, draft-06, envoy, x-delta, x-epoch, "
            "none; got `github`\n"
            "11:7 `body` must be one of problem, json; got `xml`\n"
            "12:10 `threads` must be at least 1, got 0\n"
            "13:1 `rls` is known, but not in this version = leave it out\n"
            "14:1 unknown field `apis` = the file has node, attributes, identity, plans, gateway, "
            "admin, store, limits, log, headers, body, threads, rules\n");
}

TEST(SettingsTest, SaysWhichPortsThereAre) {
  EXPECT_EQ(Complaints("gateway: { listen: \"127.0.0.1:80811\", upstream: \"http://a:90000\" }\n"),
            "1:20 `listen` must have a port up to 65535, got `127.0.0.1:80811`\n"
            "1:49 `upstream` must have a port from 1 to 65535, got `http://a:90000`\n");
}

TEST(SettingsTest, ReadsUpgrades) {
  const auto with = [](std::string_view upgrades) {
    return fmt::format("gateway: {{ listen: a:1, upstream: http://a, upgrades: {} }}\n", upgrades);
  };
  using Names = std::vector<std::string>;
  EXPECT_EQ(Good("gateway: { listen: a:1, upstream: http://a }\n").gateway->upgrades,
            Names{"websocket"});
  EXPECT_EQ(Good(with("None")).gateway->upgrades, Names{});
  EXPECT_EQ(Good(with("[ssh, WebSocket]")).gateway->upgrades, (Names{"ssh", "websocket"}));
  EXPECT_EQ(Complaints(with("[websocket, H2C, ssh/2.0]")),
            "1:67 `upgrades` can not have `H2C` = requests inside of it would be seen by no rule\n"
            "1:72 `upgrades` must name a protocol without its version, got `ssh/2.0` = write for "
            "example `websocket`\n");
  EXPECT_EQ(
      Complaints(with("[any]")),
      "1:56 `upgrades` can not have `any` = requests inside of it would be seen by no rule\n");
  EXPECT_EQ(Complaints(with("[none, websocket]")),
            "1:55 `upgrades` has `none` beside others = leave one of the two out\n");
  EXPECT_EQ(Complaints(with("[a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p,q]")),
            "1:55 `upgrades` must have at most 16 protocols, got 17\n");
}

TEST(SettingsTest, AnUpstreamStandsOnceInTheList) {
  EXPECT_EQ(Complaints("gateway: { listen: a:1, upstream: [http://b, http://c, http://B:80/] }\n"),
            "1:56 `upstream` names an upstream that stands before it = give that one a `weight` "
            "instead\n");
}

TEST(SettingsTest, ReadsUpstreamsOfEveryForm) {
  const struct {
    std::string_view url;
    std::string_view host;  // empty: refused
    int port;
  } rows[] = {
      {"http://127.0.0.1:9000", "127.0.0.1", 9000},
      {"http://backend/", "backend", 80},
      {"http://[::1]:81", "::1", 81},
      {"http://[::1]", "::1", 80},
      {"backend:9000", "", 0},
      {"http://", "", 0},
      {"http://backend/v1", "", 0},
      {"http://user@backend", "", 0},
      {"http://backend:0", "", 0},
      {"http://backend:65536", "", 0},
      {"http://backend:", "", 0},
      {"http://[::1", "", 0},
      {"http://[::1]x", "", 0},
      {"ftp://backend", "", 0},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.url);
    const auto result = LoadText(
        "f", "gateway: { listen: a:1, upstream: \"" + std::string(row.url) + "\" }\n", "", 1);
    ASSERT_EQ(result.config.has_value(), !row.host.empty()) << result.diagnostics.Text();
    if (!result.config) continue;
    EXPECT_EQ(result.config->gateway->upstreams.at(0).address,
              (Endpoint{std::string(row.host), static_cast<std::uint16_t>(row.port)}));
  }
}

TEST(SettingsTest, ABoundOfTheGatewayStandsUnderLimits) {
  for (const std::string_view name : kBoundNames) {
    EXPECT_EQ(
        Complaints(fmt::format("gateway: {{ listen: a:1, upstream: http://a, {}: 1 }}", name)),
        fmt::format("1:45 unknown field `{0}` = `limits` has it: write `limits: {{ {0}: ... "
                    "}}` at the top of the file\n",
                    name));
  }
  EXPECT_EQ(
      Complaints("limits: { zzzzzz: 1 }"),
      fmt::format("1:11 unknown field `zzzzzz` = `limits` has {}\n", fmt::join(kBoundNames, ", ")));
}

TEST(SettingsTest, WarnsOfABoundForOneClientThatBoundsNothing) {
  EXPECT_EQ(Complaints("limits: { connections: 10, connections_per_client: 11 }"),
            "warning 1:52 `connections_per_client` has no effect: there are at most 10 connections "
            "= so one client can keep all others out; by default it has half of them\n");
  EXPECT_EQ(Complaints("limits: { connections: 10, connections_per_client: 10 }"), "");
}

}  // namespace
}  // namespace sluice::config
