// `tls` and `upstream_tls` of the gateway, and `tls` of `store.redis`.
#pragma once

#include <string>

#include "sluice/config/config.h"
#include "sluice/config/fields.h"

namespace sluice::config {

// Files are relative to `base_dir`, and are looked at (pem_file.h).
TlsSettings ReadTls(const Value& value, const std::string& base_dir);
// Of whoever begins a connection.
UpstreamTlsSettings ReadClientTls(const Value& value, const std::string& base_dir);

}  // namespace sluice::config
