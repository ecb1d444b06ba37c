#include "sluice/admin/admin_port.h"

#include <gtest/gtest.h>

#include <boost/json.hpp>

namespace sluice::admin {
namespace {

namespace json = boost::json;

std::shared_ptr<const RuleSet> TwoRules() {
  Rule api;
  api.name = "api";
  api.match.methods = {"POST"};
  api.match.paths = {*PathPattern::Compile("/v1/**")};
  api.key = {{.kind = SourceKind::kHeader, .name = "X-API-Key", .label = "api_key"}};
  api.on_missing_key = OnMissingKey::kFallback;
  api.fallback = {.kind = SourceKind::kIp, .name = "", .label = "ip"};
  api.limits = {
      {.plan = "",
       .limit = *token_bucket::MakeLimit({.count = 100, .period = std::chrono::minutes{1}}, 20)},
      {.plan = "pro", .limit = *fixed_window::MakeLimit(1000, std::chrono::minutes{1})}};
  api.limits[1].local = *fixed_window::MakeLimit(500, std::chrono::minutes{1});
  api.block_for = std::chrono::microseconds{1500};
  Rule closed;
  closed.name = "closed";
  closed.deny = true;
  closed.mode = RuleMode::kShadow;
  return std::make_shared<const RuleSet>(std::vector{api, closed}, RuleSetOptions{}, 7);
}

AdminPort::Views Views(bool ready = true) {
  return {.ready = [ready] { return ready; },
          .write_metrics = [](std::string& out) { out += "metric 1\n"; },
          .rules = TwoRules};
}

TEST(AdminPortTest, TellsWhetherItIsReady) {
  EXPECT_EQ(AnswerAdmin(Views(true), "GET", "/readyz").status, 200);
  EXPECT_EQ(AnswerAdmin(Views(false), "GET", "/readyz").status, 503);
  EXPECT_EQ(AnswerAdmin(Views(false), "GET", "/healthz").status, 200);
}

TEST(AdminPortTest, ShowsMetricsAsText) {
  const net::Answer answer = AnswerAdmin(Views(), "GET", "/metrics");
  EXPECT_EQ(answer.body, "metric 1\n");
  EXPECT_TRUE(answer.content_type.starts_with("text/plain; version=0.0.4"));
}

TEST(AdminPortTest, ListsTheRulesInOrderWithTheirNumbers) {
  const json::value told = json::parse(AnswerAdmin(Views(), "GET", "/v1/rules").body);
  EXPECT_EQ(told.at("generation"), 7);
  const json::value& api = told.at("rules").at(0);
  EXPECT_EQ(api, json::parse(R"({
    "name": "api", "mode": "enforce", "match": {"method": ["POST"], "path": ["/v1/**"]},
    "exempt": [], "key": ["api_key"], "on_missing_key": "ip", "charge_denied": false,
    "block_for_ms": 2, "scope": "shared", "on_store_failure": "local",
    "limits": [{"algorithm": "token-bucket", "quota": 20, "window_ms": 12000},
               {"plan": "pro", "algorithm": "fixed-window", "quota": 1000, "window_ms": 60000,
                "local": {"quota": 500, "window_ms": 60000}}]})"));
  EXPECT_EQ(
      told.at("rules").at(1),
      json::parse(
          R"({"name": "closed", "mode": "shadow", "match": {}, "exempt": [], "deny": true})"));
}

TEST(AdminPortTest, TellsWhereARuleCounts) {
  AdminPort::Views views = Views();
  views.rules = [] {
    Rule node = TwoRules()->rules()[0];
    node.scope = RuleScope::kNode;
    Rule open = TwoRules()->rules()[0];
    open.name = "open";
    open.on_store_failure = OnStoreFailure::kOpen;
    return std::make_shared<const RuleSet>(std::vector{node, open}, RuleSetOptions{}, 1);
  };
  const json::value told = json::parse(AnswerAdmin(views, "GET", "/v1/rules").body);
  const json::object& node = told.at("rules").at(0).as_object();
  EXPECT_EQ(node.at("scope"), "node");
  EXPECT_FALSE(node.contains("on_store_failure"));
  EXPECT_EQ(told.at("rules").at(1).at("on_store_failure"), "open");
}

TEST(AdminPortTest, RefusesOtherPagesAndMethods) {
  EXPECT_EQ(AnswerAdmin(Views(), "GET", "/").status, 404);
  EXPECT_EQ(AnswerAdmin(Views(), "GET", "/metrics/").status, 404);
  const net::Answer answer = AnswerAdmin(Views(), "POST", "/v1/rules");
  EXPECT_EQ(answer.status, 405);
  EXPECT_EQ(answer.more_fields, "Allow: GET, HEAD\r\n");
}

}  // namespace
}  // namespace sluice::admin
