// What `sluice check` and `sluice explain` print.

#include <gtest/gtest.h>
#include <stdlib.h>  // NOLINT: mkdtemp

#include <boost/json.hpp>
#include <filesystem>
#include <fstream>
#include <string>

#include "sluice/config/check_report.h"
#include "sluice/config/explain_report.h"
#include "sluice/config/limit_text.h"
#include "sluice/config/values.h"

namespace sluice::config {
namespace {

using namespace std::chrono_literals;

class ReportsTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = testing::TempDir() + "sluice_reports_XXXXXX";
    ASSERT_NE(mkdtemp(folder_.data()), nullptr);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string Write(const std::string& name, std::string_view text) const {
    std::ofstream(folder_ + "/" + name, std::ios::binary) << text;
    return folder_ + "/" + name;
  }

  std::string folder_;
};

constexpr std::string_view kRules = R"(identity:
  ip: { trusted_proxies: [10.0.0.0/8] }
  api_key: { header: X-API-Key }
plans: { file: plans.csv, key: api_key, default: free }
rules:
  - { name: flood, exempt: { path: /healthz }, key: ip, limit: 50/s, burst: 200 }
  - name: api
    match: { path: /v1/** }
    key: api_key
    limit: 100/min
    cost: { header: X-Cost, max: 10 }
    plans: { pro: { limit: 1000/min, burst: 200 } }
  - { name: login, match: { method: POST, path: /login }, key: ip, limit: 5/min, block_for: 15m }
  - { name: trial, key: [ip, route], mode: shadow, limit: 1/h, match: { path: /v1/** } }
  - { name: closed, deny: true, match: { path: /admin/** } }
)";

TEST_F(ReportsTest, CheckCountsTheRulesOfAGoodFile) {
  const std::string path = Write("a.yaml", "rules: [{ name: a, key: ip, limit: 1/s }]\n");
  const Report report = Check(path, {});
  EXPECT_EQ(report.text, path + ": 1 rule, no errors\n");
  EXPECT_EQ(report.exit_code, 0);
}

TEST_F(ReportsTest, CheckTellsEveryErrorAndExitsWith2) {
  const std::string path = Write("a.yaml", "rules:\n  - { name: a, key: who, limit: 0/s }\n");
  const Report report = Check(path, {});
  EXPECT_EQ(report.exit_code, 2);
  EXPECT_NE(report.text.find(path + ":2:21: error: unknown identity `who`"), std::string::npos);
  EXPECT_NE(report.text.find(path + ":2:33: error: `limit` must be at least 1"), std::string::npos);
  EXPECT_TRUE(report.text.ends_with("2 errors in 1 file\n"));
  EXPECT_EQ(Check(folder_ + "/missing.yaml", {}).exit_code, 2);
}

TEST_F(ReportsTest, WarningsMatterOnlyWhenStrict) {
  const std::string path =
      Write("a.yaml", "identity: { ip: { trusted_proxies: [0.0.0.0/0] } }\nrules: []\n");
  EXPECT_EQ(Check(path, {}).exit_code, 0);
  EXPECT_EQ(Check(path, {.strict = true}).exit_code, 1);
  EXPECT_TRUE(
      Check(path, {}).text.ends_with("1 warning in 1 file\n" + path + ": 0 rules, no errors\n"));
}

TEST_F(ReportsTest, CheckHasAStableJsonForm) {
  const std::string path = Write("a.yaml", "rules:\n  - { name: a, key: ip, limit: 0/s }\n");
  const auto report = boost::json::parse(Check(path, {.json = true}).text);
  EXPECT_EQ(report, (boost::json::value{
                        {"file", path},
                        {"ok", false},
                        {"rules", 0},
                        {"errors", 1},
                        {"warnings", 0},
                        {"problems",
                         {{{"severity", "error"},
                           {"file", path},
                           {"line", 2},
                           {"column", 32},
                           {"message", "`limit` must be at least 1, got 0"},
                           {"hint",
                            "a limit of 0 denies every request; to deny on purpose write `deny: "
                            "true`"}}}}}));
}

TEST_F(ReportsTest, ExplainSaysWhatEachRuleDoesWithARequest) {
  Write("plans.csv", "ann,pro\n");
  const std::string path = Write("a.yaml", kRules);
  const Report report = Explain(
      path, {.request = "GET //v1/./orders?page=2",
             .headers = {"X-API-Key: ann", "X-Forwarded-For: 6.6.6.6, 203.0.113.9", "X-Cost: 50"},
             .peer = "10.0.0.1"});
  EXPECT_EQ(report.exit_code, 0);
  EXPECT_EQ(report.text,
            "GET /v1/orders from 203.0.113.9, plan pro\n"
            "  flood   counts it under ip=203.0.113.9 with cost 1: token-bucket 50/s, burst 200\n"
            "  api     counts it under api_key=ann with cost 10: token-bucket 1000/min, burst 200 "
            "(plan pro)\n"
            "  login   does not meet it: method does not match\n"
            "  trial   counts it under ip=203.0.113.9, route=/v1/** with cost 1: token-bucket 1/h, "
            "burst 1 (shadow)\n"
            "  closed  does not meet it: path does not match\n");
}

TEST_F(ReportsTest, ExplainSaysWhyARequestIsDenied) {
  Write("plans.csv", "ann,pro\n");
  const std::string path = Write("a.yaml", kRules);
  const std::string v1 = Explain(path, {.request = "/v1/orders"}).text;
  EXPECT_NE(v1.find("  api     denies it: api_key is missing or ambiguous\n"), std::string::npos)
      << v1;
  const std::string admin = Explain(path, {.request = "https://a.example/admin/x"}).text;
  EXPECT_NE(admin.find("  closed  denies it: denies every request that it meets\n"),
            std::string::npos)
      << admin;
  const std::string health = Explain(path, {.request = "GET /healthz HTTP/1.1"}).text;
  EXPECT_NE(health.find("  flood   does not meet it: exempt"), std::string::npos) << health;
}

TEST_F(ReportsTest, ExplainHasAStableJsonForm) {
  Write("plans.csv", "ann,pro\n");
  const std::string path = Write("a.yaml", kRules);
  const auto report = boost::json::parse(
      Explain(path, {.request = "POST https://api.example/login", .json = true}).text);
  EXPECT_EQ(report.at("method"), "POST");
  EXPECT_EQ(report.at("host"), "api.example");
  EXPECT_EQ(report.at("path"), "/login");
  EXPECT_EQ(report.at("client"), "127.0.0.1");
  EXPECT_EQ(report.at("plan"), "free");
  const auto& rules = report.at("rules").as_array();
  ASSERT_EQ(rules.size(), 5u);
  EXPECT_EQ(rules[2], (boost::json::value{{"name", "login"},
                                          {"meets", true},
                                          {"denies", false},
                                          {"reason", ""},
                                          {"mode", "enforce"},
                                          {"key", {"ip=127.0.0.1"}},
                                          {"limit", "token-bucket 5/min, burst 5"},
                                          {"plan", ""},
                                          {"cost", 1},
                                          {"block_for", "15m"}}));
  const std::string text = Explain(path, {.request = "POST /login"}).text;
  EXPECT_NE(text.find(": token-bucket 5/min, burst 5, then blocked for 15m\n"), std::string::npos)
      << text;
  EXPECT_EQ(rules[1].at("meets"), false);
}

TEST_F(ReportsTest, ExplainSaysWhereARuleCountsUnlessItIsAsEver) {
  const std::string path = Write("a.yaml", R"(node: { count: 2 }
store: { redis: { url: redis://h } }
rules:
  - { name: ever, key: global, limit: 6/s }
  - { name: node, key: global, limit: 6/s, scope: node }
  - { name: open, key: global, limit: 6/s, on_store_failure: open }
  - { name: shut, key: global, limit: 6/s, on_store_failure: closed }
  - { name: part, key: global, limit: 6/s, on_store_failure: { local: 1/3 } }
  - { name: bulk, key: global, limit: 60/s, lease: auto }
  - { name: some, key: global, limit: 60/s, lease: { max: 9, for: 50ms }, on_store_failure: open }
)");
  EXPECT_EQ(Explain(path, {.request = "/"}).text,
            "GET / from 127.0.0.1\n"
            "  ever  counts it under global with cost 1: token-bucket 6/s, burst 6\n"
            "  node  counts it under global with cost 1: token-bucket 3/s, burst 3, on each node\n"
            "  open  counts it under global with cost 1: token-bucket 6/s, burst 6, open without "
            "the store\n"
            "  shut  counts it under global with cost 1: token-bucket 6/s, burst 6, closed without "
            "the store\n"
            "  part  counts it under global with cost 1: token-bucket 6/s, burst 6, without the "
            "store token-bucket 2/s, burst 2 on each node\n"
            "  bulk  counts it under global with cost 1: token-bucket 60/s, burst 60, leased\n"
            "  some  counts it under global with cost 1: token-bucket 60/s, burst 60, leased, open "
            "without the store\n");
  const auto report =
      boost::json::parse(Explain(path, {.request = "/", .json = true}).text).at("rules").as_array();
  EXPECT_FALSE(report[0].as_object().contains("scope"));
  EXPECT_FALSE(report[0].as_object().contains("on_store_failure"));
  EXPECT_FALSE(report[0].as_object().contains("local"));
  EXPECT_EQ(report[1].at("scope"), "node");
  EXPECT_EQ(report[2].at("on_store_failure"), "open");
  EXPECT_EQ(report[3].at("on_store_failure"), "closed");
  EXPECT_EQ(report[4].at("local"), "token-bucket 2/s, burst 2");
  EXPECT_FALSE(report[4].as_object().contains("lease"));
  EXPECT_EQ(report[5].at("lease"), "auto");
  EXPECT_EQ(report[6].at("lease"), "up to 9 for 50ms");
}

TEST_F(ReportsTest, ExplainRefusesWhatItCanNotRead) {
  const std::string path = Write("a.yaml", "rules: []\n");
  const struct {
    ExplainOptions options;
    const char* text;
  } rows[] = {
      {{.request = ""}, "error: `` is answered 400: the path does not begin with `/`\n"},
      {{.request = "GET /a%zz"},
       "error: `/a%zz` is answered 400: `%` in the path is not followed by "
       "two hex digits, or is %00\n"},
      {{.request = "G@T /"}, "error: `G@T` is no method\n"},
      {{.request = "/", .headers = {"X-Key"}},
       "error: `X-Key` is no header; write `Name: value`\n"},
      {{.request = "/", .peer = "localhost"}, "error: `localhost` is no address\n"},
      {{.request = "/", .attributes = {"x"}}, "error: `x` is no attribute; write `name=value`\n"},
  };
  for (const auto& row : rows) {
    const Report report = Explain(path, row.options);
    EXPECT_EQ(report.text, row.text);
    EXPECT_EQ(report.exit_code, 2);
  }
  EXPECT_EQ(Explain(path, {.request = "/"}).text, "GET / from 127.0.0.1\n  there are no rules\n");
  EXPECT_EQ(Explain(folder_ + "/none.yaml", {.request = "/"}).exit_code, 2);
}

TEST(LimitTextTest, SpeaksTheWordsOfTheConfiguration) {
  EXPECT_EQ(LimitText(*leaky_bucket::MakeLimit({10, 1s}, 5, 1min)),
            "leaky-bucket 10/s, up to 5 waiting");
  EXPECT_EQ(LimitText(*fixed_window::MakeLimit(5, 24h, fixed_window::Align::kFirstHit)),
            "fixed-window 5/day, from the first hit");
  EXPECT_EQ(LimitText(*sliding_window_counter::MakeLimit(5, 168h, 90min)),
            "sliding-window-counter 5/week, offset 1h30m");
  EXPECT_EQ(LimitText(*sliding_window_log::MakeLimit(5, 30s, false)), "sliding-window-log 5/30s");
  EXPECT_EQ(LimitText(*sliding_window_strict::MakeLimit(5, 120s)),
            "sliding-window-strict 5/2min in 16 sub-windows");
  EXPECT_EQ(LimitText(*calendar::MakeLimit(5, calendar::Period::kMonth, "UTC")),
            "calendar 5/month of UTC");
  EXPECT_EQ(LimitText(*concurrency::MakeLimit(5, 30s)), "concurrency 5 in flight, for 30s each");
  EXPECT_EQ(LimitText(*concurrency::MakeLimit(5, 0s)), "concurrency 5 in flight");
}

TEST(LimitTextTest, WhatItWritesCanBeReadAgain) {
  for (const Duration duration : {Duration(0s), Duration(1ns), Duration(90'500ms), Duration(25h)}) {
    EXPECT_EQ(*ParseDuration(DurationText(duration)), duration);
  }
  for (const auto* rate : {"5/s", "5/30s", "7/min", "7/90s", "1/h", "2/day", "3/2week"}) {
    const auto parsed = ParseRate(rate);
    ASSERT_TRUE(parsed.ok());
    EXPECT_EQ(RateText(static_cast<std::uint64_t>(parsed->count), *parsed->Period()), rate);
  }
}

}  // namespace
}  // namespace sluice::config
