// The heads that the gateway writes: a request's for the upstream, an answer's for the client.
//
//   client's request                     upstream's request
//   GET http://a/x?y HTTP/1.1            GET /x?y HTTP/1.1          origin form
//   Host: b                              Host: a                    the target's, if absolute
//   Connection: keep-alive, X-One        --                         of this connection alone
//   X-One: 1                             --                         likewise: Connection names it
//   X-Forwarded-For: 9.9.9.9             X-Forwarded-For: 10.0.0.7  and more: see forwarding.h
//   TE: gzip, trailers                   TE: trailers               with Connection: TE
//
// Fields that are passed on keep their spelling and order; lines that stand side by side are copied
// together. Fields of one connection (RFC 9110, 7.6.1) stay on it: Connection and what it names,
// Keep-Alive, Proxy-Connection, TE, Trailer, Transfer-Encoding, Upgrade. Connection cannot name
// Host and Content-Length away. Cost: one look at each field, one copy; no allocation.
#pragma once

#include <string>
#include <string_view>

#include "sluice/net/http1_parser.h"
#include "sluice/transport/gateway/forwarding.h"
#include "sluice/transport/headers.h"

namespace sluice::gateway {

// Appends the head of the request to the upstream. `hop` is how it came here; `default_host` stands
// in where HTTP/1.0 names none; `upgrade` names the protocols to change to, and is mostly empty.
// Expect is left out: the gateway itself tells the client to go on.
void AppendUpstreamHead(const net::RequestHead& head, const Hop& hop, std::string_view default_host,
                        std::string_view upgrade, std::string* out);

// How the answer goes on to the client.
struct ClientHead {
  bool keep_alive = true;       // the client's connection
  bool old_client = false;      // HTTP/1.0, which knows no chunks and has to be told of keep-alive
  bool trailers = false;        // it takes them
  std::string_view request_id;  // stands instead of one that the upstream gives
};

// Appends status line and fields but not the empty line: more may follow. What the upstream said in
// fields that `limit_fields` writes, too, goes into `*upstream_limits` instead. A 101 and a 426
// keep Upgrade.
void AppendClientHead(const net::ResponseHead& head, const ClientHead& how,
                      const transport::RateLimitFields& limit_fields,
                      transport::UpstreamLimits* upstream_limits, std::string* out);

// Appends a whole interim answer (1xx).
void AppendInterimHead(const net::ResponseHead& head, std::string* out);

// Whether the answer's body has to be sent in chunks.
[[nodiscard]] bool SentInChunks(const net::ResponseHead& head, const ClientHead& how);

}  // namespace sluice::gateway
