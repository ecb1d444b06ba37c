// What the upstream is told of where a request came from: fields that a client must not be able to
// make up. Only what goes to the upstream changes; the rules see the request as it came.
//
//   field                 from a trusted proxy                from anybody else
//   -----                 --------------------                -----------------
//   X-Forwarded-For       kept, the peer appended             the peer alone
//   Forwarded             kept, the peer appended             the peer alone
//   X-Forwarded-Proto     kept, else the scheme used here     the scheme used here
//   X-Forwarded-Host      kept, else Host                     Host
//   X-Forwarded-*         kept                                removed
//   X-Real-IP             kept                                removed
//   X-Request-Id          kept if in form, else a new one     a new one
//   Via                   `1.1 sluice` appended               `1.1 sluice` appended
//
// Which proxies are trusted, and which of the first two fields they write, is `identity.ip`: it has
// one chain that is believed. Proxies pass on the other one as their client sent it, so that begins
// anew (X-Forwarded-For) or is left out (Forwarded, which Sluice writes only where the trusted
// proxies do).
//
// Names are compared without case, and any other sign of punctuation counts as a hyphen:
// X_Forwarded_For, and X.Forwarded.For, become the same variable as X-Forwarded-For in CGI, WSGI
// and their like. Such a twin of one of the fields above is removed whoever sent it. Other fields
// may have underscores in their names and pass; nginx drops them all unless told otherwise.
//
// Cost: a look at the first letter of each field's name, for most fields; no allocation.
// Source: RFC 9110 (7.6.3), RFC 7239.
#pragma once

#include <string>
#include <string_view>

#include "sluice/net/http1_parser.h"
#include "sluice/rule/client_address.h"

namespace sluice::gateway {

// The last step of a request's way to us.
struct Hop {
  std::string_view peer;                                    // the address of who sent it
  bool trusted = false;                                     // that is a trusted proxy
  ForwardedHeader chain = ForwardedHeader::kXForwardedFor;  // the header that those write
  std::string_view scheme = "http";
  std::string_view request_id;
};

// Goes through the fields of one request: which are kept, then what is written.
class ForwardingFields {
 public:
  // Both outlive it.
  ForwardingFields(const net::RequestHead& head, const Hop& hop) : head_(head), hop_(hop) {}

  // Whether this field's line goes on as it is. For each field that Connection does not name.
  [[nodiscard]] bool Keeps(const net::Field& field);

  // Appends the lines, after Keeps() was asked about all fields.
  void Append(std::string* out) const;

 private:
  void AppendChain(std::string_view name, std::string* out) const;

  const net::RequestHead& head_;
  const Hop& hop_;
  bool proto_kept_ = false;
  bool host_kept_ = false;
  bool chain_kept_ = false;  // is there, that is, and is written anew with one more element
};

// Whether a field of this name, or a twin of it, is one of those above.
[[nodiscard]] bool TellsOfTheWay(std::string_view name);

// The id that the request came with, if it can be kept: given once, by a trusted proxy, in form.
// Else empty.
[[nodiscard]] std::string_view KeptRequestId(const net::RequestHead& head, bool trusted);

}  // namespace sluice::gateway
