#include "sluice/rule/source.h"

#include <gtest/gtest.h>

#include <vector>

namespace sluice {
namespace {

using Fields = std::vector<Field>;

std::optional<std::string> Find(SourceKind kind, std::string name, const Fields& headers,
                                std::string_view target = "/") {
  const LimitRequest request{.method = "GET", .target = target, .headers = headers};
  std::string buffer;
  const Source source{.kind = kind, .name = std::move(name), .label = ""};
  const auto value = FindValue(source, request, buffer);
  if (!value) return std::nullopt;
  return std::string(*value);
}

TEST(SourceTest, FindsAHeaderWhateverTheCaseOfItsName) {
  for (const char* name : {"X-API-KEY", "x-api-key", "X-Api-Key"}) {
    EXPECT_EQ(Find(SourceKind::kHeader, "X-API-Key", {{name, "ann"}}), "ann") << name;
  }
}

TEST(SourceTest, TrimsSpacesAroundAHeaderValueAndTakesAnEmptyOneForMissing) {
  EXPECT_EQ(Find(SourceKind::kHeader, "K", {{"k", " \tann "}}), "ann");
  EXPECT_EQ(Find(SourceKind::kHeader, "K", {{"k", "  "}}), std::nullopt);
}

TEST(SourceTest, TakesAHeaderGivenTwiceWithDifferentValuesForMissing) {
  EXPECT_EQ(Find(SourceKind::kHeader, "K", {{"k", "ann"}, {"K", "bob"}}), std::nullopt);
  EXPECT_EQ(Find(SourceKind::kHeader, "K", {{"k", "ann"}, {"K", "ann"}}), "ann");
}

TEST(SourceTest, FindsOneCookieAmongOthers) {
  const Fields headers = {{"Cookie", "a=1; session=abc=def; b=2"}, {"cookie", "c=3"}};
  EXPECT_EQ(Find(SourceKind::kCookie, "session", headers), "abc=def");
  EXPECT_EQ(Find(SourceKind::kCookie, "c", headers), "3");
  EXPECT_EQ(Find(SourceKind::kCookie, "Session", headers), std::nullopt);
  EXPECT_EQ(Find(SourceKind::kCookie, "essio", headers), std::nullopt);
}

TEST(SourceTest, NoSpellingOfACookieMakesANewKey) {
  for (const char* cookies : {"sid=x", "sid= x", "sid=\t x ; a=1", "sid=\"x\"", "sid =x"}) {
    EXPECT_EQ(Find(SourceKind::kCookie, "sid", {{"Cookie", cookies}}), "x") << cookies;
  }
}

TEST(SourceTest, DecodesAQueryParameterSoThatNoSpellingMakesANewKey) {
  for (const char* target :
       {"/x?key=abc", "/x?a=1&key=ab%63", "/x?k%65y=abc&b", "/x?&&key=%61bc"}) {
    EXPECT_EQ(Find(SourceKind::kQuery, "key", {}, target), "abc") << target;
  }
  EXPECT_EQ(Find(SourceKind::kQuery, "key", {}, "/x?key=a+b%2zc%"), "a b%2zc%");
}

TEST(SourceTest, TakesAQueryParameterGivenTwiceDifferentlyForMissing) {
  EXPECT_EQ(Find(SourceKind::kQuery, "key", {}, "/x?key=a&key=b"), std::nullopt);
  EXPECT_EQ(Find(SourceKind::kQuery, "key", {}, "/x?key=a&key=%61"), "a");
  EXPECT_EQ(Find(SourceKind::kQuery, "key", {}, "/x?key="), std::nullopt);
  EXPECT_EQ(Find(SourceKind::kQuery, "key", {}, "/x?key"), std::nullopt);
  EXPECT_EQ(Find(SourceKind::kQuery, "key", {}, "/x"), std::nullopt);
}

TEST(SourceTest, NormalisesTheHost) {
  std::string buffer;
  EXPECT_EQ(NormalHost("API.Example.com:8080", buffer), "api.example.com");
  EXPECT_EQ(NormalHost("api.example.com.", buffer), "api.example.com");
  EXPECT_EQ(NormalHost("api.example.com..", buffer), "api.example.com");
  EXPECT_EQ(NormalHost("[2001:DB8::1]:443", buffer), "[2001:db8::1]");
  EXPECT_EQ(NormalHost("[2001:db8::1]", buffer), "[2001:db8::1]");
}

TEST(SourceTest, FindsWhatTheDoorPassesOn) {
  const Fields attributes = {{"tenant", "t1"}, {"device", ""}};
  const LimitRequest request{.attributes = attributes};
  std::string buffer;
  EXPECT_EQ(
      FindValue({.kind = SourceKind::kAttribute, .name = "tenant", .label = ""}, request, buffer),
      "t1");
  EXPECT_EQ(
      FindValue({.kind = SourceKind::kAttribute, .name = "device", .label = ""}, request, buffer),
      std::nullopt);
}

}  // namespace
}  // namespace sluice
