// Scenarios: a configuration, and what happens under it, as text that a person reads.
//
//   # A denied cost leaves the smaller one its room.
//   identity: { api_key: { header: X-API-Key } }
//   rules:
//     - name: api
//       ...
//   ---
//             api_key=ann cost=2          -> allow remaining=0
//   +100ms    api_key=ann x3              -> limit retry=200ms rule=api
//   clock -1h                                       the wall clock alone steps
//             POST /v1/orders api_key=bob as b1 -> allow
//   finish b1                                       the request is over: its slots come back
//   undo b1                                         it did not take place
//
// A step is
//   [+DURATION] [METHOD] [/target] [name=value ...] [xN] [as NAME] -> ANSWER [field=value ...]
//
// Names: `ip` (the peer), `host`, `header.X`, an identity that a rule's key uses, and `cost`,
// which goes into the header that a rule takes its cost from. Answers: allow, delay, limit, never,
// missing, deny. Fields: remaining, retry, reset, delay (durations; `never`, `unknown`), rule.
//
// Every file runs twice: in process on a manual clock, and through a running gateway.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "sluice/base/time.h"

namespace sluice::testing {

struct Step {
  enum class Kind { kRequest, kClock, kFinish, kUndo };
  int line = 0;
  Kind kind = Kind::kRequest;
  Duration wait{0};  // before the step; kClock: by how much the wall clock steps
  std::string name;  // of a request to be finished or undone later
  int times = 1;

  std::string method = "GET";
  std::string target = "/";
  std::vector<std::pair<std::string, std::string>> attributes;  // name, value
  std::string answer;
  std::map<std::string, std::string> expected;
};

struct Scenario {
  std::string path;
  std::string config;
  std::vector<Step> steps;

  // Whether a step needs the engine's own hands: a gateway finishes requests by itself.
  [[nodiscard]] bool NeedsEngine() const;
};

// Aborts the test program with file and line when the text is no scenario.
Scenario ReadScenario(const std::string& path);
std::vector<std::string> ScenarioFiles();

// "100ms", "1h30min": whole numbers of ns, us, ms, s, min, h, d, added up; nullopt for "1.5s".
std::optional<Duration> ParseDuration(std::string_view text);

}  // namespace sluice::testing
