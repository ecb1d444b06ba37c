// Files that TLS needs: certificates and keys in PEM.
//
// Only what a reader without cryptography can see is looked at: that the file can be read, and that
// what it says it holds is what was asked for. Whether a key is that of its certificate is found
// out by whoever loads both (net/tls_context.h).
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "sluice/config/fields.h"

namespace sluice::config {

enum class PemKind : std::uint8_t { kCertificate, kKey };

// The file that `value` names, as seen from `base_dir`; complains at `value` when the file is not
// of this kind, and warns about a key that every user of the machine can read.
std::string ReadPemFile(const Value& value, const std::string& base_dir, PemKind kind);

}  // namespace sluice::config
