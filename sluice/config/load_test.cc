// A file as a whole, and its rules.
#include "sluice/config/load.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>

#include "sluice/config/testing/load_text.h"

namespace sluice::config {
namespace {

using namespace std::chrono_literals;

// The one rule of a file, given by its fields.
Rule OneRule(const std::string& fields) {
  const Config config = Good(
      "attributes: [device]\nnode: { region: eu }\n"
      "identity: { api_key: { header: X-API-Key } }\n"
      "rules:\n  - { name: r, " +
      fields + " }\n");
  return config.rules && config.rules->rules().size() == 1 ? config.rules->rules()[0] : Rule{};
}

// What is wrong with one rule, without the places.
std::string RuleComplaints(const std::string& fields) {
  std::string all = Complaints(
      "identity: { api_key: { header: X-API-Key } }\n"
      "rules:\n  - { name: r, " +
      fields + " }\n");
  std::string bare;
  for (std::size_t at = 0; at < all.size();) {
    const std::size_t end = all.find('\n', at);
    const std::string line = all.substr(at, end - at);
    bare += line.substr(line.starts_with("warning") ? 0 : line.find(' ') + 1) + "\n";
    at = end + 1;
  }
  return bare;
}

TEST(LoadTest, NothingButRulesIsNeeded) {
  const Config config = Good("rules: []\n");
  EXPECT_FALSE(config.gateway.has_value());
  EXPECT_FALSE(config.admin.has_value());
  ASSERT_NE(config.rules, nullptr);
  EXPECT_TRUE(config.rules->rules().empty());
  EXPECT_EQ(config.rules->options().ipv6_prefix, 64);
  EXPECT_NE(Good("admin: { listen: 127.0.0.1:9464 }\n").rules, nullptr);
}

TEST(LoadTest, ReadsARuleWithAllItsFields) {
  const Rule rule = OneRule(R"(
    match: { method: [GET, POST], path: [/v1/**, /v2], host: ["*.Example.com", api.example.com],
             header: { X-Tier: [gold, silver], X-Debug: "*" }, ip: [10.0.0.0/8, "2001:db8::/32"] },
    exempt: [{ path: /v1/health }, { ip: 127.0.0.1 }],
    key: [api_key, route, header.X-Org, cookie.sid, query.user, method, host, region, device],
    on_missing_key: ip, limit: 100/min, burst: 20, cost: { header: X-Cost, max: 10 },
    charge_denied: true, mode: shadow, hide: true, message: "slow down",
    retry_jitter: 1m30s, block_for: 15m)");
  EXPECT_EQ(rule.match.methods, (std::vector<std::string>{"GET", "POST"}));
  ASSERT_EQ(rule.match.paths.size(), 2u);
  EXPECT_EQ(rule.match.paths[0].text(), "/v1/**");
  EXPECT_EQ(rule.match.hosts, (std::vector<std::string>{"*.example.com", "api.example.com"}));
  ASSERT_EQ(rule.match.headers.size(), 2u);
  EXPECT_EQ(rule.match.headers[0].values, (std::vector<std::string>{"gold", "silver"}));
  EXPECT_TRUE(rule.match.headers[1].values.empty());
  EXPECT_EQ(rule.match.clients.size(), 2u);
  ASSERT_EQ(rule.exempt.size(), 2u);
  EXPECT_EQ(rule.exempt[0].paths[0].text(), "/v1/health");
  ASSERT_EQ(rule.key.size(), 9u);
  EXPECT_EQ(rule.key[0], (Source{SourceKind::kHeader, "X-API-Key", "api_key"}));
  EXPECT_EQ(rule.key[1], (Source{SourceKind::kRoute, "", "route"}));
  EXPECT_EQ(rule.key[2], (Source{SourceKind::kHeader, "X-Org", "header.X-Org"}));
  EXPECT_EQ(rule.key[3], (Source{SourceKind::kCookie, "sid", "cookie.sid"}));
  EXPECT_EQ(rule.key[4], (Source{SourceKind::kQuery, "user", "query.user"}));
  EXPECT_EQ(rule.key[7], (Source{SourceKind::kRegion, "", "region"}));
  EXPECT_EQ(rule.key[8], (Source{SourceKind::kAttribute, "device", "device"}));
  EXPECT_EQ(rule.on_missing_key, OnMissingKey::kFallback);
  EXPECT_EQ(rule.fallback.kind, SourceKind::kIp);
  EXPECT_EQ(rule.cost.header->name, "X-Cost");
  EXPECT_EQ(rule.cost.max, 10u);
  EXPECT_TRUE(rule.charge_denied);
  EXPECT_EQ(rule.mode, RuleMode::kShadow);
  EXPECT_TRUE(rule.hide);
  EXPECT_EQ(rule.message, "slow down");
  EXPECT_EQ(rule.retry_jitter, 90s);
  EXPECT_EQ(rule.block_for, 15min);
  ASSERT_EQ(rule.limits.size(), 1u);
  EXPECT_EQ(rule.limits[0].limit, Limit(*token_bucket::MakeLimit({100, 1min}, 20)));
}

TEST(LoadTest, DefaultsAreAsTheyAreDocumented) {
  const Rule rule = OneRule("key: ip, limit: 100/min");
  EXPECT_TRUE(rule.match.empty());
  EXPECT_EQ(rule.on_missing_key, OnMissingKey::kDeny);
  EXPECT_EQ(rule.mode, RuleMode::kEnforce);
  EXPECT_FALSE(rule.charge_denied);
  EXPECT_FALSE(rule.hide);
  EXPECT_EQ(rule.cost.fixed, 1u);
  EXPECT_EQ(rule.limits[0].limit, Limit(*token_bucket::MakeLimit({100, 1min}, 100)));
  EXPECT_EQ(OneRule("key: ip, limit: 1/10s").limits[0].limit,
            Limit(*token_bucket::MakeLimit({1, 10s}, 1)));  // never a bucket too small for one
  EXPECT_TRUE(OneRule("deny: true, match: { path: /admin/** }").limits.empty());
}

TEST(LoadTest, ReadsEveryAlgorithm) {
  auto per_key = *fixed_window::MakeLimit(100, 60s);
  per_key.per_key_offset = true;
  const struct {
    const char* fields;
    Limit limit;
  } rows[] = {
      {"limit: 100/min", *token_bucket::MakeLimit({100, 60s}, 100)},
      {"algorithm: token-bucket, limit: 7/s, burst: 10k",
       *token_bucket::MakeLimit({7, 1s}, 10'000)},
      {"algorithm: leaky-bucket, limit: 10/s, queue: { requests: 5, wait: 1s }",
       *leaky_bucket::MakeLimit({10, 1s}, 5, 1s)},
      {"algorithm: leaky-bucket, limit: 10/s, queue: { requests: 0 }",
       *leaky_bucket::MakeLimit({10, 1s}, 0, 1s)},
      {"algorithm: leaky-bucket, limit: 10/s, queue: { wait: 2s }",
       *leaky_bucket::MakeLimit({10, 1s}, 1'000'000, 2s)},
      {"algorithm: fixed-window, limit: 100/min", *fixed_window::MakeLimit(100, 60s)},
      {"algorithm: fixed-window, limit: 100/min, align: first-hit",
       *fixed_window::MakeLimit(100, 60s, fixed_window::Align::kFirstHit)},
      {"algorithm: fixed-window, limit: 100/min, offset: 3s",
       *fixed_window::MakeLimit(100, 60s, fixed_window::Align::kClock, 3s)},
      {"algorithm: fixed-window, limit: 100/min, offset: per-key", per_key},
      {"algorithm: sliding-window-counter, limit: 5/day, offset: 1h",
       *sliding_window_counter::MakeLimit(5, 24h, 1h)},
      {"algorithm: sliding-window-log, limit: 5/min",
       *sliding_window_log::MakeLimit(5, 60s, false)},
      {"algorithm: sliding-window-log, limit: 5/min, cost: 2",
       *sliding_window_log::MakeLimit(5, 60s, true)},
      {"algorithm: sliding-window-log, limit: 5/min, cost: { header: X-Cost, max: 5 }",
       *sliding_window_log::MakeLimit(5, 60s, true)},
      {"algorithm: sliding-window-strict, limit: 5/min", *sliding_window_strict::MakeLimit(5, 60s)},
      {"algorithm: sliding-window-strict, limit: 5/min, sub_windows: 4",
       *sliding_window_strict::MakeLimit(5, 60s, 4)},
      {"algorithm: concurrency, limit: 2", *concurrency::MakeLimit(2, 0s)},
      {"algorithm: concurrency, limit: 2, slot_ttl: 30s", *concurrency::MakeLimit(2, 30s)},
      {"algorithm: calendar, limit: 1000/month",
       *calendar::MakeLimit(1000, calendar::Period::kMonth, "UTC")},
      {"algorithm: calendar, limit: 1000/day, time_zone: Europe/Berlin",
       *calendar::MakeLimit(1000, calendar::Period::kDay, "Europe/Berlin")},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.fields);
    const Rule rule = OneRule(std::string("key: ip, ") + row.fields);
    ASSERT_EQ(rule.limits.size(), 1u);
    EXPECT_EQ(rule.limits[0].limit, row.limit);
  }
}

TEST(LoadTest, RefusesWhatDoesNotFitTheAlgorithm) {
  const struct {
    const char* fields;
    const char* complaints;
  } rows[] = {
      {"algorithm: fixed-window, limit: 1/s, burst: 5",
       "`burst` means nothing to fixed-window = leave it out; token-bucket has it\n"},
      {"limit: 1/s, align: clock",
       "`align` means nothing to token-bucket = leave it out; fixed-window has it\n"},
      {"limit: 1/s, offset: 1s",
       "`offset` means nothing to token-bucket = leave it out; "
       "fixed-window or sliding-window-counter has it\n"},
      {"limit: 1/s, queue: {}",
       "`queue` means nothing to token-bucket = leave it out; leaky-bucket has it\n"},
      {"limit: 1/s, slot_ttl: 1s, sub_windows: 2, time_zone: UTC",
       "`slot_ttl` means nothing to token-bucket = leave it out; concurrency has it\n"
       "`sub_windows` means nothing to token-bucket = leave it out; sliding-window-strict has it\n"
       "`time_zone` means nothing to token-bucket = leave it out; calendar has it\n"},
      {"algorithm: concurrency, limit: 1, slot_ttl: 100ms",
       "`slot_ttl` must be at least 1s, got 100ms\n"},
      {"limit: 1000/month",
       "`limit` is for a month, and how long that is only a calendar knows = write `algorithm: "
       "calendar`, or a number of days such as `1000/30day`\n"},
      {"algorithm: calendar, limit: 10/min",
       "`limit` must be for one day, week, month or year, got `10/min` = for other periods leave "
       "`algorithm: calendar` out\n"},
      {"algorithm: calendar, limit: 10/2month",
       "`limit` must be for one day, week, month or year, got `10/2month` = for other periods "
       "leave `algorithm: calendar` out\n"},
      {"algorithm: calendar, limit: 10/day, time_zone: Berlin",
       "`time_zone` names no time zone, got `Berlin` = write a name of the tz database, such as "
       "UTC "
       "or Europe/Berlin\n"},
      {"algorithm: concurrency, limit: 2/s",
       "`limit` must be a number of slots, got `2/s` = concurrency counts what is in flight, not "
       "what comes in a period\n"},
      {"algorithm: leaky-bucket, limit: 2/s",
       "a leaky bucket needs `queue` = write how many may wait, and how long: `queue: { requests: "
       "10, wait: 1s }`\n"},
      {"algorithm: leaky-bucket, limit: 2/s, queue: {}",
       "`queue` must say how many may wait, or how long = write `requests`, `wait` or both\n"},
      {"algorithm: fixed-window, limit: 2/s, align: first-hit, offset: 1ms",
       "`offset` needs windows with edges, and with `align: first-hit` each opens by itself = "
       "leave "
       "one of the two out\n"},
      {"algorithm: bucket, limit: 2/s",
       "`algorithm` must be one of token-bucket, leaky-bucket, fixed-window, sliding-window-log, "
       "sliding-window-counter, sliding-window-strict, concurrency, calendar; got `bucket`\n"},
      {"deny: true, limit: 1/s",
       "`key` means nothing with `deny: true` = leave one of the two out\n"
       "`limit` means nothing with `deny: true` = leave one of the two out\n"},
  };
  for (const auto& row : rows) {
    EXPECT_EQ(RuleComplaints(std::string("key: ip, ") + row.fields), row.complaints) << row.fields;
  }
}

TEST(LoadTest, ALimitOfZeroIsRefusedWithWhatToWriteInstead) {
  for (const auto* fields : {"limit: 0/min", "algorithm: fixed-window, limit: 0/min",
                             "algorithm: concurrency, limit: 0"}) {
    EXPECT_EQ(RuleComplaints(std::string("key: ip, ") + fields),
              "`limit` must be at least 1, got 0 = a limit of 0 denies every request; to deny on "
              "purpose write `deny: true`\n");
  }
  EXPECT_EQ(RuleComplaints("key: ip, limit: 5/min, burst: 0"),
            "`burst` must be at least 1, got 0 = a burst of 0 denies every request; to deny on "
            "purpose write `deny: true`\n");
  EXPECT_EQ(RuleComplaints("key: ip, limit: 5/min, burst: -1"),
            "`burst` must be at least 1, got -1\n");
}

TEST(LoadTest, AHugeLimitIsTakenExactlyOrRefused) {
  const struct {
    const char* number;
    std::uint64_t bucket;  // the capacity; 0: refused
    std::uint64_t window;
  } rows[] = {
      {"3355443200", 3355443200, 3355443200},
      {"4294967296", 4294967296, 4294967296},
      {"2199023255552", 0, 2199023255552},  // more than a tick of a bucket can tell apart
      {"9223372036854775807", 0, INT64_MAX},
      {"18446744073709551615", 0, 0},
      {"1e30", 0, 0},
  };
  const auto capacity = [](const std::string& fields) -> std::uint64_t {
    const auto result = LoadText("f", "rules: [{ name: r, key: ip, " + fields + " }]\n", "", 1);
    return result.config ? CapacityOf(result.config->rules->rules()[0].limits[0].limit) : 0;
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.number);
    const std::string limit = std::string("limit: ") + row.number + "/s";
    EXPECT_EQ(capacity(limit), row.bucket);
    EXPECT_EQ(capacity("algorithm: fixed-window, " + limit), row.window);
  }
}

TEST(LoadTest, WhatTheAlgorithmRefusesStandsAtTheNumbers) {
  const std::string complaints = Complaints(
      "rules:\n"
      "  - name: r\n"
      "    key: ip\n"
      "    limit: 1/36525day\n"
      "    burst: 1000\n"
      "  - name: log\n"
      "    key: ip\n"
      "    algorithm: sliding-window-log\n"
      "    limit: 1000000000/s\n"
      "  - name: offset\n"
      "    key: ip\n"
      "    algorithm: fixed-window\n"
      "    limit: 5/s\n"
      "    offset: 2s\n");
  EXPECT_NE(complaints.find("5:12 `burst` is too long to pay back: 1000 units"), std::string::npos);
  EXPECT_NE(complaints.find("\n9:12 `limit` exceeds log capacity"), std::string::npos);
  EXPECT_NE(complaints.find("\n14:13 `offset` "), std::string::npos) << complaints;
}

TEST(LoadTest, EveryComplaintComesAtOnceAtItsPlace) {
  EXPECT_EQ(Complaints(R"(identity:
  api_key: { heder: X-API-Key }
rules:
  - name: api
    match: { path: v1, methd: GET }
    key: apikey
    limit: 100/minuts
  - nam: x
    key: [ip, ip]
    limit: 5/min
    lease: often
)"),
            "2:12 `api_key` must have exactly one of header, cookie and query\n"
            "2:14 unknown field `heder`; did you mean `header`?\n"
            "5:20 `path` `v1` does not begin with `/`\n"
            "5:24 unknown field `methd`; did you mean `method`?\n"
            "6:10 unknown identity `apikey`; did you mean `api_key`?\n"
            "7:12 `limit` has an unknown period `minuts` = did you mean `minute`?\n"
            "8:5 a rule needs `name`\n"
            "8:5 unknown field `nam`; did you mean `name`?\n"
            "9:15 `key` has `ip` twice\n"
            "11:12 `lease` must be one of off, auto; got `often`\n");
}

TEST(LoadTest, TwoRulesOfOneNameAreRefusedWithBothPlaces) {
  EXPECT_EQ(
      Complaints("rules:\n"
                 "  - { name: a, key: ip, limit: 15/h }\n"
                 "  - { name: a, key: ip, limit: 300/h }\n"),
      "3:13 `name` `a` is already the name of the rule in line 2 = counters are kept by name; "
      "give each rule its own\n");
  // Two rules about the same key are no mistake: each counts for itself.
  EXPECT_EQ(Good("rules:\n"
                 "  - { name: a, key: ip, limit: 15/h }\n"
                 "  - { name: b, key: ip, limit: 300/h }\n")
                .rules->rules()
                .size(),
            2u);
}

TEST(LoadTest, SaysWhatIsWrongWithAKey) {
  const struct {
    const char* fields;
    const char* complaints;
  } rows[] = {
      {"limit: 1/s",
       "a rule needs `key` = write who is counted: `key: ip`, or `key: global` for "
       "everybody together\n"},
      {"limit: 1/s, key: [global, ip]",
       "`key` has `global` beside others = `global` counts everybody together; leave it out\n"},
      {"limit: 1/s, key: []", "`key` must not be an empty list\n"},
      {"limit: 1/s, key: tenant",
       "unknown identity `tenant` = declare it under `identity`, or in `attributes` when a door "
       "passes it on\n"},
      {"limit: 1/s, key: region",
       "`key` has `region`, but this node has none = write `node: { region: ... }`\n"},
      {"limit: 1/s, key: header.", "`key` has `header.`, which names no header\n"},
      {"limit: 1/s, key: \"header.X Y\"", "`key` has `header.X Y`, which names no header\n"},
      {"limit: 1/s, key: jwt.sub",
       "unknown kind of key `jwt` = with a dot there are header.X, cookie.x and query.x\n"},
      {"limit: 1/s, key: ip, on_missing_key: allow",
       "unknown identity `allow` = declare it under `identity`, or in `attributes` when a door "
       "passes it on\n"},
  };
  for (const auto& row : rows) {
    EXPECT_EQ(RuleComplaints(row.fields), row.complaints) << row.fields;
  }
  EXPECT_EQ(OneRule("limit: 1/s, key: api_key, on_missing_key: skip").on_missing_key,
            OnMissingKey::kSkip);
  EXPECT_EQ(OneRule("limit: 1/s, key: api_key, on_missing_key: deny").on_missing_key,
            OnMissingKey::kDeny);
}

TEST(LoadTest, SaysWhatIsWrongWithAMatch) {
  const struct {
    const char* match;
    const char* complaints;
  } rows[] = {
      {"match: {}", "`match` must not be empty = leave it out to meet every request\n"},
      {"exempt: [{}]", "`exempt` must not be empty = say which requests are exempt\n"},
      {"exempt: {}", "`exempt` must not be empty = say which requests are exempt\n"},
      {"match: { method: get }",
       "`method` has `get`; methods are compared as written = write `GET`\n"},
      {"match: { method: \"G T\" }", "`method` has `G T`, which is no method\n"},
      {"match: { host: \"a:80\" }",
       "`host` has `a:80` with a port; ports are not compared = write `a`\n"},
      {"match: { host: \"a.*\" }",
       "`host` has `a.*`, which is no host = write `api.example.com`, or "
       "`*.example.com` for all below it\n"},
      {"match: { header: [a, b] }",
       "`header` must be a name, or a map of names and values, got a list = write `header: { "
       "X-Tier: [gold, silver] }`\n"},
      {"match: { header: { \"X Y\": a } }", "`header` has `X Y`, which is no name of a header\n"},
      {"match: { header: { X: } }", "`header` `X` has no value = write `\"*\"` for any value\n"},
      {"match: { ip: 10.0.0.1/8 }",
       "`ip` `10.0.0.1/8` sets bits after its length; write `10.0.0.0/8`\n"},
      {"match: { ignore_case: true }", "`ignore_case` is about the path, and there is none\n"},
      {"match: [x]", "`match` must be a map of fields, got a list\n"},
  };
  for (const auto& row : rows) {
    EXPECT_EQ(RuleComplaints(std::string("key: ip, limit: 1/s, ") + row.match), row.complaints)
        << row.match;
  }
}

TEST(LoadTest, ACostThatCanNeverBeMetIsRefused) {
  EXPECT_EQ(RuleComplaints("key: ip, limit: 3/min, cost: 5"),
            "`cost` is 5, and the limit never holds more than 3: no request could pass = lower the "
            "cost, or raise the limit or its burst\n");
  EXPECT_EQ(RuleComplaints("key: ip, limit: 3/min, burst: 5, cost: 5"), "");
  EXPECT_EQ(RuleComplaints("key: ip, limit: 3/min, cost: 0"), "`cost` must be at least 1, got 0\n");
  EXPECT_EQ(RuleComplaints("key: ip, limit: 3/min, cost: -1"),
            "`cost` must be at least 1, got -1\n");
  EXPECT_EQ(RuleComplaints("key: ip, limit: 3/min, cost: { header: X-Cost }"),
            "`cost` needs `max` = so that no client can ask for more than you expect\n");
}

TEST(LoadTest, AJitterIsALengthOfTimeAndStandsOnARuleThatCounts) {
  EXPECT_EQ(OneRule("key: ip, limit: 1/s").retry_jitter, 0s);
  EXPECT_EQ(OneRule("key: ip, limit: 1/s, retry_jitter: 250ms").retry_jitter, 250ms);
  EXPECT_EQ(Complaints("rules:\n"
                       "  - { name: a, key: ip, limit: 1/s, retry_jitter: 5 }\n"
                       "  - { name: b, key: ip, limit: 1/s, retry_jitter: 0 }\n"
                       "  - { name: c, key: ip, limit: 1/s, retry_jitter: 25h }\n"
                       "  - { name: d, deny: true, retry_jitter: 1s }\n"),
            "2:51 `retry_jitter` must have a unit, got `5` = write for example `5s` or `5ms`\n"
            "3:51 `retry_jitter` must be at least 1ms, got 0\n"
            "4:51 `retry_jitter` must be at most 1d, got 25h\n"
            "5:28 `retry_jitter` means nothing with `deny: true` = leave one of the two out\n");
}

TEST(LoadTest, NamesArePrintableAscii) {
  EXPECT_NE(Complaints("rules: [{ name: \"\\u00fc\", key: ip, limit: 1/s }]\n")
                .find("`name` must be printable ASCII"),
            std::string::npos);
  EXPECT_NE(Complaints("rules: [{ name: \"a\\nb\", key: ip, limit: 1/s }]\n")
                .find("`name` must be printable ASCII, got `a\\nb`"),
            std::string::npos);
  EXPECT_EQ(Complaints("rules: [{ name: \"a \\\"b\\\" c\", key: ip, limit: 1/s }]\n"), "");
}

TEST(LoadTest, WarnsAboutWhatIsLegalButSurelyNotMeant) {
  EXPECT_EQ(Complaints("gateway: { listen: a:1, upstream: http://b }\n"
                       "attributes: [device]\n"
                       "identity: { ip: { trusted_proxies: [0.0.0.0/0] } }\n"
                       "rules:\n"
                       "  - { name: a, key: device, limit: 1/s }\n"),
            "warning 3:37 `0.0.0.0/0` trusts everybody = whoever is trusted may say that it speaks "
            "for any address; name the ranges of your proxies\n"
            "warning 5:21 the gateway passes no attributes: `device` is always missing there\n");
}

TEST(LoadTest, PlansInARuleNeedAPlanFile) {
  EXPECT_EQ(Complaints("rules:\n  - name: a\n    key: ip\n    limit: 1/s\n"
                       "    plans: { pro: { limit: 2/s, brst: 5 } }\n"),
            "5:12 `plans` says what each plan may, but nothing says who has which plan = write "
            "`plans: { file: plans.csv, key: api_key }` at the top of the file\n"
            "5:33 unknown field `brst`; did you mean `burst`?\n");
}

}  // namespace
}  // namespace sluice::config
