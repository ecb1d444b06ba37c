// Answers of our own to gRPC-Web calls, in the form that their clients understand (the protocol's
// PROTOCOL-WEB document): the HTTP status is always 200, and what happened stands in trailers,
// which here are the last frame of the body.
//
//   HTTP/1.1 200 OK                              a 429, 401, 502, ... of ours
//   Content-Type: application/grpc-web+proto     that of the request
//   grpc-status: 8                               also as fields, for clients that read only these
//   grpc-message: Quota exceeded. ...
//   Retry-After, RateLimit, ...                  as in any other answer
//
//   0x80  length (4 bytes, big-endian)  grpc-status: 8\r\ngrpc-message: ...\r\n
//
// The -text forms carry the same in base64. Other gRPC needs HTTP/2, which this door does not have.
//
//   HTTP      gRPC                    because
//   429       8 RESOURCE_EXHAUSTED    come back later; clients retry it when told to
//   413       8 RESOURCE_EXHAUSTED    what gRPC libraries say of a message that is too large
//   422       3 INVALID_ARGUMENT      no wait ever helps, and 8 would be tried again
//   400       13 INTERNAL             as gRPC maps that status
//   401, 403  16 UNAUTHENTICATED, 7 PERMISSION_DENIED
//   408, 504  4 DEADLINE_EXCEEDED
//   502, 503  14 UNAVAILABLE
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "sluice/net/http1_answer.h"
#include "sluice/net/http1_parser.h"

namespace sluice::gateway {

enum class GrpcWeb : std::uint8_t { kNone, kPlain, kProto, kJson, kText, kTextProto };

// By the request's one Content-Type, whose parameters do not matter.
[[nodiscard]] GrpcWeb GrpcWebOf(const net::RequestHead& head);

// The gRPC status for an HTTP status of ours.
[[nodiscard]] int GrpcStatusOf(int http_status);

// Turns an answer with an HTTP status into the one that such a client understands; its fields stay.
// `exposed` tells that browsers' scripts may read it, so that they may read the new fields, too.
// Requires a form other than kNone.
void MakeGrpcWeb(GrpcWeb form, std::string_view message, bool exposed, net::Answer* answer);

}  // namespace sluice::gateway
