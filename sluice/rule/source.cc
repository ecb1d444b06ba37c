#include "sluice/rule/source.h"

#include <algorithm>

#include "sluice/base/ascii.h"

namespace sluice {
namespace {

std::optional<std::string_view> NotEmpty(std::string_view text) {
  if (text.empty()) return std::nullopt;
  return text;
}

// Gathers the values of one name: one value, the same one again, or none.
class OneValue {
 public:
  void Add(std::string_view value) {
    ambiguous_ = ambiguous_ || (found_ && value != value_);
    value_ = value;
    found_ = true;
  }
  [[nodiscard]] std::optional<std::string_view> Get() const {
    if (!found_ || ambiguous_ || value_.empty()) return std::nullopt;
    return value_;
  }

 private:
  std::string_view value_;
  bool found_ = false;
  bool ambiguous_ = false;
};

std::optional<std::string_view> FindHeader(std::string_view name, const LimitRequest& request) {
  const Field* found = nullptr;
  for (const Field& field : request.headers) {
    if (!SameHeader(field.name, name)) continue;
    if (found != nullptr && Trim(field.value) != Trim(found->value)) return std::nullopt;
    found = &field;
  }
  if (found == nullptr) return std::nullopt;
  return NotEmpty(Trim(found->value));
}

std::optional<std::string_view> FindCookie(std::string_view name, const LimitRequest& request) {
  OneValue one;
  for (const Field& field : request.headers) {
    if (!SameHeader(field.name, "cookie")) continue;
    std::string_view rest = field.value;
    while (!rest.empty()) {
      const std::string_view pair = Trim(rest.substr(0, rest.find(';')));
      rest.remove_prefix(
          std::min(rest.size(), rest.find(';') == rest.npos ? rest.size() : rest.find(';') + 1));
      const std::size_t equals = pair.find('=');
      if (equals != pair.npos && Trim(pair.substr(0, equals)) == name) {
        // In quotes, too, which most servers take off (RFC 6265, 5.2 and 4.1.1).
        one.Add(Unquoted(Trim(pair.substr(equals + 1))));
      }
    }
  }
  return one.Get();
}

// Percent-decodes form-encoded text onto the end of `out`. An escape that is none stays as it is.
void AppendDecoded(std::string_view text, std::string& out) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%' && i + 2 < text.size() && HexValue(text[i + 1]) >= 0 &&
        HexValue(text[i + 2]) >= 0) {
      out.push_back(static_cast<char>(HexValue(text[i + 1]) * 16 + HexValue(text[i + 2])));
      i += 2;
    } else {
      out.push_back(text[i] == '+' ? ' ' : text[i]);
    }
  }
}

std::optional<std::string_view> FindQuery(std::string_view name, const LimitRequest& request,
                                          std::string& buffer) {
  const std::size_t question = request.target.find('?');
  if (question == request.target.npos) return std::nullopt;
  std::string_view rest = request.target.substr(question + 1);
  buffer.clear();
  // Views into the buffer come last, when it grows no more.
  std::optional<std::pair<std::size_t, std::size_t>> value;
  bool ambiguous = false;
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find('&'), rest.size());
    const std::string_view pair = rest.substr(0, end);
    rest.remove_prefix(std::min(rest.size(), end + 1));
    const std::size_t equals = std::min(pair.find('='), pair.size());
    const std::size_t mark = buffer.size();
    AppendDecoded(pair.substr(0, equals), buffer);
    const bool ours = std::string_view(buffer).substr(mark) == name;
    buffer.resize(mark);
    if (!ours) continue;
    if (equals < pair.size()) AppendDecoded(pair.substr(equals + 1), buffer);
    const std::size_t size = buffer.size() - mark;
    const auto at = [&buffer](auto span) {
      return std::string_view(buffer).substr(span.first, span.second);
    };
    ambiguous = ambiguous || (value && at(*value) != at(std::pair(mark, size)));
    value = {mark, size};
  }
  if (!value || ambiguous || value->second == 0) return std::nullopt;
  return std::string_view(buffer).substr(value->first, value->second);
}

std::optional<std::string_view> FindAttribute(std::string_view name, const LimitRequest& request) {
  OneValue one;
  for (const Field& field : request.attributes) {
    if (field.name == name) one.Add(field.value);
  }
  return one.Get();
}

}  // namespace

std::string_view NormalHost(std::string_view authority, std::string& buffer) {
  const std::size_t bracket = authority.rfind(']');
  const std::size_t colon = authority.rfind(':');
  if (colon != authority.npos && (bracket == authority.npos || colon > bracket)) {
    authority = authority.substr(0, colon);
  }
  while (authority.ends_with('.')) authority.remove_suffix(1);
  const auto is_upper = [](char c) { return c >= 'A' && c <= 'Z'; };
  if (std::none_of(authority.begin(), authority.end(), is_upper)) return authority;
  buffer.resize(authority.size());
  std::transform(authority.begin(), authority.end(), buffer.begin(), Lower);
  return buffer;
}

std::optional<std::string_view> FindValue(const Source& source, const LimitRequest& request,
                                          std::string& buffer) {
  switch (source.kind) {
    case SourceKind::kHeader:
      return FindHeader(source.name, request);
    case SourceKind::kCookie:
      return FindCookie(source.name, request);
    case SourceKind::kQuery:
      return FindQuery(source.name, request, buffer);
    case SourceKind::kMethod:
      return NotEmpty(request.method);
    case SourceKind::kHost:
      return NotEmpty(NormalHost(request.host, buffer));
    case SourceKind::kAttribute:
      return FindAttribute(source.name, request);
    case SourceKind::kGlobal:
    case SourceKind::kIp:
    case SourceKind::kRoute:
    case SourceKind::kRegion:
      break;
  }
  return std::nullopt;
}

}  // namespace sluice
