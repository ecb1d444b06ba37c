#include "sluice/rule/path_pattern.h"

#include <gtest/gtest.h>

#include <string>

namespace sluice {
namespace {

PathPattern Pattern(std::string_view text, bool ignore_case = false) {
  auto pattern = PathPattern::Compile(text, ignore_case);
  EXPECT_TRUE(pattern.ok()) << pattern.status();
  return *std::move(pattern);
}

bool Limits(const PathPattern& pattern, std::string_view sent) {
  std::string buffer(PathBufferSize(sent.size()), '\0');
  return pattern.MatchesAnyReading(NormalizePath(sent, buffer));
}

bool Exempts(const PathPattern& pattern, std::string_view sent) {
  std::string buffer(PathBufferSize(sent.size()), '\0');
  return pattern.MatchesEveryReading(NormalizePath(sent, buffer));
}

TEST(PathPatternTest, CoversWhatItsHeaderSays) {
  const struct {
    std::string_view pattern;
    std::string_view sent;
    bool matches;
  } rows[] = {
      {"/v1/orders", "/v1/orders", true},
      {"/v1/orders", "/v1/orders/", true},
      {"/v1/orders/", "/v1/orders", true},
      {"/v1/orders", "/v1/orders?x=1", true},
      {"/v1/orders", "/v1/orders/7", false},
      {"/v1/orders", "/v1/order", false},
      {"/v1/orders", "/v1/ordersx", false},
      {"/v1/orders", "/v1/Orders", false},
      {"/v1/*/items", "/v1/7/items", true},
      {"/v1/*/items", "/v1/7/items/", true},
      {"/v1/*/items", "/v1/items", false},
      {"/v1/*/items", "/v1//items", false},
      {"/v1/*/items", "/v1/7/8/items", false},
      {"/v1/*", "/v1/7", true},
      {"/v1/*", "/v1", false},
      {"/v1/*", "/v1/7/8", false},
      {"/*", "/", false},
      {"/v1/**", "/v1", true},
      {"/v1/**", "/v1/", true},
      {"/v1/**", "/v1/a/b/c", true},
      {"/v1/**", "/v10", false},
      {"/**", "/", true},
      {"/**", "/a/b", true},
      {"/", "/", true},
      {"/", "/a", false},
      {"/v1/**/items", "/v1/items", true},
      {"/v1/**/items", "/v1/7/8/items", true},
      {"/v1/**/items", "/v1/items/7", false},
      {"/v1/**/*/items", "/v1/items", false},
      {"/v1/**/*/items", "/v1/7/items", true},
      {"/a/**/a", "/a", false},  // the two ends do not overlap
      {"/a/*/b/**/c/*", "/a/1/b/c/2", true},
      {"/a/*/b/**/c/*", "/a/1/x/c/2", false},
      {"/caf\xc3\xa9", "/caf%c3%a9", true},
  };
  for (const auto& row : rows) {
    EXPECT_EQ(Limits(Pattern(row.pattern), row.sent), row.matches)
        << row.pattern << " " << row.sent;
  }
}

TEST(PathPatternTest, NoOtherSpellingEscapesARule) {
  const PathPattern rule = Pattern("/api/login");
  for (const auto* sent : {"/api/login", "//api//login", "/api/login/", "/api/./login",
                           "/api/%6cogin", "/api/x/../login", "/api%2Flogin", "/api/x%2f..%2flogin",
                           "/health/..%2Fapi/login", "/%2e%2e/api/login?next=/health"}) {
    EXPECT_TRUE(Limits(rule, sent)) << sent;
  }
  // Case is the one choice that is left to the rule.
  EXPECT_FALSE(Limits(rule, "/API/login"));
  EXPECT_TRUE(Limits(Pattern("/api/login", true), "/API/login"));
  EXPECT_TRUE(Limits(Pattern("/API/*/X/**", true), "/api/7/x/y"));
}

TEST(PathPatternTest, AnExemptionNeedsEveryReading) {
  const PathPattern health = Pattern("/health/**");
  EXPECT_TRUE(Exempts(health, "/health/live"));
  EXPECT_TRUE(Exempts(health, "/health/a%2Fb"));
  EXPECT_FALSE(Exempts(health, "/health/..%2Fapi/login"));
  EXPECT_FALSE(Exempts(health, "/api%2F..%2Fhealth"));
  EXPECT_FALSE(Exempts(health, "/health/../api/login"));
}

TEST(PathPatternTest, KeepsItsTextForTheRoute) {
  EXPECT_EQ(Pattern("/v1/*/items/").text(), "/v1/*/items/");
}

TEST(PathPatternTest, SaysWhatToWriteInstead) {
  const struct {
    std::string_view pattern;
    std::string_view message;
  } rows[] = {
      {"", "`` does not begin with `/`"},
      {"v1/orders", "`v1/orders` does not begin with `/`"},
      {"/v1?x=1", "`/v1?x=1` has a `?`; the query is no part of a path, leave it out"},
      {"/users/{id}", "`/users/{id}` has `{}`; for any one segment write `*`"},
      {"/a/%2A", "`/a/%2A` has an escaped `*`; for any one segment write `*`"},
      {"/files/*.json", "`/files/*.json` has a `*` inside a segment; it stands for a whole one"},
      {"/***", "`/***` has a `*` inside a segment; it stands for a whole one"},
      {"/**/a/**", "`/**/a/**` has `**` twice; once is the most"},
      {"/a b", "`/a b` is no path: the path has a blank, a control character, `\\` or `#`"},
      {"/%zz", "`/%zz` is no path: `%` in the path is not followed by two hex digits, or is %00"},
  };
  for (const auto& row : rows) {
    const auto pattern = PathPattern::Compile(row.pattern);
    ASSERT_FALSE(pattern.ok()) << row.pattern;
    EXPECT_EQ(pattern.status().message(),
              absl::string_view(row.message.data(), row.message.size()));
  }
}

}  // namespace
}  // namespace sluice
