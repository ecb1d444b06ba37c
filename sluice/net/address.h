// Addresses as people write them: HOST:PORT, 127.0.0.1:8080, [::1]:8080, localhost:0.
//
// Errors: kInvalidArgument for text out of form, kNotFound for a name that does not resolve.
#pragma once

#include <boost/asio/ip/tcp.hpp>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "sluice/base/ip.h"

namespace sluice::net {

namespace asio = boost::asio;
using asio::ip::tcp;

struct HostPort {
  std::string host;  // without brackets; never empty
  std::uint16_t port = 0;
  friend bool operator==(const HostPort&, const HostPort&) = default;
};

// An IPv6 address stands in brackets. The port is needed; 0 is allowed.
[[nodiscard]] absl::StatusOr<HostPort> ParseHostPort(std::string_view text);

// Whether the host is an address, for which nobody needs to be asked.
[[nodiscard]] bool IsLiteral(const HostPort& where);

// What the name stands for, in the resolver's order, at least one. Blocks: not for a loop's thread.
[[nodiscard]] absl::StatusOr<std::vector<tcp::endpoint>> Resolve(const HostPort& where);

// "127.0.0.1:8080", "[::1]:8080".
[[nodiscard]] std::string ToString(const HostPort& address);
[[nodiscard]] std::string ToString(const tcp::endpoint& endpoint);

// The same address, as the rest of Sluice has it.
[[nodiscard]] IpAddress IpOf(const asio::ip::address& address);

}  // namespace sluice::net
