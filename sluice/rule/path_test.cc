#include "sluice/rule/path.h"

#include <gtest/gtest.h>

#include <string>

namespace sluice {
namespace {

struct Result {
  std::string literal;
  std::string split;
  PathError error;
};

Result Normalize(std::string_view target) {
  std::string buffer(PathBufferSize(target.size()), '\0');
  const NormalPath path = NormalizePath(target, buffer);
  return {std::string(path.literal), std::string(path.split), path.error};
}

TEST(PathTest, AllSpellingsOfAPathBecomeOne) {
  const struct {
    std::string_view sent;
    std::string_view normal;
  } rows[] = {
      {"/api/login", "/api/login"},
      {"//api//login", "/api/login"},
      {"/api/./login", "/api/login"},
      {"/api/%6cogin", "/api/login"},
      {"/api/%6Cogin", "/api/login"},
      {"/api/x/../login", "/api/login"},
      {"/api/%2e/login", "/api/login"},
      {"/api/x/%2E%2e/login", "/api/login"},
      {"/../api/login", "/api/login"},
      {"/api/login?user=../..//%zz", "/api/login"},
      {"/api/%6cogin?x", "/api/login"},
      {"/api/login/", "/api/login/"},  // PathPattern takes it for the same
      {"/API/login", "/API/login"},    // case is kept
      {"/api/login/.", "/api/login/"},
      {"/api/login/x/..", "/api/login/"},
      {"/", "/"},
      {"/?", "/"},
      {"//", "/"},
      {"/.", "/"},
      {"/..", "/"},
      {"/../../..", "/"},
      {"/...", "/..."},
      {"/.well-known/x", "/.well-known/x"},
      {"/..x/.y", "/..x/.y"},
      {"/a/b/../../c", "/c"},
      {"/a//b/../c", "/a/c"},  // every server agrees: `b` goes
      {"/a%3bb", "/a;b"},
      {"/a%21", "/a!"},
      {"/a%20b", "/a%20b"},
      {"/a%3f", "/a%3F"},
      {"/a%253f", "/a%253f"},  // decoded once: `%25` is a per cent sign
      {"/caf\xc3\xa9", "/caf%C3%A9"},
      {"/caf%c3%a9", "/caf%C3%A9"},
      {"/\xff", "/%FF"},  // no UTF-8, and no harm
      {"/{a}|\"", "/%7Ba%7D%7C%22"},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.sent);
    const Result result = Normalize(row.sent);
    EXPECT_EQ(result.error, PathError::kNone);
    EXPECT_EQ(result.literal, row.normal);
    EXPECT_EQ(result.split, row.normal);
  }
}

TEST(PathTest, AnEscapedSlashGivesTwoReadings) {
  const struct {
    std::string_view sent;
    std::string_view literal;
    std::string_view split;
  } rows[] = {
      {"/api%2Flogin", "/api%2Flogin", "/api/login"},
      {"/api%2flogin?x=%2f", "/api%2Flogin", "/api/login"},
      {"/health/..%2Fapi/login", "/health/..%2Fapi/login", "/api/login"},
      {"/projects/group%2Fname", "/projects/group%2Fname", "/projects/group/name"},
      {"/a/b%2F..", "/a/b%2F..", "/a/"},
      {"/%2F", "/%2F", "/"},
      {"/a%252Fb", "/a%252Fb", "/a%252Fb"},  // no slash, only the letters of its escape
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.sent);
    const Result result = Normalize(row.sent);
    EXPECT_EQ(result.error, PathError::kNone);
    EXPECT_EQ(result.literal, row.literal);
    EXPECT_EQ(result.split, row.split);
  }
}

TEST(PathTest, RefusesWhatServersReadDifferently) {
  using enum PathError;
  const struct {
    std::string_view sent;
    PathError error;
  } rows[] = {
      {"", kNotAbsolute},
      {"*", kNotAbsolute},
      {"http://x/", kNotAbsolute},
      {"?/", kNotAbsolute},
      {"/%", kBadEscape},
      {"/%4", kBadEscape},
      {"/%4?1", kBadEscape},
      {"/%zz", kBadEscape},
      {"/%u0041", kBadEscape},
      {"/a%00b", kBadEscape},
      {std::string_view("/a\0b", 4), kBadCharacter},
      {"/a b", kBadCharacter},
      {"/a\tb", kBadCharacter},
      {"/a\x7f", kBadCharacter},
      {"/api\\login", kBadCharacter},  // a slash to whoever follows the WHATWG's URL standard
      {"/api/login#x", kBadCharacter},
      {"/a//../b", kAmbiguous},
      {"/a//./../b", kAmbiguous},
      {"/a//b/../../c", kAmbiguous},
      {"/api/login//..", kAmbiguous},
      {"/a%2F/../b", kAmbiguous},  // in its second reading
  };
  for (const auto& row : rows) {
    EXPECT_EQ(Normalize(row.sent).error, row.error) << row.sent;
    EXPECT_FALSE(ToString(row.error).empty());
  }
}

TEST(PathTest, ANormalPathIsReturnedAsItCameAndNeedsNoBuffer) {
  const std::string_view sent = "/v1/orders/7?page=2";
  const NormalPath path = NormalizePath(sent, {});
  ASSERT_TRUE(path.ok());
  EXPECT_EQ(path.literal, "/v1/orders/7");
  EXPECT_EQ(path.literal.data(), sent.data());
  EXPECT_FALSE(path.has_two_readings());
}

TEST(PathTest, ATooSmallBufferRefusesAndNeverCuts) {
  const std::string_view sent = "//a%2Fb";  // "/a%2Fb" and "/a/b": ten bytes
  for (std::size_t size = 0; size < 10; ++size) {
    std::string buffer(size, '\0');
    EXPECT_EQ(NormalizePath(sent, buffer).error, PathError::kTooLong) << size;
  }
  std::string buffer(10, '\0');
  EXPECT_EQ(NormalizePath(sent, buffer).split, "/a/b");
}

// On random paths: what is normal stays so, the second reading has no escaped slash and is what the
// path means with slashes in their place, and no two bytes are one.
TEST(PathTest, TheNormalFormIsNormal) {
  constexpr std::string_view kParts[] = {"/", "/",   "/",   ".",   "..",   "a", "%2F", "%2e",
                                         "b", "%41", "%20", "%25", "\xe9", ";", "?"};
  unsigned state = 3;
  int two_readings = 0;
  for (int i = 0; i < 50'000; ++i) {
    std::string sent = "/";
    for (unsigned parts = i % 12; parts > 0; --parts) {
      state = state * 1664525 + 1013904223;
      sent += kParts[(state >> 16) % std::size(kParts)];
    }
    SCOPED_TRACE(sent);
    const Result result = Normalize(sent);
    if (result.error == PathError::kAmbiguous) continue;
    ASSERT_EQ(result.error, PathError::kNone);
    ASSERT_EQ(Normalize(result.literal).literal, result.literal);
    ASSERT_EQ(Normalize(result.split).split, result.split);
    ASSERT_EQ(result.split.find("%2F"), std::string::npos);
    ASSERT_EQ(result.literal.find("//"), std::string::npos);
    ASSERT_EQ((result.literal + "/").find("/./"), std::string::npos);
    ASSERT_EQ((result.literal + "/").find("/../"), std::string::npos);
    if (result.literal == result.split) continue;
    ++two_readings;
    std::string unescaped = sent.substr(0, sent.find('?'));
    for (std::size_t at; (at = unescaped.find("%2F")) != unescaped.npos;) {
      unescaped.replace(at, 3, "/");
    }
    ASSERT_EQ(Normalize(unescaped).literal, result.split);
  }
  EXPECT_GT(two_readings, 1000);
}

}  // namespace
}  // namespace sluice
