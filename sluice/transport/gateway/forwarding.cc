#include "sluice/transport/gateway/forwarding.h"

#include "sluice/base/ascii.h"
#include "sluice/net/http1_answer.h"
#include "sluice/transport/gateway/request_id.h"

namespace sluice::gateway {
namespace {

constexpr std::string_view kFor = "X-Forwarded-For";
constexpr std::string_view kProto = "X-Forwarded-Proto";
constexpr std::string_view kHost = "X-Forwarded-Host";
constexpr std::string_view kForwardedPrefix = "X-Forwarded-";
constexpr std::string_view kRealIp = "X-Real-IP";
constexpr std::string_view kForwarded = "Forwarded";

enum class Likeness { kNone, kTwin, kSame };

// Whether `name` begins with `ours`, or does to somebody who takes all punctuation for one sign.
Likeness Compare(std::string_view name, std::string_view ours) {
  if (name.size() < ours.size()) return Likeness::kNone;
  Likeness likeness = Likeness::kSame;
  for (std::size_t i = 0; i < ours.size(); ++i) {
    if (Lower(name[i]) == Lower(ours[i])) continue;
    const bool punctuation = ours[i] == '-' && !IsLetter(name[i]) && !IsDigit(name[i]);
    if (!punctuation) return Likeness::kNone;
    likeness = Likeness::kTwin;
  }
  return likeness;
}

// A name of the family X-Forwarded-*. A hyphen's twin further on makes it a twin as well.
Likeness CompareFamily(std::string_view name) {
  const Likeness likeness = Compare(name, kForwardedPrefix);
  if (likeness != Likeness::kSame) return likeness;
  for (const char c : name.substr(kForwardedPrefix.size())) {
    if (c != '-' && !IsLetter(c) && !IsDigit(c)) return Likeness::kTwin;
  }
  return Likeness::kSame;
}

Likeness CompareWhole(std::string_view name, std::string_view ours) {
  return name.size() == ours.size() ? Compare(name, ours) : Likeness::kNone;
}

bool Is(const net::Field& field, std::string_view name) {
  return EqualsIgnoringCase(field.name, name);
}

}  // namespace

bool TellsOfTheWay(std::string_view name) {
  return CompareWhole(name, kForwarded) != Likeness::kNone ||
         CompareWhole(name, kRealIp) != Likeness::kNone ||
         CompareWhole(name, kRequestIdField) != Likeness::kNone ||
         CompareFamily(name) != Likeness::kNone;
}

bool ForwardingFields::Keeps(const net::Field& field) {
  const char first = Lower(field.name.front());
  if (first == 'f' && field.id == net::FieldId::forwarded) {
    chain_kept_ = chain_kept_ || (hop_.trusted && hop_.chain == ForwardedHeader::kForwarded);
    return false;
  }
  if (first != 'x') return true;
  const Likeness real_ip = CompareWhole(field.name, kRealIp);
  if (real_ip != Likeness::kNone) return real_ip == Likeness::kSame && hop_.trusted;
  if (CompareWhole(field.name, kRequestIdField) != Likeness::kNone) return false;
  const Likeness family = CompareFamily(field.name);
  if (family == Likeness::kNone) return true;
  if (family == Likeness::kTwin || !hop_.trusted) return false;
  if (Is(field, kFor)) {
    chain_kept_ = chain_kept_ || hop_.chain == ForwardedHeader::kXForwardedFor;
    return false;
  }
  proto_kept_ = proto_kept_ || Is(field, kProto);
  host_kept_ = host_kept_ || Is(field, kHost);
  return true;
}

void ForwardingFields::Append(std::string* out) const {
  const std::string_view peer = hop_.peer;
  const bool follows_rfc = hop_.chain == ForwardedHeader::kForwarded;
  out->append(kFor).append(": ");
  if (!follows_rfc) AppendChain(kFor, out);
  out->append(peer).append("\r\n");
  if (!proto_kept_) net::AppendField(kProto, hop_.scheme, out);
  if (!host_kept_ && !head_.host.empty()) net::AppendField(kHost, head_.host, out);
  if (follows_rfc) {
    out->append(kForwarded).append(": ");
    AppendChain(kForwarded, out);
    const bool v6 = peer.find(':') != std::string_view::npos;
    out->append(v6 ? "for=\"[" : "for=").append(peer).append(v6 ? "]\"" : "");
    // The parser lets nothing into a host that would have to be escaped here.
    if (!head_.host.empty()) out->append(";host=\"").append(head_.host).append("\"");
    out->append(";proto=").append(hop_.scheme).append("\r\n");
  }
  out->append(head_.minor_version == 0 ? "Via: 1.0 sluice\r\n" : "Via: 1.1 sluice\r\n");
  net::AppendField(kRequestIdField, hop_.request_id, out);
}

// What proxies before us wrote, each element with a comma after it. Several lines are one list.
void ForwardingFields::AppendChain(std::string_view name, std::string* out) const {
  if (!chain_kept_) return;
  for (const net::Field& field : head_.fields) {
    if (!Is(field, name) || field.value.empty()) continue;
    out->append(field.value).append(", ");
  }
}

std::string_view KeptRequestId(const net::RequestHead& head, bool trusted) {
  if (!trusted) return {};
  std::string_view kept;
  for (const net::Field& field : head.fields) {
    if (!Is(field, kRequestIdField)) continue;
    if (!kept.empty() || !IsRequestId(field.value)) return {};
    kept = field.value;
  }
  return kept;
}

}  // namespace sluice::gateway
