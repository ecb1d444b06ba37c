// Requests to change the protocol (RFC 9110, 7.8): which are passed on, and what their answer is.
//
//   Connection: Upgrade                      Connection: Upgrade
//   Upgrade: h2c, websocket          ->      Upgrade: websocket            only what is allowed
//
//   HTTP/1.1 101 Switching Protocols         from here on the two connections are one (tunnel.cc)
//   anything else                            an ordinary answer
//
// Where nothing is allowed of what was asked for, or in HTTP/1.0, the request goes on as an
// ordinary one. A protocol that carries further requests (h2c) must not be allowed: no rule would
// see them. The configuration refuses those that are known.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "sluice/net/http1_parser.h"

namespace sluice::gateway {

// Sets `*asked` to those protocols that the request asks for and that are among `allowed` (names in
// lower case, without versions), as they were sent and in their order. Empty: none.
void ReadUpgrade(const net::RequestHead& head, std::span<const std::string> allowed,
                 std::string* asked);

// Whether a 101 says to which protocol it changes, and names nothing that is not among `asked`.
// Versions may differ: that is between the two.
[[nodiscard]] bool ChangesAsAsked(const net::ResponseHead& head, std::string_view asked);

}  // namespace sluice::gateway
