// Where a part of a key, or a plan's name, is found in a request.
//
//   key: [api_key, route]      two sources: the header behind api_key, and the matched pattern
//
// A value given twice and differently (two X-API-Key headers, a=1&a=2) is ambiguous: the upstream
// may take the other one, so a client could choose its counter by adding one. It counts as missing.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "sluice/base/ascii.h"
#include "sluice/base/bytes.h"
#include "sluice/rule/request.h"

namespace sluice {

enum class SourceKind : std::uint8_t {
  kGlobal,  // one counter for everybody
  kIp,      // the client's address or network
  kHeader,  // named; names compared without case
  kCookie,  // named; names compared as written
  kQuery,   // named; name and value percent-decoded, + is a space
  kMethod,
  kHost,       // lower case, without a port
  kRoute,      // the rule's path pattern that matched
  kRegion,     // node.region
  kAttribute,  // named; what the door passes on
};

struct Source {
  SourceKind kind = SourceKind::kGlobal;
  std::string name;   // of the header, cookie, parameter or attribute; else empty
  std::string label;  // as the configuration calls it: "api_key", "header.X-Org", "ip"

  friend bool operator==(const Source&, const Source&) = default;
};

// The raw value of a named source: views into the request, or into `buffer` where it had to be
// decoded. Nothing: missing, empty, or ambiguous. Handles kHeader, kCookie, kQuery, kMethod, kHost,
// kAttribute; the others need what only the rule set knows.
[[nodiscard]] std::optional<std::string_view> FindValue(const Source& source,
                                                        const LimitRequest& request,
                                                        std::string& buffer);

// Whether two header names are the same (ASCII, without case). Most clients write a name as its
// documentation does.
[[nodiscard]] inline bool SameHeader(std::string_view a, std::string_view b) {
  return a.size() == b.size() && (SameBytes(a, b) || EqualsIgnoringCase(a, b));
}

// The host of an authority: lower case, without port and trailing dot; into `buffer` where it had
// to be changed.
[[nodiscard]] std::string_view NormalHost(std::string_view authority, std::string& buffer);

}  // namespace sluice
