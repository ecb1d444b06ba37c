#include "sluice/config/endpoint_reader.h"

#include <fmt/format.h>

#include <charconv>
#include <string>

namespace sluice::config {

bool PortIsTooLarge(std::string_view text) {
  const std::string_view port = text.substr(text.rfind(':') + 1);
  std::uint16_t number = 0;
  const auto [stop, error] = std::from_chars(port.data(), port.data() + port.size(), number);
  return error == std::errc::result_out_of_range && stop == port.data() + port.size();
}

std::optional<Endpoint> ParseEndpoint(std::string_view text,
                                      std::optional<std::uint16_t> fallback_port) {
  std::string_view host = text;
  std::string_view port;
  if (text.starts_with('[')) {
    const std::size_t end = text.find(']');
    if (end == text.npos || !IpAddress::Parse(text.substr(0, end + 1))) return std::nullopt;
    host = text.substr(1, end - 1);
    port = text.substr(end + 1);
  } else {
    host = text.substr(0, text.find(':'));
    port = text.substr(host.size());
  }
  const bool bad = host.empty() || host.find_first_of("/@?# \t[]") != host.npos;
  if (bad) return std::nullopt;
  if (port.empty()) {
    if (!fallback_port) return std::nullopt;
    return Endpoint{std::string(host), *fallback_port};
  }
  port.remove_prefix(1);
  Endpoint endpoint{.host = std::string(host)};
  const char* end = port.data() + port.size();
  const auto [stop, error] = std::from_chars(port.data(), end, endpoint.port);
  if (error != std::errc() || stop != end) return std::nullopt;
  return endpoint;
}

void ReadListen(Fields& fields, Endpoint& endpoint) {
  const auto listen = fields.Require("listen", "write for example `listen: 0.0.0.0:8080`");
  const auto text = listen ? listen->Text() : std::nullopt;
  if (!text) return;
  if (const auto parsed = ParseEndpoint(*text, std::nullopt)) {
    endpoint = *parsed;
  } else if (PortIsTooLarge(*text)) {
    listen->Complain(fmt::format("must have a port up to 65535, got {}", Quoted(*text)));
  } else {
    listen->Complain(fmt::format("must be HOST:PORT, got {}", Quoted(*text)),
                     "write for example `127.0.0.1:8080` or `\"[::]:8080\"`");
  }
}

}  // namespace sluice::config
