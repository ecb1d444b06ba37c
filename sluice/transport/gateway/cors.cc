#include "sluice/transport/gateway/cors.h"

#include <algorithm>
#include <utility>

#include "sluice/base/ascii.h"
#include "sluice/net/http1_answer.h"
#include "sluice/transport/gateway/request_id.h"

namespace sluice::gateway {
namespace {

constexpr std::string_view kAnyOrigin = "*";

// The request's one Origin; empty where there is none, or several.
std::string_view OriginOf(const net::RequestHead& head) {
  const net::Field* origin = nullptr;
  for (const net::Field& field : head.fields) {
    if (field.id != net::FieldId::origin) continue;
    if (origin != nullptr) return {};
    origin = &field;
  }
  return origin == nullptr ? std::string_view() : origin->value;
}

// What a browser never puts into a preflight: it would make a request of one that it is not.
bool SaysMoreThanAPreflight(const net::RequestHead& head) {
  for (const net::Field& field : head.fields) {
    switch (field.id) {
      case net::FieldId::authorization:
      case net::FieldId::proxy_authorization:
      case net::FieldId::cookie:
        return true;
      case net::FieldId::origin:
      case net::FieldId::access_control_request_method:
        if (field.value.empty() || head.NamedByConnection(field)) return true;
        break;
      default:
        if (EqualsIgnoringCase(field.name, "X-HTTP-Method-Override") ||
            EqualsIgnoringCase(field.name, "X-HTTP-Method") ||
            EqualsIgnoringCase(field.name, "X-Method-Override")) {
          return true;
        }
    }
  }
  return false;
}

std::string ExposeLine(const transport::HeaderDialects& dialects) {
  std::string line = "Access-Control-Expose-Headers: ";
  for (std::size_t i = 0; i < transport::kLimitFields; ++i) {
    const auto field = static_cast<transport::LimitField>(i);
    if (!Writes(dialects, field)) continue;
    line.append(NameOf(field)).append(", ");
  }
  return line.append("Retry-After, ").append(kRequestIdField).append("\r\n");
}

}  // namespace

Cors::Cors(CorsOptions options, const transport::HeaderDialects& dialects)
    : options_(std::move(options)),
      any_origin_(options_.origins.size() == 1 && options_.origins[0] == kAnyOrigin),
      expose_(ExposeLine(dialects)) {}

bool Cors::Lists(std::string_view origin) const {
  if (origin.empty()) return false;
  return any_origin_ || std::find(options_.origins.begin(), options_.origins.end(), origin) !=
                            options_.origins.end();
}

bool Cors::Exempts(const net::RequestHead& head) const {
  return options_.exempt_preflight && head.method == "OPTIONS" && !head.framing.has_body() &&
         !head.upgrade && head.Find(net::FieldId::access_control_request_method) != nullptr &&
         Lists(OriginOf(head)) && !SaysMoreThanAPreflight(head);
}

void Cors::AppendFields(const net::RequestHead& head, std::string* out) const {
  if (options_.origins.empty()) return;
  const std::string_view origin = OriginOf(head);
  if (Lists(origin)) {
    net::AppendField("Access-Control-Allow-Origin", any_origin_ ? kAnyOrigin : origin, out);
    if (options_.credentials) out->append("Access-Control-Allow-Credentials: true\r\n");
    out->append(expose_);
  }
  // Also where no origin is given: another request to the same place has another answer.
  if (!any_origin_) out->append("Vary: Origin\r\n");
}

}  // namespace sluice::gateway
