#include "tests/access_logs/log_replay.h"

#include <algorithm>
#include <cstdlib>

#include "sluice/base/int128.h"

namespace sluice::testing {
namespace {

Rule ByClient(const Limit& limit) {
  Rule rule;
  rule.name = "by-client";
  rule.key = {{.kind = SourceKind::kAttribute, .name = "client", .label = "client"}};
  rule.limits = {{.plan = "", .limit = limit}};
  return rule;
}

}  // namespace

std::vector<bool> Replay(const std::vector<LoggedRequest>& log, const Limit& limit) {
  ManualClock clock;
  auto store = MemoryStore::Open({.max_keys = 100'000}, clock.Read());
  if (!store.ok()) std::abort();
  auto rules = std::make_shared<const RuleSet>(std::vector{ByClient(limit)}, RuleSetOptions{}, 1);
  auto active = ActiveRules::Make(std::move(rules), **store, clock);
  if (!active.ok()) std::abort();
  Limiter limiter({.store = **store, .hash_key = (*store)->hash_key(), .clock = clock}, *active);

  std::vector<bool> decisions;
  Outcome outcome;
  for (const LoggedRequest& line : log) {
    // Both timelines follow the log: a line out of order is a clock that steps back.
    clock.Set({Time{line.time.time_since_epoch()}, line.time});
    const Field client[] = {{"client", line.client}};
    limiter.Check({.method = line.method, .target = line.target, .attributes = client}, outcome);
    decisions.push_back(outcome.allowed());
  }
  return decisions;
}

std::int64_t CountAllowed(const std::vector<bool>& decisions) {
  return std::count(decisions.begin(), decisions.end(), true);
}

std::vector<bool> SlidingCounterModel(const std::vector<LoggedRequest>& log, std::int64_t limit,
                                      std::int64_t window_seconds) {
  struct Counters {
    std::int64_t window = 0;
    std::int64_t previous = 0;
    std::int64_t current = 0;
  };
  std::map<std::string, Counters> keys;
  std::vector<bool> decisions;
  for (const LoggedRequest& line : log) {
    const std::int64_t at =
        std::chrono::duration_cast<std::chrono::seconds>(line.time.time_since_epoch()).count();
    const std::int64_t window = at / window_seconds;
    Counters& counters = keys[line.client];
    if (counters.window < window) {
      counters.previous = counters.window == window - 1 ? counters.current : 0;
      counters.current = 0;
      counters.window = window;
    }
    const std::int64_t elapsed = std::max<std::int64_t>(at - counters.window * window_seconds, 0);
    const Int128 estimate = Int128{counters.previous} * (window_seconds - elapsed) +
                            Int128{counters.current + 1} * window_seconds;
    const bool allowed = estimate <= Int128{limit} * window_seconds;
    if (allowed) ++counters.current;
    decisions.push_back(allowed);
  }
  return decisions;
}

}  // namespace sluice::testing
