#include "sluice/admin/rules_view.h"

#include <boost/json.hpp>

namespace sluice::admin {
namespace {

namespace json = boost::json;

std::int64_t Milliseconds(Duration duration) {
  return std::chrono::ceil<std::chrono::milliseconds>(duration).count();
}

json::array Strings(const std::vector<std::string>& texts) {
  json::array array;
  for (const std::string& text : texts) array.emplace_back(text);
  return array;
}

json::object MatchJson(const Match& match) {
  json::object object;
  if (!match.methods.empty()) object["method"] = Strings(match.methods);
  if (!match.paths.empty()) {
    json::array& paths = object["path"].emplace_array();
    for (const PathPattern& path : match.paths) paths.emplace_back(path.text());
  }
  if (!match.hosts.empty()) object["host"] = Strings(match.hosts);
  if (!match.headers.empty()) {
    json::object& headers = object["header"].emplace_object();
    for (const Match::Header& header : match.headers) {
      headers[header.name] = Strings(header.values);
    }
  }
  if (!match.clients.empty()) {
    json::array& clients = object["ip"].emplace_array();
    for (const IpPrefix& client : match.clients) clients.emplace_back(client.ToString());
  }
  return object;
}

void TellNumbers(const Limit& limit, json::object& object) {
  object["quota"] = CapacityOf(limit);
  if (const Duration window = WindowOf(limit); window > Duration{0}) {
    object["window_ms"] = Milliseconds(window);
  }
}

json::object LimitJson(const RuleLimit& limit) {
  json::object object;
  if (!limit.plan.empty()) object["plan"] = limit.plan;
  object["algorithm"] = std::string(AlgorithmName(limit.limit));
  TellNumbers(limit.limit, object);
  if (limit.local) TellNumbers(*limit.local, object["local"].emplace_object());
  return object;
}

std::string OnMissingKeyText(const Rule& rule) {
  if (rule.on_missing_key == OnMissingKey::kFallback) return rule.fallback.label;
  return rule.on_missing_key == OnMissingKey::kSkip ? "skip" : "deny";
}

// What is not said is chosen by demand, or by the limit.
json::object LeaseJson(const RuleLease& lease) {
  json::object object;
  if (lease.most > 0) object["max"] = lease.most;
  if (lease.length > Duration{0}) object["for_ms"] = Milliseconds(lease.length);
  return object;
}

json::object RuleJson(const Rule& rule) {
  json::object object;
  object["name"] = rule.name;
  object["mode"] = rule.mode == RuleMode::kShadow ? "shadow" : "enforce";
  object["match"] = MatchJson(rule.match);
  json::array exempt;
  for (const Match& match : rule.exempt) exempt.emplace_back(MatchJson(match));
  object["exempt"] = std::move(exempt);
  if (rule.deny) {
    object["deny"] = true;
    return object;
  }
  json::array key;
  for (const Source& source : rule.key) key.emplace_back(source.label);
  object["key"] = std::move(key);
  object["on_missing_key"] = OnMissingKeyText(rule);
  json::array limits;
  for (const RuleLimit& limit : rule.limits) limits.emplace_back(LimitJson(limit));
  object["limits"] = std::move(limits);
  object["charge_denied"] = rule.charge_denied;
  if (rule.block_for > Duration{0}) object["block_for_ms"] = Milliseconds(rule.block_for);
  object["scope"] = std::string(ToString(rule.scope));
  if (rule.scope == RuleScope::kShared) {
    object["on_store_failure"] = std::string(ToString(rule.on_store_failure));
  }
  if (rule.lease) object["lease"] = LeaseJson(*rule.lease);
  return object;
}

json::array ListJson(const RuleSet& rules) {
  json::array array;
  for (const Rule& rule : rules.rules()) array.emplace_back(RuleJson(rule));
  return array;
}

}  // namespace

std::string RulesJson(const RuleSet& rules) {
  return json::serialize(
      json::object{{"generation", rules.generation()}, {"rules", ListJson(rules)}});
}

std::string RuleListJson(const RuleSet& rules) { return json::serialize(ListJson(rules)); }

}  // namespace sluice::admin
