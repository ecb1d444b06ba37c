// Who the client is when proxies stand in between.
//
//   client ---- proxy A ---- proxy B ---- us
//   9.9.9.9     10.0.0.7     10.0.0.2
//
//   peer of our socket:  10.0.0.2
//   X-Forwarded-For:     6.6.6.6, 9.9.9.9, 10.0.0.7
//                        ^ invented by the client, never reached
//
// Each proxy writes at the right whom it heard from. So we walk from the right, beginning with the
// peer, for as long as the one who speaks is a trusted proxy; the first who is none is the client.
// Everything left of it is that client's own word, and is not even read.
//
// Guarantee: without trusted proxies, or from a peer that is none, headers change nothing. A client
// that can not send from a trusted address can not choose its address. There always is an answer:
// with no header, or one that can not be read, it is the last address that was vouched for, in the
// end the peer's.
//
// An element that is no address (`unknown`, `_hidden`, garbage) ends the walk at the last good hop;
// empty elements are passed over (RFC 9110 §5.6.1). When every hop is trusted the leftmost is the
// client. Where proxies set both headers only the configured one is read: the other is the
// client's to set.
//
// Cost: with no header one comparison with each trusted range. No allocation in any case; time is
// linear in the header's length for each trusted range.
// Source: RFC 7239 (Forwarded); X-Forwarded-For as proxies write it, with and without ports.
#pragma once

#include <span>
#include <vector>

#include "sluice/base/ip.h"
#include "sluice/rule/request.h"

namespace sluice {

enum class ForwardedHeader {
  kXForwardedFor,  // X-Forwarded-For: 9.9.9.9, 10.0.0.7:51000, "[2001:db8::1]:443"
  kForwarded,      // Forwarded: for=9.9.9.9;proto=https, for="[2001:db8::1]:443"
};

struct ClientAddressOptions {
  std::vector<IpPrefix> trusted_proxies;
  ForwardedHeader header = ForwardedHeader::kXForwardedFor;
};

// Whether what this peer says of others is believed.
[[nodiscard]] bool IsTrustedProxy(const ClientAddressOptions& options, IpAddress peer);

// `headers` are those of the request, in the order in which they came; several lines of the
// configured one are one list.
[[nodiscard]] IpAddress ClientAddress(const ClientAddressOptions& options, IpAddress peer,
                                      std::span<const Field> headers);

}  // namespace sluice
