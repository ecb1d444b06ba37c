// HOST:PORT as it stands in a file. Names are not resolved: checking a file needs no network.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "sluice/config/config.h"
#include "sluice/config/fields.h"

namespace sluice::config {

// HOST:PORT, with brackets around an IPv6 address; `fallback_port` where there is none, or nothing
// is allowed without it. Empty: the text is out of form.
[[nodiscard]] std::optional<Endpoint> ParseEndpoint(std::string_view text,
                                                    std::optional<std::uint16_t> fallback_port);

// Whether `text` ends in a port that is a number, but none that exists.
[[nodiscard]] bool PortIsTooLarge(std::string_view text);

// Takes `listen`, which must be there.
void ReadListen(Fields& fields, Endpoint& endpoint);

}  // namespace sluice::config
