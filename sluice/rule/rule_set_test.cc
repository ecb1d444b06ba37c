#include "sluice/rule/rule_set.h"

#include <gtest/gtest.h>

#include <set>

namespace sluice {
namespace {

Limit PerMinute(std::int64_t count) {
  return *token_bucket::MakeLimit({.count = count, .period = std::chrono::minutes{1}}, 10);
}

Source Global() { return {.kind = SourceKind::kGlobal, .name = "", .label = "global"}; }
Source Ip() { return {.kind = SourceKind::kIp, .name = "", .label = "ip"}; }
Source Header(std::string name) {
  return {.kind = SourceKind::kHeader, .name = name, .label = "header." + name};
}
Source Route() { return {.kind = SourceKind::kRoute, .name = "", .label = "route"}; }

Rule MakeRule(std::string name, std::vector<Source> key) {
  Rule rule;
  rule.name = std::move(name);
  rule.key = std::move(key);
  rule.limits = {{.plan = "", .limit = PerMinute(60)}};
  return rule;
}

PathPattern Pattern(std::string_view text) {
  auto pattern = PathPattern::Compile(text);
  EXPECT_TRUE(pattern.ok()) << pattern.status();
  return *pattern;
}

struct Met {
  std::string rule;
  MatchOutcome outcome;
  std::string key;
  std::uint64_t cost;
  friend bool operator==(const Met&, const Met&) = default;
};

class RuleSetTest : public testing::Test {
 protected:
  std::vector<Met> Evaluate(const RuleSet& rules, const LimitRequest& request) {
    scratch_.Clear();
    std::vector<RuleResult> results;
    rules.Evaluate(request, scratch_, results);
    std::vector<Met> met;
    for (const RuleResult& result : results) {
      met.push_back({result.rule->name, result.match, std::string(scratch_.BytesOf(result.key)),
                     result.cost});
    }
    return met;
  }
  std::string KeyOf(const RuleSet& rules, const std::vector<Field>& headers,
                    std::string_view target = "/") {
    const auto met = Evaluate(rules, {.method = "GET", .target = target, .headers = headers});
    EXPECT_EQ(met.size(), 1u);
    return met.empty() ? "" : met[0].key;
  }

  RuleSet::Scratch scratch_;
};

TEST_F(RuleSetTest, AnExemptRequestMeetsOnlyRulesThatDeny) {
  Rule ban = MakeRule("ban", {});
  ban.deny = true;
  ban.limits.clear();
  const RuleSet rules({MakeRule("before", {Global()}), ban, MakeRule("behind", {Header("K")})}, {},
                      1);
  const auto met = Evaluate(rules, {.method = "OPTIONS", .target = "/", .exempt = true});
  ASSERT_EQ(met.size(), 1u);
  EXPECT_EQ(met[0].rule, "ban");
  EXPECT_EQ(met[0].outcome, MatchOutcome::kDenies);
  EXPECT_EQ(Evaluate(rules, {.method = "OPTIONS", .target = "/"}).size(), 3u);
}

TEST_F(RuleSetTest, MeetsARuleOnlyWhenAllThatItAsksForHolds) {
  Rule rule = MakeRule("r", {Global()});
  rule.match.methods = {"POST", "PUT"};
  rule.match.paths = {Pattern("/v1/orders"), Pattern("/v2/**")};
  rule.match.hosts = {"api.example.com", "*.shop.example.com"};
  rule.match.headers = {{.name = "X-Env", .values = {"prod"}}};
  rule.match.clients = {*IpPrefix::Parse("10.0.0.0/8")};
  const RuleSet rules({rule}, {}, 1);

  const std::vector<Field> prod = {{"x-env", "prod"}};
  const std::vector<Field> test = {{"x-env", "test"}};
  const LimitRequest good{.method = "POST",
                          .target = "/v1/orders?x=1",
                          .host = "API.example.com:80",
                          .peer = *IpAddress::Parse("10.1.2.3"),
                          .headers = prod};
  EXPECT_EQ(Evaluate(rules, good).size(), 1u);

  LimitRequest other = good;
  other.target = "/v2/a/b";
  other.host = "eu.shop.example.com";
  EXPECT_EQ(Evaluate(rules, other).size(), 1u);

  other = good, other.method = "GET";
  EXPECT_TRUE(Evaluate(rules, other).empty());
  other = good, other.target = "/v1/order";
  EXPECT_TRUE(Evaluate(rules, other).empty());
  other = good, other.host = "shop.example.com";
  EXPECT_TRUE(Evaluate(rules, other).empty());
  other = good, other.headers = test;
  EXPECT_TRUE(Evaluate(rules, other).empty());
  other = good, other.peer = *IpAddress::Parse("11.1.2.3");
  EXPECT_TRUE(Evaluate(rules, other).empty());
}

TEST_F(RuleSetTest, LeavesOutWhatIsExempt) {
  Rule rule = MakeRule("r", {Global()});
  Match health;
  health.paths = {Pattern("/health")};
  Match preflight;
  preflight.methods = {"OPTIONS"};
  rule.exempt = {health, preflight};
  const RuleSet rules({rule}, {}, 1);
  EXPECT_TRUE(Evaluate(rules, {.method = "GET", .target = "/health"}).empty());
  EXPECT_TRUE(Evaluate(rules, {.method = "OPTIONS", .target = "/x"}).empty());
  EXPECT_EQ(Evaluate(rules, {.method = "GET", .target = "/x"}).size(), 1u);
}

TEST_F(RuleSetTest, LetsNoSpellingOfAPathEscapeARuleOrSlipIntoAnExemption) {
  Rule rule = MakeRule("login", {Route()});
  rule.match.paths = {Pattern("/api/login")};
  Match health;
  health.paths = {Pattern("/health/**")};
  Rule all = MakeRule("all", {Global()});
  all.exempt = {health};
  const RuleSet rules({rule, all}, {}, 1);
  std::set<std::string> keys;
  for (const char* target : {"/api/login", "//api//login", "/api/./login", "/api/%6cogin",
                             "/api/x/../login", "/api%2flogin", "/health/..%2fapi/login"}) {
    const auto met = Evaluate(rules, {.method = "GET", .target = target});
    ASSERT_EQ(met.size(), 2u) << target;
    keys.insert(met[0].key);
  }
  EXPECT_EQ(keys.size(), 1u);
  EXPECT_EQ(Evaluate(rules, {.method = "GET", .target = "/health/x"}).size(), 0u);
}

TEST_F(RuleSetTest, APathThatCannotBeNormalisedMeetsEveryPatternAndNoExemption) {
  Rule rule = MakeRule("login", {Global()});
  rule.match.paths = {Pattern("/api/login")};
  Match everything;
  everything.paths = {Pattern("/**")};
  Rule all = MakeRule("all", {Global()});
  all.exempt = {everything};
  const RuleSet rules({rule, all}, {}, 1);
  EXPECT_EQ(Evaluate(rules, {.method = "GET", .target = "/x%zz"}).size(), 2u);
}

TEST_F(RuleSetTest, SeparatorsInsideValuesMakeNoTwoKeysEqual) {
  const RuleSet rules({MakeRule("r", {Header("A"), Header("B")})}, {}, 1);
  const std::vector<std::pair<std::string, std::string>> values = {
      {"a:b", "c"},       {"a", "b:c"},      {"a_b", "c"},
      {"a", "b_c"},       {"ab", "c"},       {"a", "bc"},
      {"a\n", "b"},       {"a", "\nb"},      {"test_\xc3\xbcser", "x"},
      {"test_user", "x"}, {"\xff\xfe", "x"}, {std::string("a\0b", 3), "x"}};
  std::set<std::string> keys;
  for (const auto& [a, b] : values) keys.insert(KeyOf(rules, {{"A", a}, {"B", b}}));
  EXPECT_EQ(keys.size(), values.size());
}

TEST_F(RuleSetTest, RulesOfDifferentNamesNeverShareAKey) {
  const RuleSet rules({MakeRule("a", {Header("K")}), MakeRule("ab", {Header("K")})}, {}, 1);
  const std::vector<Field> headers = {{"K", "x"}};
  const auto met = Evaluate(rules, {.method = "GET", .target = "/", .headers = headers});
  ASSERT_EQ(met.size(), 2u);
  EXPECT_NE(met[0].key, met[1].key);
}

TEST_F(RuleSetTest, TheNumbersOfARuleAreNotInItsKey) {
  Rule rule = MakeRule("r", {Header("K")});
  const RuleSet before({rule}, {}, 1);
  rule.limits[0].limit = PerMinute(7);
  const RuleSet after({rule}, {}, 2);
  EXPECT_EQ(KeyOf(before, {{"K", "x"}}), KeyOf(after, {{"K", "x"}}));
}

TEST_F(RuleSetTest, AMissingKeyPartIsDeniedSkippedOrReplacedAsTheRuleSays) {
  Rule deny = MakeRule("deny", {Header("K")});
  Rule skip = MakeRule("skip", {Header("K")});
  skip.on_missing_key = OnMissingKey::kSkip;
  Rule fallback = MakeRule("fallback", {Header("K")});
  fallback.on_missing_key = OnMissingKey::kFallback;
  fallback.fallback = Ip();
  const RuleSet rules({deny, skip, fallback}, {}, 1);

  const auto met =
      Evaluate(rules, {.method = "GET", .target = "/", .peer = *IpAddress::Parse("10.0.0.1")});
  ASSERT_EQ(met.size(), 2u);
  EXPECT_EQ(met[0].rule, "deny");
  EXPECT_EQ(met[0].outcome, MatchOutcome::kMissingKey);
  EXPECT_EQ(met[1].rule, "fallback");
  EXPECT_EQ(met[1].outcome, MatchOutcome::kCounts);
}

TEST_F(RuleSetTest, AFallbackKeyIsNeverThatOfAClientWhoSendsItsBytes) {
  Rule rule = MakeRule("r", {Header("K")});
  rule.on_missing_key = OnMissingKey::kFallback;
  rule.fallback = Header("Other");
  const RuleSet rules({rule}, {}, 1);
  EXPECT_NE(KeyOf(rules, {{"Other", "x"}}), KeyOf(rules, {{"K", "x"}}));
}

TEST_F(RuleSetTest, CountsAnIpv6NetworkAsOneClient) {
  const RuleSet rules({MakeRule("r", {Ip()})}, {.client_address = {}, .ipv6_prefix = 64}, 1);
  const auto key = [&](const char* ip) {
    return Evaluate(rules, {.method = "GET", .target = "/", .peer = *IpAddress::Parse(ip)})[0].key;
  };
  EXPECT_EQ(key("2001:db8:1:2::1"), key("2001:db8:1:2:ffff::9"));
  EXPECT_NE(key("2001:db8:1:2::1"), key("2001:db8:1:3::1"));
  EXPECT_EQ(key("1.2.3.4"), key("::ffff:1.2.3.4"));
  EXPECT_NE(key("1.2.3.4"), key("1.2.3.5"));
}

TEST_F(RuleSetTest, BelievesForwardingHeadersOfTrustedPeersOnly) {
  RuleSetOptions options;
  options.client_address.trusted_proxies = {*IpPrefix::Parse("10.0.0.0/8")};
  const RuleSet rules({MakeRule("r", {Ip()})}, std::move(options), 1);
  const auto key = [&](const char* peer, const std::vector<Field>& headers) {
    return Evaluate(rules, {.method = "GET",
                            .target = "/",
                            .peer = *IpAddress::Parse(peer),
                            .headers = headers})[0]
        .key;
  };
  const std::string client = key("203.0.113.7", {});
  EXPECT_EQ(key("10.0.0.5", {{"x-forwarded-for", "9.9.9.1, 203.0.113.7"}}), client);
  EXPECT_EQ(key("10.0.0.5", {{"X-Forwarded-For", "9.9.9.2, 203.0.113.7"}}), client);
  EXPECT_EQ(key("203.0.113.7", {{"X-Forwarded-For", "1.1.1.1"}}), client);
}

TEST_F(RuleSetTest, TakesTheCostFromAHeaderUpToItsCeiling) {
  Rule rule = MakeRule("r", {Global()});
  rule.cost = {.fixed = 2, .header = Header("X-Cost"), .max = 50};
  const RuleSet rules({rule}, {}, 1);
  const struct {
    const char* header;
    std::uint64_t cost;
  } rows[] = {{"7", 7},  {"0", 0},   {"50", 50}, {"51", 50}, {"99999999999999999999999", 50},
              {"-1", 2}, {"1.5", 2}, {"abc", 2}, {"+3", 2},  {"", 2}};
  for (const auto& row : rows) {
    const std::vector<Field> headers = {{"x-cost", row.header}};
    const auto met = Evaluate(rules, {.method = "GET", .target = "/", .headers = headers});
    EXPECT_EQ(met[0].cost, row.cost) << row.header;
  }
  EXPECT_EQ(Evaluate(rules, {.method = "GET", .target = "/"})[0].cost, 2u);
}

TEST_F(RuleSetTest, ChoosesTheNumbersByTheCallersPlan) {
  Rule rule = MakeRule("r", {Header("K")});
  rule.limits.push_back({.plan = "pro", .limit = PerMinute(600)});
  PlanTable plans(Header("K"), "free");
  plans.Set("ann", "pro");
  plans.Set("bob", "gold");  // a plan that the rule does not name
  RuleSetOptions options;
  options.plans = std::move(plans);
  const RuleSet rules({rule}, std::move(options), 1);
  const auto limit_of = [&](const char* key) {
    const std::vector<Field> headers = {{"K", key}};
    std::vector<RuleResult> results;
    rules.Evaluate({.method = "GET", .target = "/", .headers = headers}, scratch_, results);
    return results.at(0).limit_index;
  };
  EXPECT_EQ(limit_of("ann"), 1u);
  EXPECT_EQ(limit_of("bob"), 0u);
  EXPECT_EQ(limit_of("eve"), 0u);
}

TEST_F(RuleSetTest, ExplainsEachRuleInOrder) {
  Rule login = MakeRule("login", {Ip()});
  login.match.paths = {Pattern("/login")};
  Rule api = MakeRule("api", {Header("K")});
  Rule ban = MakeRule("ban", {Global()});
  ban.deny = true;
  ban.limits.clear();
  Rule exempt = MakeRule("exempt", {Global()});
  exempt.exempt = {
      Match{.methods = {"GET"}, .paths = {}, .hosts = {}, .headers = {}, .clients = {}}};
  const RuleSet rules({login, api, ban, exempt}, {}, 1);
  const auto told = rules.Explain({.method = "GET", .target = "/v1"});
  ASSERT_EQ(told.size(), 4u);
  EXPECT_FALSE(told[0].meets);
  EXPECT_EQ(told[0].reason, "path does not match");
  EXPECT_TRUE(told[1].meets);
  EXPECT_EQ(told[1].reason, "header.K is missing or ambiguous");
  EXPECT_TRUE(told[2].meets);
  EXPECT_FALSE(told[3].meets);
  EXPECT_EQ(told[3].reason, "exempt by entry 1");
}

}  // namespace
}  // namespace sluice
