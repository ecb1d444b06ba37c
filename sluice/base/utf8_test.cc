#include "sluice/base/utf8.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>

namespace sluice {
namespace {

// As the bits are laid out, whether or not that is allowed for `code`.
std::string Encoded(std::uint32_t code, std::size_t length) {
  if (length == 1) return std::string(1, static_cast<char>(code));
  std::string text(length, '\0');
  for (std::size_t i = length; i-- > 1; code >>= 6) text[i] = static_cast<char>(0x80 | (code & 63));
  text[0] = static_cast<char>((0xf00 >> length & 0xff) | code);
  return text;
}

std::size_t ShortestLength(std::uint32_t code) {
  return code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
}

TEST(Utf8Test, KnowsEveryCharacterInItsShortestFormAndNothingElse) {
  for (std::size_t length = 1; length <= 4; ++length) {
    const std::uint32_t end = length == 1 ? 0x80 : 1U << (length * 5 + 1);
    for (std::uint32_t code = 0; code < end; ++code) {
      const bool surrogate = code >= 0xd800 && code <= 0xdfff;
      const bool valid = length == ShortestLength(code) && !surrogate && code <= 0x10ffff;
      ASSERT_EQ(Utf8Length(Encoded(code, length)), valid ? length : 0) << code << " in " << length;
    }
  }
}

TEST(Utf8Test, ACharacterThatIsCutOffOrBrokenIsNone) {
  for (const std::uint32_t code : {0xe4U, 0x20acU, 0x1f600U}) {
    const std::string whole = Encoded(code, ShortestLength(code));
    EXPECT_EQ(Utf8Length(whole + "more"), whole.size());
    for (std::size_t i = 1; i < whole.size(); ++i) {
      EXPECT_EQ(Utf8Length(whole.substr(0, i)), 0U) << code;
      std::string broken = whole;
      broken[i] = 'x';
      EXPECT_EQ(Utf8Length(broken), 0U) << code;
    }
  }
  EXPECT_EQ(Utf8Length(""), 0U);
  EXPECT_EQ(Utf8Length("\x80"), 0U);  // a continuation of nothing
  EXPECT_EQ(Utf8Length("\xf8\x88\x80\x80\x80"), 0U);
}

}  // namespace
}  // namespace sluice
