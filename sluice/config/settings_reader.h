// Everything in the file that is not about rules: doors, bounds, the stores, the log.
#pragma once

#include <string>
#include <string_view>

#include "sluice/config/config.h"
#include "sluice/config/fields.h"

namespace sluice::config {

// What `limits` has.
inline constexpr std::string_view kBoundNames[] = {
    "connections",  "connections_per_client", "upstream_connections", "idle_upstream_connections",
    "header_bytes", "header_fields",          "body_bytes",           "outside_bytes",
    "slots",        "waiting_for_store",      "remembered_denials",   "leased_keys"};

// Takes `gateway` (gateway_reader.h), `admin`, `store`, `limits`, `log`, `headers`, `body`,
// `threads`. Paths are relative to `base_dir`.
void ReadSettings(Fields& root, const std::string& base_dir, Config& config);

// `path` as seen from `base_dir`; an absolute path is itself.
[[nodiscard]] std::string PathFrom(const std::string& base_dir, std::string_view path);

}  // namespace sluice::config
