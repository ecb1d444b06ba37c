// `scope`, `on_store_failure` and `node.count`: which part of a rule's numbers a node counts by.
#include <gtest/gtest.h>

#include <string>

#include "sluice/config/limit_text.h"
#include "sluice/config/testing/load_text.h"

namespace sluice::config {
namespace {

using namespace std::chrono_literals;

const std::string kRedis = "store: { redis: { url: redis://h } }\n";

std::string File(const std::string& fields, const std::string& head = "") {
  return head + "rules:\n  - { name: r, key: ip, " + fields + " }\n";
}
Rule RuleOf(const std::string& fields, const std::string& head = kRedis) {
  const Config config = Good(File(fields, head));
  return config.rules ? config.rules->rules()[0] : Rule{};
}
// Without their places: "message = hint" lines.
std::string Told(const std::string& fields, const std::string& head = kRedis) {
  std::string all;
  for (const Diagnostic& one : LoadText("f", File(fields, head), "", 1).diagnostics.Sorted()) {
    all += (one.severity == Severity::kWarning ? "warning " : "") + one.message +
           (one.hint.empty() ? "" : " = " + one.hint) + "\n";
  }
  return all;
}
std::string Text(const std::optional<Limit>& limit) { return limit ? LimitText(*limit) : "all"; }

TEST(SharingTest, IsSharedAndLocalUnlessToldOtherwise) {
  const Rule rule = RuleOf("limit: 10/s");
  EXPECT_EQ(rule.scope, RuleScope::kShared);
  EXPECT_EQ(rule.on_store_failure, OnStoreFailure::kLocal);
  EXPECT_EQ(Text(rule.limits[0].local), "all");
  EXPECT_EQ(RuleOf("limit: 10/s, scope: node").scope, RuleScope::kNode);
  EXPECT_EQ(RuleOf("limit: 10/s, on_store_failure: open").on_store_failure, OnStoreFailure::kOpen);
  EXPECT_EQ(RuleOf("limit: 10/s, on_store_failure: closed").on_store_failure,
            OnStoreFailure::kClosed);
  EXPECT_EQ(RuleOf("limit: 10/s, scope: shared, on_store_failure: local").on_store_failure,
            OnStoreFailure::kLocal);
}

TEST(SharingTest, ANodeHasItsShareOfEveryNumber) {
  const auto share = [](const std::string& fields) {
    return LimitText(RuleOf(fields + ", scope: node", "node: { count: 3 }\n").limits[0].limit);
  };
  EXPECT_EQ(share("limit: 100/min, burst: 20"), "token-bucket 100/3min, burst 6");
  EXPECT_EQ(share("limit: 90/min"), "token-bucket 30/min, burst 30");
  EXPECT_EQ(share("algorithm: leaky-bucket, limit: 2/s, queue: { requests: 10 }"),
            "leaky-bucket 2/3s, up to 3 waiting");
  EXPECT_EQ(share("algorithm: fixed-window, limit: 100/min"), "fixed-window 33/min");
  EXPECT_EQ(share("algorithm: sliding-window-log, limit: 100/min"), "sliding-window-log 33/min");
  EXPECT_EQ(share("algorithm: sliding-window-counter, limit: 100/min"),
            "sliding-window-counter 33/min");
  EXPECT_EQ(share("algorithm: sliding-window-strict, limit: 100/min"),
            "sliding-window-strict 33/min in 16 sub-windows");
  EXPECT_EQ(share("algorithm: calendar, limit: 100/month"), "calendar 33/month of UTC");
  EXPECT_EQ(share("algorithm: concurrency, limit: 10, slot_ttl: 30s"),
            "concurrency 3 in flight, for 30s each");
  EXPECT_EQ(Text(RuleOf("limit: 9/s", "node: { count: 3 }\n").limits[0].limit),
            "token-bucket 9/s, burst 9")
      << "what is shared is not divided";
}

TEST(SharingTest, APlanIsSharedLikeTheRule) {
  const std::string plans = "plans: { file: /dev/null, key: ip }\n";
  const std::string pro = "limit: 9/s, plans: { pro: { limit: 60/s, burst: 90 } }, ";
  const Rule node = RuleOf(pro + "scope: node", "node: { count: 3 }\n" + plans);
  ASSERT_EQ(node.limits.size(), 2u);
  EXPECT_EQ(node.limits[1].plan, "pro");
  EXPECT_EQ(Text(node.limits[1].limit), "token-bucket 20/s, burst 30");
  const Rule third = RuleOf(pro + "on_store_failure: { local: 1/3 }", kRedis + plans);
  EXPECT_EQ(Text(third.limits[0].local), "token-bucket 3/s, burst 3");
  EXPECT_EQ(Text(third.limits[1].local), "token-bucket 20/s, burst 30");
  EXPECT_EQ(Text(third.limits[1].limit), "token-bucket 60/s, burst 90");
}

TEST(SharingTest, AFailureCanLeaveAPart) {
  const auto local = [](const std::string& part) {
    const Rule rule = RuleOf("limit: 10/s, on_store_failure: { local: " + part + " }");
    EXPECT_EQ(rule.on_store_failure, OnStoreFailure::kLocal);
    return Text(rule.limits[0].local);
  };
  EXPECT_EQ(local("1/2"), "token-bucket 5/s, burst 5");
  EXPECT_EQ(local("3 / 4"), "token-bucket 15/2s, burst 7");
  EXPECT_EQ(local("1"), "all");
  EXPECT_EQ(local("4/4"), "all");
}

TEST(SharingTest, RefusesWhatIsNoPart) {
  const auto told = [](const std::string& part) {
    return Told("limit: 10/s, on_store_failure: { local: " + part + " }");
  };
  for (const std::string part : {"half", "0.5", "1/2/3", "-1/2", "1/", "/2", "1/1000001"}) {
    EXPECT_EQ(told(part), "`local` must be a fraction of whole numbers, got `" + part +
                              "` = write for example `1/2`\n");
  }
  for (const std::string part : {"0", "0/2", "1/0", "3/2", "2"}) {
    EXPECT_EQ(told(part), "`local` must be more than 0 and at most 1, got `" + part +
                              "` = write for example `1/2`\n");
  }
  EXPECT_EQ(Told("limit: 10/s, on_store_failure: {}"),
            "`on_store_failure` needs `local` = write which part of the limit a node allows: `{ "
            "local: 1/2 }`\n");
  EXPECT_EQ(Told("limit: 10/s, on_store_failure: deny"),
            "`on_store_failure` must be one of open, closed, local; got `deny`\n");
  EXPECT_EQ(Told("limit: 10/s, scope: nod"),
            "`scope` must be one of shared, node; got `nod` = did you mean `node`?\n");
}

TEST(SharingTest, RefusesAShareOfNothing) {
  const std::string three = "node: { count: 3 }\n";
  const std::string hint =
      " = with `scope: node` each of the `node.count` nodes has an equal share, in whole units\n";
  EXPECT_EQ(Complaints(File("limit: 2/s, scope: node", three)),
            "3:32 a limit of 2 cannot be shared by 3 nodes" + hint);
  EXPECT_EQ(Complaints(File("limit: 5/s, burst: 2, scope: node", three)),
            "3:44 a burst of 2 cannot be shared by 3 nodes" + hint);
  EXPECT_EQ(Told("algorithm: concurrency, limit: 2, scope: node", three),
            "a limit of 2 cannot be shared by 3 nodes" + hint);
  EXPECT_EQ(Told("limit: 5/s, burst: 2, on_store_failure: { local: 1/3 }"),
            "a burst of 2 leaves nothing to a node that may have 1/3 of it = while the store is "
            "away nothing could pass; to deny on purpose write `on_store_failure: closed`\n");
  EXPECT_EQ(Told("limit: 9/s, cost: 4, scope: node", three),
            "`cost` is 4, and the limit never holds more than 3: no request could pass = lower "
            "the cost, or raise the limit or its burst\n");
  EXPECT_EQ(Told("limit: 9/s, cost: 4, on_store_failure: { local: 1/3 }"),
            "`cost` is 4, and a node that counts for itself never holds more than 3: no request "
            "could pass while the store is away = lower the cost, or let `on_store_failure` be a "
            "larger part\n");
  EXPECT_EQ(Complaints("node: { count: 0 }\n"), "1:16 `count` must be at least 1, got 0\n");
  EXPECT_EQ(Complaints("node: { count: 100001 }\n"),
            "1:16 `count` must be at most 100000, got 100001\n");
}

TEST(SharingTest, RefusesWhereItMeansNothing) {
  EXPECT_EQ(Told("limit: 5/s, scope: node, on_store_failure: open"),
            "`on_store_failure` means nothing with `scope: node`, which needs no store = leave one "
            "of the two out\n");
  EXPECT_EQ(Complaints("rules: [{ name: r, deny: true, scope: node }]"),
            "1:32 `scope` means nothing with `deny: true` = leave one of the two out\n");
}

TEST(SharingTest, LeasesAreOffUnlessToldOtherwise) {
  const auto lease = [](const std::string& fields) {
    return RuleOf("limit: 5000/s" + fields).lease;
  };
  EXPECT_FALSE(lease(""));
  EXPECT_FALSE(lease(", lease: off"));
  EXPECT_EQ(lease(", lease: auto")->most, 0u);
  EXPECT_EQ(lease(", lease: auto")->length, 0ns);
  EXPECT_EQ(lease(", lease: { max: 100 }")->most, 100u);
  EXPECT_EQ(lease(", lease: { max: 100, for: 20ms }")->length, 20ms);
}

TEST(SharingTest, ALeaseIsRefusedWhereItMeansNothing) {
  const std::string some = "limit: 5000/s, lease: auto, ";
  EXPECT_EQ(Told(some + "scope: node"),
            "`lease` means nothing with `scope: node`, which needs no store = leave one of the two "
            "out\n");
  EXPECT_EQ(Told(some + "mode: shadow"),
            "`lease` is not for shadow rules, which deny nobody = leave one of the two out\n");
  EXPECT_EQ(Told(some + "charge_denied: true"),
            "`lease` means nothing with `charge_denied`: all that is denied is charged = leave one "
            "of the two out\n");
  EXPECT_EQ(
      Told(some + "block_for: 1s"),
      "`lease` means nothing with `block_for`, which the store looks at = leave one of the two "
      "out\n");
  const std::string hint = " = what is taken in bulk there would not keep the limit\n";
  EXPECT_EQ(Told("limit: 5, algorithm: concurrency, slot_ttl: 9s, lease: auto"),
            "`lease` is not for concurrency 5 in flight, for 9s each" + hint);
  EXPECT_EQ(Told("limit: 500/s, algorithm: sliding-window-counter, lease: auto"),
            "`lease` is not for sliding-window-counter 500/s" + hint);
  EXPECT_EQ(Complaints("rules: [{ name: r, deny: true, lease: auto }]"),
            "1:32 `lease` means nothing with `deny: true` = leave one of the two out\n");
}

TEST(SharingTest, ALeaseHasASizeThatTheLimitCanGive) {
  const auto of_plans = [](const std::string& fields) {
    return Told(fields, kRedis + "plans: { file: /dev/null, key: ip }\n");
  };
  EXPECT_EQ(
      Told("limit: 5000/s, lease: { for: 600ms }"),
      "`for` must be at most 500ms, half of the time in which token-bucket 5000/s, burst 5000 "
      "comes back, got 600ms = or write `lease: auto`\n");
  EXPECT_EQ(
      of_plans("limit: 5000/s, plans: { free: { limit: 5/s, burst: 2 } }, lease: { for: 300ms }"),
      "`for` must be at most 200ms, half of the time in which token-bucket 5/s, burst 2 comes "
      "back, got 300ms = or write `lease: auto`\n");
  EXPECT_EQ(Told("limit: 5000/s, lease: { max: 7 }"), "`max` must be at least 8, got 7\n");
  EXPECT_EQ(Told("limit: 5000/s, lease: { for: 1us }"), "`for` must be at least 1ms, got 1us\n");
  EXPECT_EQ(Told("limit: 5000/s, lease: {}"),
            "`lease` must say how much, or for how long = write `max`, `for` or both, or `auto`\n");
  EXPECT_EQ(Told("limit: 5/s, lease: auto"),
            "warning `lease` has no effect: of token-bucket 5/s, burst 5 less than 8 units can be "
            "taken at a time\n");
  EXPECT_EQ(of_plans("limit: 5/s, lease: auto, plans: { pro: { limit: 5000/s } }"), "");
}

TEST(SharingTest, ALeaseWithoutAStoreHasNoEffect) {
  EXPECT_EQ(Told("limit: 5000/s, lease: auto", ""),
            "warning `lease` has no effect without `store.redis`: all is counted in memory\n");
  EXPECT_EQ(Told("limit: 5000/s, lease: off", ""), "");
}

TEST(SharingTest, WarnsOfWhatHasNoEffect) {
  const std::string two =
      "rules:\n  - { name: a, key: ip, limit: 5/s, on_store_failure: open }\n"
      "  - { name: b, key: ip, limit: 5/s, on_store_failure: closed }\n";
  EXPECT_EQ(Complaints(two),
            "warning 2:55 `on_store_failure` has no effect without `store.redis`: all is counted "
            "in memory\n");
  EXPECT_EQ(Complaints(kRedis + two), "");
  EXPECT_EQ(Told("limit: 5/s, scope: node", "node: { count: 2 }\n"), "");
  EXPECT_EQ(Told("limit: 5/s, mode: shadow, on_store_failure: closed"),
            "warning `on_store_failure: closed` has no effect in a shadow rule, which never "
            "denies\n");
  EXPECT_EQ(Told("limit: 5, algorithm: concurrency"),
            "warning without `slot_ttl` the slots of a node that dies come back after 24 h only = "
            "write for example `slot_ttl: 30s`; a request that still runs keeps its slot\n");
  EXPECT_EQ(Told("limit: 5, algorithm: concurrency, scope: node"), "");
  EXPECT_EQ(Told("limit: 5, algorithm: concurrency", ""), "");
  EXPECT_EQ(Told("limit: 5/day, algorithm: calendar"), "") << "needs no snapshot";
}

TEST(SharingTest, RefusesWhatRedisCannotCount) {
  const std::string large = "algorithm: fixed-window, limit: 2_000_000G/s";
  EXPECT_EQ(Complaints(File(large, kRedis)),
            "3:57 `limit` is 2000000000000000, and Redis counts up to 1125899906842624 units "
            "exactly\n");
  EXPECT_EQ(Told(large + ", scope: node"), "");
  EXPECT_EQ(Told(large, ""), "");
  EXPECT_EQ(Told("limit: 1/day, burst: 40k"),
            "`burst` takes longer than 100 years to pay back, which cannot be counted in Redis: "
            "40000 units at 1 per 86400000000000 ns\n");
}

}  // namespace
}  // namespace sluice::config
