#include "sluice/transport/gateway/trailers.h"

#include <array>

#include "sluice/base/ascii.h"
#include "sluice/transport/gateway/forwarding.h"

namespace sluice::gateway {
namespace {

// Names, or beginnings of names.
constexpr std::array<std::string_view, 17> kNever = {
    "accept",      "age",     "authorization", "cache-control", "connection", "cookie",
    "date",        "expect",  "expires",       "host",          "te",         "location",
    "retry-after", "trailer", "warning",       "vary",          "via"};
constexpr std::array<std::string_view, 16> kNeverBegin = {
    "access-control-", "authentication-", "content-",         "http2-", "if-",       "keep-",
    "max-forwards",    "pragma",          "proxy-",           "range",  "ratelimit", "set-cookie",
    "transfer-",       "upgrade",         "www-authenticate", "x-rate"};

bool BeginsWith(std::string_view name, std::string_view beginning) {
  return EqualsIgnoringCase(name.substr(0, beginning.size()), beginning);
}

}  // namespace

bool TakesTrailers(const net::RequestHead& head) {
  if (head.minor_version == 0) return false;
  bool takes = false;
  for (const net::Field& field : head.fields) {
    if (field.id != net::FieldId::te) continue;
    net::ForEachListItem(field.value, [&](std::string_view coding) {
      takes = takes || EqualsIgnoringCase(coding, "trailers");
    });
  }
  return takes;
}

bool MayTrail(std::string_view name) {
  for (const std::string_view never : kNever) {
    if (EqualsIgnoringCase(name, never)) return false;
  }
  for (const std::string_view beginning : kNeverBegin) {
    if (BeginsWith(name, beginning)) return false;
  }
  return !TellsOfTheWay(name);
}

void AppendTrailers(std::string_view lines, std::string* out) {
  while (!lines.empty()) {
    const std::size_t end = lines.find("\r\n") + 2;
    const std::string_view line = lines.substr(0, end);
    if (MayTrail(line.substr(0, line.find(':')))) out->append(line);
    lines.remove_prefix(end);
  }
}

}  // namespace sluice::gateway
