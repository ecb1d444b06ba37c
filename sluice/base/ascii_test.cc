#include "sluice/base/ascii.h"

#include <gtest/gtest.h>

#include <cctype>
#include <string>

namespace sluice {
namespace {

TEST(AsciiTest, EveryByteIsWhatTheCLocaleSaysItIs) {
  for (int byte = 0; byte < 256; ++byte) {
    SCOPED_TRACE(byte);
    const char c = static_cast<char>(byte);
    EXPECT_EQ(IsDigit(c), std::isdigit(byte) != 0);
    EXPECT_EQ(IsLetter(c), std::isalpha(byte) != 0);
    EXPECT_EQ(Lower(c), static_cast<char>(std::tolower(byte)));
    const std::string hex(1, c);
    EXPECT_EQ(HexValue(c), std::isxdigit(byte) != 0 ? std::stoi(hex, nullptr, 16) : -1);
  }
}

TEST(AsciiTest, ATokenHasNoSeparatorNoBlankAndNoControl) {
  const std::string_view separators = "\"(),/:;<=>?@[\\]{}";
  for (int byte = 0; byte < 256; ++byte) {
    SCOPED_TRACE(byte);
    const char c = static_cast<char>(byte);
    const bool visible = byte > 0x20 && byte < 0x7f;
    EXPECT_EQ(IsTokenChar(c), visible && separators.find(c) == separators.npos);
  }
  EXPECT_TRUE(IsToken("X-API-Key"));
  EXPECT_FALSE(IsToken("X Key"));
  EXPECT_FALSE(IsToken(""));
}

TEST(AsciiTest, OnlyTheCaseOfLettersIsIgnored) {
  EXPECT_TRUE(EqualsIgnoringCase("X-API-Key", "x-api-KEY"));
  EXPECT_TRUE(EqualsIgnoringCase("", ""));
  EXPECT_FALSE(EqualsIgnoringCase("key", "keys"));
  EXPECT_FALSE(EqualsIgnoringCase("[", "{"));        // 32 apart, like a letter and its other case
  EXPECT_FALSE(EqualsIgnoringCase("\xc4", "\xe4"));  // so are these, in Latin-1
}

TEST(AsciiTest, TrimTakesBlanksOffBothEndsAndLeavesTheInside) {
  const struct {
    std::string_view text;
    std::string_view trimmed;
  } rows[] = {
      {"a", "a"}, {" \ta b\t ", "a b"}, {"", ""}, {" \t ", ""}, {"a\r", "a\r"},  // no blank in HTTP
  };
  for (const auto& row : rows) EXPECT_EQ(Trim(row.text), row.trimmed) << row.text;
  EXPECT_EQ(Trim("\ta ", " "), "\ta");
}

TEST(AsciiTest, TakesQuotesOffOnlyWhereThereAreTwo) {
  EXPECT_EQ(Unquoted("\"a b\""), "a b");
  EXPECT_EQ(Unquoted("\"\""), "");
  for (const auto* text : {"", "\"", "a", "\"a", "a\""}) EXPECT_EQ(Unquoted(text), text);
}

}  // namespace
}  // namespace sluice
