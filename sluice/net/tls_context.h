// What one side of TLS shows and asks of the other: certificates, keys, versions. Loaded from
// files, immutable, shared by all loops; who wants a change loads another and hands it on.
//
//   auto context = TlsServerContext::Load({.pairs = {{"site.pem", "site.key"}}});
//   const bool secure = co_await stream.AcceptTls(*context);        // stream.h
//
// TLS 1.2 and 1.3 with OpenSSL's own ciphers at security level 2 or higher: no RSA key under 2048
// bits, no SHA-1. No renegotiation, no compression, no early data. Protocol by ALPN: http/1.1.
//
// Load() reads files and blocks for as long: not for a loop's thread. Errors name the file and what
// is to be done:
//   kNotFound          there is no such file
//   kPermissionDenied  we may not read it
//   kInvalidArgument   no PEM, no certificate in it, the key of another certificate, an encrypted
//                      key, too weak a key
// A certificate that is out of date is loaded all the same: who loads it can see so, and a clock
// may be wrong.
#pragma once

#include <openssl/types.h>

#include <cstdint>
#include <ctime>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace sluice::net {

enum class TlsVersion : std::uint8_t { k12, k13 };

// What a server shows its clients. Of several certificates a client gets the first, in order, that
// has exactly the name it asks for (SNI), else the first with a wildcard for it, else the first.
//
// Sessions are resumed by tickets that only the same context can read: its loops share them, a new
// context begins anew, and nothing is kept for a client. The key of the tickets is as old as the
// context: who gets at it can read what TLS 1.2 has carried since (TLS 1.3 agrees on new keys).
class TlsServerContext {
 public:
  // PEM. The certificate's file may hold a chain: its own first, then each one's issuer.
  struct Pair {
    std::string certificate_file;
    std::string key_file;
  };
  struct Options {
    std::vector<Pair> pairs;  // at least one
    TlsVersion min_version = TlsVersion::k12;
  };
  struct Certificate {
    std::string file;
    std::vector<std::string> names;  // in lower case; the common name only where there is no other
    std::time_t not_before = 0;
    std::time_t not_after = 0;
  };

  static absl::StatusOr<std::shared_ptr<const TlsServerContext>> Load(const Options& options);
  // One that shows the certificates of all of these (at least one) in their order, without asking
  // any file; so that one pair can be replaced though another's files are broken.
  static std::shared_ptr<const TlsServerContext> Join(
      std::vector<std::shared_ptr<const TlsServerContext>> parts);
  TlsServerContext(const TlsServerContext&) = delete;
  TlsServerContext& operator=(const TlsServerContext&) = delete;
  ~TlsServerContext();

  // In the order of the pairs; the first certificate of each file.
  [[nodiscard]] const std::vector<Certificate>& certificates() const { return certificates_; }

  // Which of certificates() a client gets that asks for `name`, in any case; empty: for none.
  [[nodiscard]] std::size_t Choose(std::string_view name) const;

  // OpenSSL's side of it, for a handshake.
  [[nodiscard]] SSL_CTX* handle() const { return handles_.front(); }

 private:
  TlsServerContext() = default;
  absl::Status Add(const Pair& pair, TlsVersion min_version);
  void Take(SSL_CTX* context);
  static int OnName(SSL* ssl, int* alert, void* self);

  std::vector<Certificate> certificates_;
  std::vector<SSL_CTX*> handles_;                               // of each certificate; owned
  std::vector<std::shared_ptr<const TlsServerContext>> parts_;  // whose handles they are as well
};

// How we speak to servers.
class TlsClientContext {
 public:
  struct Options {
    std::string ca_file;           // PEM; whom to believe. Empty: $SSL_CERT_FILE, or the system's
    std::string certificate_file;  // that we show; with key_file. Empty: none
    std::string key_file;
    bool verify = true;  // false: any certificate will do, so anybody can be in between
    std::string
        server_name;  // to ask for and to find in the certificate; empty: the address's host
  };

  static absl::StatusOr<std::shared_ptr<const TlsClientContext>> Load(const Options& options);
  TlsClientContext(const TlsClientContext&) = delete;
  TlsClientContext& operator=(const TlsClientContext&) = delete;
  ~TlsClientContext();

  [[nodiscard]] const std::string& server_name() const { return server_name_; }
  // The one that we show, the first of its file; nothing when we have none.
  [[nodiscard]] const std::optional<TlsServerContext::Certificate>& certificate() const {
    return certificate_;
  }

  // OpenSSL's side of it, for a handshake.
  [[nodiscard]] SSL_CTX* handle() const { return handle_; }

 private:
  TlsClientContext() = default;

  SSL_CTX* handle_ = nullptr;  // owned
  std::string server_name_;
  std::optional<TlsServerContext::Certificate> certificate_;
};

}  // namespace sluice::net
