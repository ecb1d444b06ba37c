// What a GatewaySession knows of the request at hand, and the buffers that serving it needs.
//
// A connection that waits for a request holds none: a state is a loan (base/spare.h), so that ten
// thousand idle connections do not keep ten thousand, and a busy loop works on a few warm ones.
// Each part is set by the step that begins with it; before that it is a stranger's.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sluice/limiter/outcome.h"
#include "sluice/net/http1_answer.h"
#include "sluice/net/http1_parser.h"
#include "sluice/transport/gateway/access_log.h"
#include "sluice/transport/gateway/books.h"
#include "sluice/transport/gateway/forwarding.h"
#include "sluice/transport/gateway/grpc_web.h"
#include "sluice/transport/headers.h"

namespace sluice::gateway {

struct RequestState {
  std::string request_id;
  Hop hop;                            // views of this and of the session
  std::string upgrade;                // the protocols that the upstream may change to; mostly empty
  std::vector<sluice::Field> fields;  // as the engine wants them
  std::vector<char> path_buffer;
  Outcome outcome;
  std::string out;                        // heads on their way out
  RequestEnd end = RequestEnd::kAborted;  // how the request ends, as far as is known
  net::Answer denial;
  std::string cors_fields;  // for an answer of ours

  // For the access log.
  struct Access {
    const AccessLog* log = nullptr;  // null: it has no line
    Time begin{};
    Time asked{};  // of the upstream; never before `begin`
    Duration upstream_time{-1};
    int status = 0;
    std::uint64_t sent = 0;
    bool decided = false;
  };
  Access access;
  AccessLine access_line;

  net::ResponseHead answer;
  transport::UpstreamLimits upstream_limits;
  std::string trailers;               // lines behind the answer's last chunk
  std::string part_end;               // what follows a part of the answer's body
  bool takes_trailers = false;        // the client
  bool heard = false;                 // a head, be it an interim one, has come from the upstream
  bool answered = false;              // the head of its answer has
  GrpcWeb grpc_web = GrpcWeb::kNone;  // the request
  bool in_chunks = false;             // the request's body
  bool retryable = false;
  std::uint64_t received = 0;  // of its content, or by a tunnel
};

}  // namespace sluice::gateway
