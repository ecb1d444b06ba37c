// Fields of one rule, through the whole reader. What all rules have in common: load_test.cc.
#include <gtest/gtest.h>

#include <string>

#include "sluice/config/load.h"

namespace sluice::config {
namespace {

using namespace std::chrono_literals;

LoadResult LoadRule(const std::string& fields) {
  return LoadText("f", "rules:\n  - { name: r, " + fields + " }\n", "/nowhere", 1);
}

// What is wrong with a rule of these fields: "message = hint", a line each.
std::string Complaints(const std::string& fields) {
  std::string all;
  for (const Diagnostic& one : LoadRule(fields).diagnostics.Sorted()) {
    all += one.message + (one.hint.empty() ? "" : " = " + one.hint) + "\n";
  }
  return all;
}

TEST(RuleReaderTest, ABlockLastsFromAMillisecondToAYear) {
  const struct {
    std::string written;
    Duration length;
  } rows[] = {{"1ms", 1ms}, {"900ms", 900ms}, {"15m", 15min}, {"365d", 24h * 365}};
  for (const auto& row : rows) {
    const LoadResult result = LoadRule("key: ip, limit: 5/min, block_for: " + row.written);
    ASSERT_TRUE(result.config.has_value()) << result.diagnostics.Text();
    EXPECT_EQ(result.config->rules->rules()[0].block_for, row.length);
  }
  const LoadResult without = LoadRule("key: ip, limit: 5/min");
  ASSERT_TRUE(without.config.has_value());
  EXPECT_EQ(without.config->rules->rules()[0].block_for, 0s);
  EXPECT_EQ(Complaints("key: ip, limit: 5/min, block_for: 999us"),
            "`block_for` must be at least 1ms, got 999us\n");
  EXPECT_EQ(Complaints("key: ip, limit: 5/min, block_for: 366d"),
            "`block_for` must be at most 365d, got 366d\n");
  EXPECT_EQ(Complaints("key: ip, limit: 5/min, block_for: 60"),
            "`block_for` must have a unit, got `60` = write for example `60s` or `60ms`\n");
  EXPECT_EQ(Complaints("deny: true, block_for: 1m"),
            "`block_for` means nothing with `deny: true` = leave one of the two out\n");
}

}  // namespace
}  // namespace sluice::config
