#include "sluice/transport/gateway/heads.h"

#include "sluice/base/ascii.h"
#include "sluice/net/http1_answer.h"

namespace sluice::gateway {
namespace {

using net::FieldId;
using net::MessageHead;
using Kind = net::BodyFraming::Kind;

constexpr std::string_view kForwardedFor = "X-Forwarded-For";

bool BelongsToConnection(FieldId id) {
  switch (id) {
    case FieldId::connection:
    case FieldId::keep_alive:
    case FieldId::proxy_connection:
    case FieldId::te:
    case FieldId::trailer:
    case FieldId::transfer_encoding:
    case FieldId::upgrade:
    case FieldId::http2_settings:
      return true;
    default:
      return false;
  }
}

// Whether Connection names this field.
bool IsNamed(const MessageHead& head, const net::Field& field) {
  if (!head.connection_options) return false;
  if (field.id == FieldId::host || field.id == FieldId::content_length) return false;
  bool named = false;
  for (const net::Field& other : head.fields) {
    if (other.id != FieldId::connection) continue;
    net::ForEachListItem(other.value, [&](std::string_view option) {
      named = named || EqualsIgnoringCase(option, field.name);
    });
  }
  return named;
}

// Copies the lines of all fields for which `drop(field)` says no.
template <class Drop>
void CopyFields(const MessageHead& head, std::string* out, const Drop& drop) {
  const char* const end = head.field_lines.data() + head.field_lines.size();
  const char* run = nullptr;  // the lines that are to be copied, so far
  for (const net::Field& field : head.fields) {
    const char* const line = field.name.data();
    if (!BelongsToConnection(field.id) && !IsNamed(head, field) && !drop(field)) {
      if (run == nullptr) run = line;
      continue;
    }
    if (run != nullptr) out->append(run, line);
    run = nullptr;
  }
  if (run != nullptr) out->append(run, end);
}

void AppendToList(std::string_view more, std::string* list) {
  if (more.empty()) return;
  if (!list->empty()) list->append(", ");
  list->append(more);
}

bool IsForwardedFor(const net::Field& field) {
  return field.name.size() == kForwardedFor.size() && EqualsIgnoringCase(field.name, kForwardedFor);
}

}  // namespace

void AppendUpstreamHead(const net::RequestHead& head, std::string_view peer,
                        std::string_view default_host, std::string* out) {
  out->append(head.method);
  out->push_back(' ');
  out->append(head.path);
  out->append(" HTTP/1.1\r\n");
  bool host_given = false;
  const std::size_t fields_begin = out->size();
  bool forwarded = false;
  CopyFields(head, out, [&](const net::Field& field) {
    if (field.id == FieldId::host) {
      host_given = !head.absolute_target;
      return head.absolute_target;
    }
    if (field.id == FieldId::expect) return true;
    const bool chain = IsForwardedFor(field);
    forwarded = forwarded || chain;
    return chain;
  });
  if (!host_given) {
    // RFC 9112 (3.2) wants it first.
    std::string line;
    net::AppendField("Host", head.host.empty() ? default_host : head.host, &line);
    out->insert(fields_begin, line);
  }
  if (head.framing.kind == Kind::kChunked) out->append("Transfer-Encoding: chunked\r\n");
  out->append(kForwardedFor);
  out->append(": ");
  if (forwarded) {
    for (const net::Field& field : head.fields) {
      if (!IsForwardedFor(field) || IsNamed(head, field) || field.value.empty()) continue;
      out->append(field.value);
      out->append(", ");
    }
  }
  out->append(peer);
  out->append("\r\n\r\n");
}

bool SentInChunks(const net::ResponseHead& head, const ClientHead& how) {
  const bool length_open =
      head.framing.kind == Kind::kChunked || head.framing.kind == Kind::kUntilClose;
  return length_open && !how.old_client;
}

void AppendClientHead(const net::ResponseHead& head, const ClientHead& how,
                      UpstreamLimits* upstream_limits, std::string* out) {
  out->append("HTTP/1.1 ");
  const auto status = static_cast<unsigned>(head.status);
  for (const unsigned digit : {status / 100, status / 10 % 10, status % 10}) {
    out->push_back(static_cast<char>('0' + digit));
  }
  out->push_back(' ');
  out->append(head.reason);
  out->append("\r\n");
  upstream_limits->policies.clear();
  upstream_limits->limits.clear();
  CopyFields(head, out, [&](const net::Field& field) {
    // RFC 9110 (8.6): no Content-Length in a 204.
    if (field.id == FieldId::content_length) return head.status == 204;
    const bool limit = field.name.size() == 9 && EqualsIgnoringCase(field.name, "RateLimit");
    const bool policy =
        field.name.size() == 16 && EqualsIgnoringCase(field.name, "RateLimit-Policy");
    if (limit) AppendToList(field.value, &upstream_limits->limits);
    if (policy) AppendToList(field.value, &upstream_limits->policies);
    return limit || policy;
  });
  if (SentInChunks(head, how)) out->append("Transfer-Encoding: chunked\r\n");
  if (!how.keep_alive) {
    out->append("Connection: close\r\n");
  } else if (how.old_client) {
    out->append("Connection: keep-alive\r\n");
  }
}

void AppendInterimHead(const net::ResponseHead& head, std::string* out) {
  net::AppendStatusLine(head.status, out);
  CopyFields(head, out,
             [](const net::Field& field) { return field.id == FieldId::content_length; });
  out->append("\r\n");
}

}  // namespace sluice::gateway
