// The certificates and keys of the gateway, on both sides: loaded at the start, watched, and loaded
// again when their files change (certificate_watch.h).
//
//   auto certificates = Certificates::Load(settings);
//   ... give (*certificates)->contexts() to the gateway ...
//   if (certificates->Look()) ... give it the new ones ...            // every few seconds
//
// Files that change by halves or into something broken leave what is in force, pair by pair: the
// others are renewed all the same. The log tells once of what stays broken. What the system
// believes in (`upstream_tls` without `ca`) is read at the start alone.
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

// How a server is spoken to, from what the configuration says of it.
[[nodiscard]] net::TlsClientContext::Options ClientTlsOptions(
    const config::UpstreamTlsSettings& settings);

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

  // The files hold something else than what is in force, be it usable or not.
  [[nodiscard]] bool Changed() const;

  // Goes on with the files and contexts of `next`, loaded anew for other settings or for the same;
  // what was counted stays.
  void Become(Certificates&& next);

  // Tells the log of each certificate in use; and of those that have expired or soon will.
  void LogAll() const;
  void WarnOfExpiry(WallTime now) const;

  void WriteMetrics(std::string& out) const;  // appends; nothing where no TLS is spoken

 private:
  using Certificate = net::TlsServerContext::Certificate;
  struct Loaded {
    std::vector<std::shared_ptr<const net::TlsServerContext>> pairs;  // one for each
    std::shared_ptr<const net::TlsClientContext> upstreams;
  };
  // Files that belong together: of a pair for clients, or of the upstreams' side. And how they are
  // loaded.
  struct Unit {
    CertificateWatch watch;
    std::function<absl::Status(Loaded&)> load;
  };

  Certificates() = default;
  absl::Status AddUnits();
  absl::Status Add(std::vector<std::string> files, std::function<absl::Status(Loaded&)> load);
  bool LookAt(Unit& unit);
  void Join();
  void Show();

  std::optional<config::TlsSettings> tls_;
  std::optional<config::UpstreamTlsSettings> upstream_tls_;  // nothing: no `https` upstream
  std::vector<Unit> units_;
  Loaded loaded_;
  std::vector<std::shared_ptr<const net::TlsServerContext>> joined_;  // what contexts_ is made of
  TlsContexts contexts_;

  mutable std::mutex mutex_;         // guards what follows, which metrics read
  bool any_ = false;                 // files to watch
  std::vector<Certificate> in_use_;  // of both sides
  std::uint64_t succeeded_ = 0;      // changes of files
  std::uint64_t failed_ = 0;
};

}  // namespace sluice
