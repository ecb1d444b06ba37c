#include "sluice/transport/dialects.h"

#include <algorithm>
#include <charconv>

#include "sluice/base/ascii.h"
#include "sluice/net/http1_parser.h"

namespace sluice::transport {
namespace {

constexpr std::array<std::string_view, kLimitFields> kNames = {
    "RateLimit-Policy", "RateLimit",         "RateLimit-Limit",       "RateLimit-Remaining",
    "RateLimit-Reset",  "X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset"};

// Digits alone, and no more of them than a structured field may hold.
std::optional<std::uint64_t> ReadNumber(std::string_view text) {
  constexpr std::size_t kMaxDigits = 15;
  std::uint64_t number = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  if (text.empty() || text.size() > kMaxDigits || error != std::errc() || stop != end) {
    return std::nullopt;
  }
  return number;
}

bool IsBlank(char c) { return c == ' ' || c == '\t'; }

void SkipBlanks(std::string_view* text) {
  while (!text->empty() && IsBlank(text->front())) text->remove_prefix(1);
}

// Takes a string with its quotes off the front of the text.
bool TakeString(std::string_view* text) {
  if (!text->starts_with('"')) return false;
  for (std::size_t i = 1; i < text->size(); ++i) {
    const char c = (*text)[i];
    if (c == '"') {
      text->remove_prefix(i + 1);
      return true;
    }
    if (c < ' ' || c > '~') return false;
    if (c != '\\') continue;
    ++i;
    if (i == text->size() || ((*text)[i] != '"' && (*text)[i] != '\\')) return false;
  }
  return false;
}

// Takes off the front what `is_part` says yes to. False: that is nothing.
template <class IsPart>
bool TakeWhile(std::string_view* text, IsPart is_part) {
  const auto end = std::find_if_not(text->begin(), text->end(), is_part);
  const auto size = static_cast<std::size_t>(end - text->begin());
  text->remove_prefix(size);
  return size > 0;
}

bool IsLowerLetter(char c) { return IsLetter(c) && Lower(c) == c; }

// A parameter's name (RFC 9651, 3.1.2).
bool TakeKey(std::string_view* text) {
  if (text->empty() || (!IsLowerLetter(text->front()) && text->front() != '*')) return false;
  return TakeWhile(text, [](char c) {
    return IsLowerLetter(c) || IsDigit(c) || c == '_' || c == '-' || c == '.' || c == '*';
  });
}

// An integer of up to 15 digits, or a decimal of up to 12 and 3 (3.3.1, 3.3.2).
bool TakeNumber(std::string_view* text) {
  if (text->starts_with('-')) text->remove_prefix(1);
  const std::size_t before = text->size();
  if (!TakeWhile(text, IsDigit)) return false;
  const std::size_t whole = before - text->size();
  if (!text->starts_with('.')) return whole <= 15;
  text->remove_prefix(1);
  const std::size_t behind = text->size();
  return TakeWhile(text, IsDigit) && whole <= 12 && behind - text->size() <= 3;
}

// `?0` or `?1` (3.3.6).
bool TakeBoolean(std::string_view* text) {
  const bool taken = text->starts_with("?0") || text->starts_with("?1");
  if (taken) text->remove_prefix(2);
  return taken;
}

bool TakeToken(std::string_view* text) {
  return TakeWhile(text, [](char c) { return IsTokenChar(c) || c == ':' || c == '/'; });
}

// Bytes stand between colons and may end in equals signs.
bool TakeBytes(std::string_view* text) {
  const std::size_t end = text->find(':', 1);
  if (!text->starts_with(':') || end == text->npos) return false;
  const std::string_view bytes = text->substr(1, end - 1);
  text->remove_prefix(end + 1);
  return std::all_of(bytes.begin(), bytes.end(), [](char c) {
    return IsLetter(c) || IsDigit(c) || c == '+' || c == '/' || c == '=';
  });
}

// An item without parameters of its own, told by its first sign.
bool TakeValue(std::string_view* text) {
  const char first = text->empty() ? '\0' : text->front();
  if (first == '"') return TakeString(text);
  if (first == ':') return TakeBytes(text);
  if (first == '?') return TakeBoolean(text);
  if (first == '-' || IsDigit(first)) return TakeNumber(text);
  return (IsLetter(first) || first == '*') && TakeToken(text);
}

bool TakeParameters(std::string_view* text) {
  while (text->starts_with(';')) {
    text->remove_prefix(1);
    while (text->starts_with(' ')) text->remove_prefix(1);
    if (!TakeKey(text)) return false;
    if (!text->starts_with('=')) continue;
    text->remove_prefix(1);
    if (!TakeValue(text)) return false;
  }
  return true;
}

}  // namespace

std::string_view NameOf(LimitField field) { return kNames[static_cast<std::size_t>(field)]; }

std::optional<LimitField> FindLimitField(std::string_view name) {
  // Most fields of most answers begin with another letter.
  if (name.empty() || (Lower(name.front()) != 'r' && Lower(name.front()) != 'x')) {
    return std::nullopt;
  }
  for (std::size_t i = 0; i < kNames.size(); ++i) {
    if (EqualsIgnoringCase(name, kNames[i])) return static_cast<LimitField>(i);
  }
  return std::nullopt;
}

bool Writes(const HeaderDialects& dialects, LimitField field) {
  switch (field) {
    case LimitField::kPolicy:
      return dialects.draft_11 || dialects.draft_07 || dialects.draft_06;
    case LimitField::kRateLimit:
      return dialects.draft_11 || dialects.draft_07;
    case LimitField::kLimit:
    case LimitField::kRemaining:
    case LimitField::kReset:
      return dialects.draft_06;
    case LimitField::kXLimit:
    case LimitField::kXRemaining:
    case LimitField::kXReset:
      break;
  }
  return dialects.any_x();
}

void UpstreamLimits::Add(LimitField field, std::string_view value) {
  if (value.empty()) return;
  std::string& list = values_[static_cast<std::size_t>(field)];
  if (!list.empty()) list.append(", ");
  list.append(value);
}

void UpstreamLimits::Clear() {
  for (std::string& value : values_) value.clear();
}

bool IsListOfStrings(std::string_view text) {
  while (true) {
    SkipBlanks(&text);
    if (!TakeString(&text) || !TakeParameters(&text)) return false;
    SkipBlanks(&text);
    if (text.empty()) return true;
    if (text.front() != ',') return false;
    text.remove_prefix(1);
  }
}

std::optional<SaidOfOne> ReadDictionary(std::string_view text) {
  std::optional<std::uint64_t> remaining;
  std::optional<std::uint64_t> reset;
  net::ForEachListItem(text, [&](std::string_view item) {
    const std::size_t equals = item.find('=');
    if (equals == item.npos) return;
    const std::string_view name = item.substr(0, equals);
    if (name == "remaining") remaining = ReadNumber(item.substr(equals + 1));
    if (name == "reset") reset = ReadNumber(item.substr(equals + 1));
  });
  if (!remaining || !reset) return std::nullopt;
  return SaidOfOne{*remaining, *reset};
}

std::optional<SaidOfOne> ReadNumbers(std::string_view remaining, std::string_view reset) {
  const auto read_remaining = ReadNumber(remaining);
  const auto read_reset = ReadNumber(reset);
  if (!read_remaining || !read_reset) return std::nullopt;
  return SaidOfOne{*read_remaining, *read_reset};
}

}  // namespace sluice::transport
