#include "sluice/net/address.h"

#include <algorithm>
#include <array>
#include <boost/asio/io_context.hpp>
#include <charconv>

#include "absl/strings/str_cat.h"

namespace sluice::net {
namespace {

absl::Status OutOfForm(std::string_view text) {
  return absl::InvalidArgumentError(
      absl::StrCat("`", absl::string_view(text.data(), text.size()),
                   "` is no address; write HOST:PORT, such as 127.0.0.1:8080 or [::1]:8080"));
}

}  // namespace

absl::StatusOr<HostPort> ParseHostPort(std::string_view text) {
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return OutOfForm(text);
  std::string_view host = text.substr(0, colon);
  const std::string_view port_text = text.substr(colon + 1);
  if (host.starts_with('[') && host.ends_with(']')) {
    host = host.substr(1, host.size() - 2);
  } else if (host.find_first_of("[]:") != std::string_view::npos) {
    return OutOfForm(text);
  }
  std::uint16_t port = 0;
  const char* end = port_text.data() + port_text.size();
  const auto [stop, error] = std::from_chars(port_text.data(), end, port);
  if (host.empty() || port_text.empty() || error != std::errc() || stop != end) {
    return OutOfForm(text);
  }
  return HostPort{std::string(host), port};
}

bool IsLiteral(const HostPort& where) {
  boost::system::error_code error;
  (void)asio::ip::make_address(where.host, error);
  return !error;
}

absl::StatusOr<std::vector<tcp::endpoint>> Resolve(const HostPort& where) {
  boost::system::error_code error;
  // A literal needs no resolver, which could ask the network about it.
  const asio::ip::address literal = asio::ip::make_address(where.host, error);
  if (!error) return std::vector{tcp::endpoint(literal, where.port)};

  asio::io_context context;
  tcp::resolver resolver(context);
  const auto results = resolver.resolve(where.host, std::to_string(where.port), error);
  std::vector<tcp::endpoint> endpoints;
  for (const auto& result : results) endpoints.push_back(result.endpoint());
  if (error || endpoints.empty()) {
    return absl::NotFoundError(
        absl::StrCat("`", where.host, "` does not resolve: ", error.message()));
  }
  return endpoints;
}

std::string ToString(const HostPort& address) {
  const bool v6 = address.host.find(':') != std::string::npos;
  return (v6 ? "[" + address.host + "]" : address.host) + ":" + std::to_string(address.port);
}

std::string ToString(const tcp::endpoint& endpoint) {
  return ToString(HostPort{.host = endpoint.address().to_string(), .port = endpoint.port()});
}

IpAddress IpOf(const asio::ip::address& address) {
  if (address.is_v4()) return IpAddress::V4(address.to_v4().to_uint());
  const auto raw = address.to_v6().to_bytes();
  std::array<std::uint8_t, 16> bytes{};
  std::copy(raw.begin(), raw.end(), bytes.begin());
  return IpAddress::FromBytes(bytes);
}

}  // namespace sluice::net
