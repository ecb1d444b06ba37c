#include "sluice/rule/client_address.h"

#include <algorithm>
#include <cstddef>
#include <optional>

#include "sluice/base/ascii.h"
#include "sluice/rule/source.h"

namespace sluice {
namespace {

// Takes the rightmost part of `text` that `separator` cuts off; separators inside quotes do not
// count. Read from the right on purpose: an open quote that the client put further left must not
// swallow what a proxy appended. An escaped quote is one with an odd number of backslashes before
// it.
std::string_view TakeLast(std::string_view& text, char separator) {
  bool quoted = false;
  std::size_t i = text.size();
  for (; i > 0; --i) {
    const char c = text[i - 1];
    if (c == '"') {
      std::size_t backslashes = 0;
      while (backslashes < i - 1 && text[i - 2 - backslashes] == '\\') ++backslashes;
      if (!quoted || backslashes % 2 == 0) quoted = !quoted;
      i -= backslashes;
    } else if (c == separator && !quoted) {
      break;
    }
  }
  const std::string_view last = text.substr(i);
  text = text.substr(0, i == 0 ? 0 : i - 1);
  return Trim(last);
}

// RFC 7239 lets a proxy hide the port, too: `192.0.2.1:_gazonk`.
std::string_view WithoutHiddenPort(std::string_view node) {
  return node.substr(0, node.rfind(":_"));
}

// The address that one element of the list names.
std::optional<IpAddress> AddressOf(std::string_view element, ForwardedHeader header) {
  if (header == ForwardedHeader::kXForwardedFor) return IpAddress::Parse(Unquoted(element));

  std::optional<IpAddress> found;
  bool seen = false;
  while (!element.empty()) {
    const std::string_view pair = TakeLast(element, ';');
    const std::size_t equals = pair.find('=');
    if (equals == pair.npos || !EqualsIgnoringCase(pair.substr(0, equals), "for")) continue;
    if (seen) return std::nullopt;  // whom to believe is anybody's guess
    seen = true;
    found = IpAddress::Parse(WithoutHiddenPort(Unquoted(pair.substr(equals + 1))));
  }
  return found;
}

}  // namespace

bool IsTrustedProxy(const ClientAddressOptions& options, IpAddress peer) {
  return std::any_of(options.trusted_proxies.begin(), options.trusted_proxies.end(),
                     [&](const IpPrefix& range) { return range.Contains(peer); });
}

IpAddress ClientAddress(const ClientAddressOptions& options, IpAddress peer,
                        std::span<const Field> headers) {
  IpAddress client = peer;
  if (!IsTrustedProxy(options, peer)) return client;
  const std::string_view name =
      options.header == ForwardedHeader::kForwarded ? "forwarded" : "x-forwarded-for";
  for (std::size_t i = headers.size(); i > 0; --i) {
    if (!SameHeader(headers[i - 1].name, name)) continue;
    std::string_view rest = headers[i - 1].value;
    while (!rest.empty()) {
      const std::string_view element = TakeLast(rest, ',');
      if (element.empty()) continue;
      const auto address = AddressOf(element, options.header);
      if (!address) return client;
      client = *address;
      if (!IsTrustedProxy(options, client)) return client;
    }
  }
  return client;
}

}  // namespace sluice
