// From a scenario's step to a request, by what the rules say their identities are made of.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "sluice/base/ip.h"
#include "sluice/rule/rule_set.h"
#include "tests/scenarios/scenario.h"

namespace sluice::testing {

struct ScenarioRequest {
  std::string method;
  std::string target;
  std::string host = "scenario.test";
  IpAddress peer = IpAddress::V4(0x7f000001);
  std::vector<std::pair<std::string, std::string>> headers;
};

// Aborts the test program when a step names an attribute that no rule knows.
ScenarioRequest RequestOf(const Scenario& scenario, const Step& step, const RuleSet& rules);

// What a step expects, or what happened, as `allow remaining=3 rule=api`: only the fields that the
// step names, so that both compare as text.
std::string Expected(const Step& step);

// "100ms", "never", "unknown", with all of a duration's parts: "1h30min".
std::string DurationText(Duration duration);

}  // namespace sluice::testing
