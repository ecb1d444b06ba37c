// Fields that come behind an answer's last chunk (RFC 9110, 6.5): checksums, timings, a status
// that is known at the end.
//
//   client: TE: trailers     ->  upstream: TE: trailers, Connection: TE
//   upstream: Trailer: X-Sum ->  client: Trailer: X-Sum
//             0, X-Sum: 1    ->          0, X-Sum: 1            in chunks, and asked for; else
//             dropped
//
// Passed on is what can do no harm where somebody takes trailers for fields of the head: not the
// message's framing and content, its routing, authentication, cookies, caching, the way it came
// (forwarding.h), nor limits.
//
// Trailers of requests are checked and dropped: no rule has seen them, and there are servers that
// take them for fields of the head, such as the key that clients are counted by.
#pragma once

#include <string>
#include <string_view>

#include "sluice/net/http1_parser.h"

namespace sluice::gateway {

// Whether the client says that it takes trailers.
[[nodiscard]] bool TakesTrailers(const net::RequestHead& head);

// Whether a field of this name, in any case, may follow an answer.
[[nodiscard]] bool MayTrail(std::string_view name);

// Appends those of `lines` whose fields may follow. The lines are in form, each with its CRLF.
void AppendTrailers(std::string_view lines, std::string* out);

}  // namespace sluice::gateway
