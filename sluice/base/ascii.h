// Letters, digits and blanks of ASCII, whatever the locale: for protocols and configurations, whose
// words are ASCII. A byte above 0x7f is none of them, and is left as it is.
#pragma once

#include <algorithm>
#include <string_view>

namespace sluice {

[[nodiscard]] constexpr bool IsDigit(char c) { return c >= '0' && c <= '9'; }

[[nodiscard]] constexpr bool IsLetter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

[[nodiscard]] constexpr char Lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

// 0 to 15; -1 for what is no hex digit. Both cases are read.
[[nodiscard]] constexpr int HexValue(char c) {
  if (IsDigit(c)) return c - '0';
  c = Lower(c);
  return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

[[nodiscard]] constexpr bool EqualsIgnoringCase(std::string_view a, std::string_view b) {
  return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(),
                                            [](char x, char y) { return Lower(x) == Lower(y); });
}

// Without the blanks at both ends: those that HTTP allows there (RFC 9110, 5.6.3), or `blanks`.
[[nodiscard]] constexpr std::string_view Trim(std::string_view text) {
  const auto is_blank = [](char c) { return c == ' ' || c == '\t'; };
  while (!text.empty() && is_blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_blank(text.back())) text.remove_suffix(1);
  return text;
}
[[nodiscard]] constexpr std::string_view Trim(std::string_view text, std::string_view blanks) {
  text.remove_prefix(std::min(text.find_first_not_of(blanks), text.size()));
  text.remove_suffix(text.size() - (text.find_last_not_of(blanks) + 1));  // npos + 1 is 0
  return text;
}

// Without the double quotes around it, where there are two.
[[nodiscard]] constexpr std::string_view Unquoted(std::string_view text) {
  const bool quoted = text.size() >= 2 && text.front() == '"' && text.back() == '"';
  return quoted ? text.substr(1, text.size() - 2) : text;
}

// What methods and names of header fields are made of (RFC 9110, 5.6.2).
[[nodiscard]] constexpr bool IsTokenChar(char c) {
  constexpr std::string_view kOthers = "!#$%&'*+-.^_`|~";
  return IsLetter(c) || IsDigit(c) || kOthers.find(c) != std::string_view::npos;
}

[[nodiscard]] constexpr bool IsToken(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), IsTokenChar);
}

}  // namespace sluice
