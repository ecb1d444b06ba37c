// The certificates and keys of the gateway, on both sides: loaded at the start, watched, and loaded
// again when their files change (certificate_watch.h).
//
//   auto certificates = Certificates::Load(settings);
//   ... give (*certificates)->contexts() to the gateway ...
//   if (certificates->Look()) ... give it the new ones ...            // every few seconds
//
// Files that change by halves or into something broken leave what is in force; the log tells once
// of what stays broken. What the system believes in (`upstream_tls` without `ca`) is read at the
// start alone.
//
// Thread-safety: WriteMetrics() from any thread, the rest from one at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "sluice/base/time.h"
#include "sluice/config/config.h"
#include "sluice/net/tls_context.h"
#include "sluice/server/certificate_watch.h"

namespace sluice {

// What the gateway is given.
struct TlsContexts {
  std::shared_ptr<const net::TlsServerContext> clients;    // null: plain HTTP
  std::shared_ptr<const net::TlsClientContext> upstreams;  // null: no `https` upstream
};

class Certificates {
 public:
  // How long before its end a certificate is warned of: renewal at two thirds of ninety days, which
  // is usual, leaves thirty.
  static constexpr Duration kSoon = std::chrono::hours{24} * 14;

  // Errors: as the contexts' Load().
  static absl::StatusOr<std::unique_ptr<Certificates>> Load(
      const config::GatewaySettings& settings);
  Certificates(const Certificates&) = delete;
  Certificates& operator=(const Certificates&) = delete;

  [[nodiscard]] const TlsContexts& contexts() const { return contexts_; }

  // What the clients' side was loaded for; nothing: plain HTTP.
  [[nodiscard]] const std::optional<config::TlsSettings>& tls() const { return tls_; }
  // Whether they are what these settings ask for: the same files, used in the same way.
  [[nodiscard]] bool AreFor(const config::GatewaySettings& settings) const;

  // True when contexts() are others now.
  [[nodiscard]] bool Look();

  // Goes on with the files and contexts of `next`, loaded for other settings; what was counted
  // stays.
  void Become(Certificates&& next);

  // Tells the log of each certificate in use; and of those that have expired or soon will.
  void LogAll() const;
  void WarnOfExpiry(WallTime now) const;

  void WriteMetrics(std::string& out) const;  // appends

 private:
  using Certificate = net::TlsServerContext::Certificate;
  // The files of one side, and how they become its context.
  struct Side {
    CertificateWatch watch;
    std::function<absl::Status(TlsContexts&)> load;
  };

  Certificates() = default;
  absl::Status AddSides();
  absl::Status Add(std::vector<std::string> files, std::function<absl::Status(TlsContexts&)> load);
  bool LookAt(Side& side);
  void Show();

  std::optional<config::TlsSettings> tls_;
  std::optional<config::UpstreamTlsSettings> upstream_tls_;  // nothing: no `https` upstream
  std::vector<Side> sides_;
  TlsContexts contexts_;

  mutable std::mutex mutex_;         // guards what follows, which metrics read
  std::vector<Certificate> in_use_;  // of both sides
  std::uint64_t succeeded_ = 0;      // changes of files
  std::uint64_t failed_ = 0;
};

}  // namespace sluice
