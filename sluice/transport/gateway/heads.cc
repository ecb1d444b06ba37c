#include "sluice/transport/gateway/heads.h"

#include "sluice/base/ascii.h"
#include "sluice/net/http1_answer.h"
#include "sluice/transport/gateway/request_id.h"
#include "sluice/transport/gateway/trailers.h"

namespace sluice::gateway {
namespace {

using net::FieldId;
using net::MessageHead;
using Kind = net::BodyFraming::Kind;

constexpr std::string_view kConnectionUpgrade = "Connection: Upgrade\r\n";

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

// Connection cannot name away what tells of the request's way: a proxy that passes its client's
// Connection on would let the client choose what the upstream believes.
bool NamedAway(const MessageHead& head, const net::Field& field) {
  return head.connection_options && !TellsOfTheWay(field.name) && head.NamedByConnection(field);
}

// Copies the lines of all fields for which `drop(field)` says no.
template <class Drop>
void CopyFields(const MessageHead& head, std::string* out, const Drop& drop) {
  const char* const end = head.field_lines.data() + head.field_lines.size();
  const char* run = nullptr;  // the lines that are to be copied, so far
  for (const net::Field& field : head.fields) {
    const char* const line = field.name.data();
    if (!BelongsToConnection(field.id) && !NamedAway(head, field) && !drop(field)) {
      if (run == nullptr) run = line;
      continue;
    }
    if (run != nullptr) out->append(run, line);
    run = nullptr;
  }
  if (run != nullptr) out->append(run, end);
}

void AppendUpgrade(const MessageHead& head, std::string* out) {
  bool any = false;
  for (const net::Field& field : head.fields) {
    if (field.id != FieldId::upgrade) continue;
    net::AppendField("Upgrade", field.value, out);
    any = true;
  }
  if (any) out->append(kConnectionUpgrade);
}

void AppendAnnouncedTrailers(const MessageHead& head, std::string* out) {
  for (const net::Field& field : head.fields) {
    if (field.id == FieldId::trailer) net::AppendField("Trailer", field.value, out);
  }
}

}  // namespace

void AppendUpstreamHead(const net::RequestHead& head, const Hop& hop, std::string_view default_host,
                        std::string_view upgrade, std::string* out) {
  out->append(head.method);
  out->push_back(' ');
  out->append(head.path);
  out->append(" HTTP/1.1\r\n");
  bool host_given = false;
  const std::size_t fields_begin = out->size();
  ForwardingFields forwarding(head, hop);
  CopyFields(head, out, [&](const net::Field& field) {
    if (field.id == FieldId::host) {
      host_given = !head.absolute_target;
      return head.absolute_target;
    }
    return field.id == FieldId::expect || !forwarding.Keeps(field);
  });
  if (!host_given) {
    // RFC 9112 (3.2) wants it first.
    std::string line;
    net::AppendField("Host", head.host.empty() ? default_host : head.host, &line);
    out->insert(fields_begin, line);
  }
  if (head.framing.kind == Kind::kChunked) out->append("Transfer-Encoding: chunked\r\n");
  if (!upgrade.empty()) {
    out->append(kConnectionUpgrade);
    net::AppendField("Upgrade", upgrade, out);
  }
  if (TakesTrailers(head)) out->append("TE: trailers\r\nConnection: TE\r\n");
  forwarding.Append(out);
  out->append("\r\n");
}

bool SentInChunks(const net::ResponseHead& head, const ClientHead& how) {
  const bool length_open =
      head.framing.kind == Kind::kChunked || head.framing.kind == Kind::kUntilClose;
  return length_open && !how.old_client;
}

void AppendClientHead(const net::ResponseHead& head, const ClientHead& how,
                      const transport::RateLimitFields& limit_fields,
                      transport::UpstreamLimits* upstream_limits, std::string* out) {
  out->append("HTTP/1.1 ");
  const auto status = static_cast<unsigned>(head.status);
  for (const unsigned digit : {status / 100, status / 10 % 10, status % 10}) {
    out->push_back(static_cast<char>('0' + digit));
  }
  out->push_back(' ');
  out->append(head.reason);
  out->append("\r\n");
  upstream_limits->Clear();
  CopyFields(head, out, [&](const net::Field& field) {
    // RFC 9110 (8.6): no Content-Length in a 1xx or 204.
    if (field.id == FieldId::content_length) return head.status < 200 || head.status == 204;
    return limit_fields.Take(field.name, field.value, upstream_limits) ||
           EqualsIgnoringCase(field.name, kRequestIdField);
  });
  net::AppendField(kRequestIdField, how.request_id, out);
  // RFC 9110 (15.2.2, 15.5.22): these two are nothing without it.
  if (head.status == 101 || head.status == 426) AppendUpgrade(head, out);
  if (SentInChunks(head, how)) {
    if (how.trailers) AppendAnnouncedTrailers(head, out);
    out->append("Transfer-Encoding: chunked\r\n");
  }
  if (!how.keep_alive) {
    out->append("Connection: close\r\n");
  } else if (how.old_client) {
    out->append("Connection: keep-alive\r\n");
  }
}

void AppendInterimHead(const net::ResponseHead& head, std::string* out) {
  net::AppendStatusLine(head.status, out);
  // What the gateway itself says of limits and of the request comes with the final answer.
  CopyFields(head, out, [](const net::Field& field) {
    return field.id == FieldId::content_length || transport::FindLimitField(field.name) ||
           EqualsIgnoringCase(field.name, kRequestIdField);
  });
  out->append("\r\n");
}

}  // namespace sluice::gateway
