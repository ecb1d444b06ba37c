// Certificates and keys from PEM files. Blocks for the time of a read: not for a loop's thread.
//
// Errors name the file and what to do about it:
//   kNotFound          there is no such file
//   kPermissionDenied  we may not read it
//   kInvalidArgument   what is in it is not what is needed
#pragma once

#include <ctime>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "sluice/net/internal/openssl.h"

namespace sluice::net::internal {

// All certificates of a file, in its order; at least one. Other PEM blocks are passed over.
[[nodiscard]] absl::StatusOr<std::vector<X509Ptr>> ReadCertificates(const std::string& file);

// The first private key of a file.
[[nodiscard]] absl::StatusOr<KeyPtr> ReadKey(const std::string& file);

// The chain and its key into `context`: kInvalidArgument, too, when they do not belong together or
// are too weak for it.
[[nodiscard]] absl::Status UsePair(SSL_CTX* context, const std::vector<X509Ptr>& chain,
                                   const std::string& certificate_file,
                                   const std::string& key_file);

// The names that a certificate is for, in lower case: DNS names and addresses, and the common name
// only where there are none of these.
[[nodiscard]] std::vector<std::string> NamesOf(X509& certificate);

[[nodiscard]] std::time_t TimeOf(const ASN1_TIME* time);

}  // namespace sluice::net::internal
