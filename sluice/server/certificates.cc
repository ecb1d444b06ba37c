#include "sluice/server/certificates.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "sluice/base/log.h"
#include "sluice/telemetry/prometheus.h"

namespace sluice {
namespace {

std::string Date(std::time_t time) {
  return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(time));
}

net::TlsServerContext::Options OptionsOf(const config::CertificateSettings& pair,
                                         config::TlsVersion min_version) {
  return {.pairs = {{.certificate_file = pair.certificate, .key_file = pair.key}},
          .min_version =
              min_version == config::TlsVersion::k13 ? net::TlsVersion::k13 : net::TlsVersion::k12};
}

// Into `place`, which stays as it is when that fails.
template <class Context>
absl::Status LoadInto(const typename Context::Options& options,
                      std::shared_ptr<const Context>& place) {
  auto loaded = Context::Load(options);
  if (loaded.ok()) place = *std::move(loaded);
  return loaded.status();
}

std::vector<std::string> FilesOf(const config::UpstreamTlsSettings& settings) {
  std::vector<std::string> files;
  if (!settings.ca.empty()) files.push_back(settings.ca);
  if (settings.own) files.insert(files.end(), {settings.own->certificate, settings.own->key});
  return files;
}

std::optional<config::UpstreamTlsSettings> UpstreamTlsOf(const config::GatewaySettings& settings) {
  const bool any = std::ranges::any_of(settings.upstreams, &config::UpstreamSettings::https);
  return any ? std::optional(settings.upstream_tls) : std::nullopt;
}

}  // namespace

net::TlsClientContext::Options ClientTlsOptions(const config::UpstreamTlsSettings& settings) {
  const auto own = settings.own.value_or(config::CertificateSettings{});
  return {.ca_file = settings.ca,
          .certificate_file = own.certificate,
          .key_file = own.key,
          .verify = settings.verify,
          .server_name = settings.server_name};
}

absl::StatusOr<std::unique_ptr<Certificates>> Certificates::Load(
    const config::GatewaySettings& settings) {
  std::unique_ptr<Certificates> all(new Certificates());
  all->tls_ = settings.tls;
  all->upstream_tls_ = UpstreamTlsOf(settings);
  if (const absl::Status added = all->AddUnits(); !added.ok()) return added;
  all->Join();
  return all;
}

bool Certificates::AreFor(const config::GatewaySettings& settings) const {
  return tls_ == settings.tls && upstream_tls_ == UpstreamTlsOf(settings);
}

absl::Status Certificates::AddUnits() {
  const std::size_t pairs = tls_ ? tls_->certificates.size() : 0;
  loaded_.pairs.resize(pairs);
  for (std::size_t i = 0; i < pairs; ++i) {
    const config::CertificateSettings& pair = tls_->certificates[i];
    const auto load = [i, options = OptionsOf(pair, tls_->min_version)](Loaded& loaded) {
      return LoadInto(options, loaded.pairs[i]);
    };
    if (absl::Status added = Add({pair.certificate, pair.key}, load); !added.ok()) return added;
  }
  if (!upstream_tls_) return absl::OkStatus();
  return Add(FilesOf(*upstream_tls_), [options = ClientTlsOptions(*upstream_tls_)](Loaded& loaded) {
    return LoadInto(options, loaded.upstreams);
  });
}

absl::Status Certificates::Add(std::vector<std::string> files,
                               std::function<absl::Status(Loaded&)> load) {
  // The watch first: what changes while it is being loaded is seen by the next look.
  units_.push_back({.watch = CertificateWatch(std::move(files)), .load = std::move(load)});
  return units_.back().load(loaded_);
}

bool Certificates::Look() {
  bool replaced = false;
  for (Unit& unit : units_) replaced |= LookAt(unit);
  if (replaced) Join();
  return replaced;
}

bool Certificates::Changed() const {
  return std::ranges::any_of(units_, [](const Unit& unit) { return unit.watch.Changed(); });
}

bool Certificates::LookAt(Unit& unit) {
  const CertificateWatch::Seen seen = unit.watch.Look([&] { return unit.load(loaded_); });
  if (seen.event == CertificateWatch::Event::kNothing) return false;
  const bool replaced = seen.event == CertificateWatch::Event::kReplaced;
  if (!replaced) {
    log::Error("changed certificates cannot be used; the old ones stay in force",
               {{"why", std::string(seen.why.message())}});
  }
  const std::lock_guard lock(mutex_);
  ++(replaced ? succeeded_ : failed_);
  return replaced;
}

void Certificates::Become(Certificates&& next) {
  if (tls_ == next.tls_ && upstream_tls_ == next.upstream_tls_) {
    const std::lock_guard lock(mutex_);
    ++succeeded_;  // the files must have changed
  }
  tls_ = std::move(next.tls_);
  upstream_tls_ = std::move(next.upstream_tls_);
  units_ = std::move(next.units_);
  loaded_ = std::move(next.loaded_);
  joined_ = std::move(next.joined_);
  contexts_ = std::move(next.contexts_);
  Show();
}

// What has not changed keeps its context, and the tickets that clients have of it.
void Certificates::Join() {
  if (tls_ && loaded_.pairs != joined_) {
    contexts_.clients = net::TlsServerContext::Join(loaded_.pairs);
    joined_ = loaded_.pairs;
  }
  contexts_.upstreams = loaded_.upstreams;
  Show();
}

void Certificates::Show() {
  std::vector<Certificate> all;
  // One file may serve twice, and is told of once: two samples must not have the same labels.
  const auto add = [&](const Certificate& one) {
    if (std::ranges::find(all, one.file, &Certificate::file) == all.end()) all.push_back(one);
  };
  if (contexts_.clients) std::ranges::for_each(contexts_.clients->certificates(), add);
  if (contexts_.upstreams && contexts_.upstreams->certificate()) {
    add(*contexts_.upstreams->certificate());
  }
  const std::lock_guard lock(mutex_);
  any_ = !units_.empty();
  in_use_ = std::move(all);
}

void Certificates::LogAll() const {
  for (const Certificate& certificate : in_use_) {
    log::Info("certificate in use",
              {{"file", certificate.file},
               {"names", fmt::format("{}", fmt::join(certificate.names, ", "))},
               {"expires", Date(certificate.not_after)}});
  }
}

void Certificates::WarnOfExpiry(WallTime now) const {
  for (const Certificate& certificate : in_use_) {
    const WallTime end{std::chrono::seconds{certificate.not_after}};
    if (end > now + kSoon) continue;
    const bool expired = end <= now;
    log::Write(expired ? log::Level::kError : log::Level::kWarning,
               expired ? "certificate has expired" : "certificate expires soon",
               {{"file", certificate.file}, {"expires", Date(certificate.not_after)}});
  }
}

void Certificates::WriteMetrics(std::string& out) const {
  const std::lock_guard lock(mutex_);
  if (!any_) return;
  PrometheusWriter writer(out);
  writer.Family("sluice_tls_certificate_not_after_seconds", "gauge",
                "When it expires, in seconds since 1970; by its file and its first name.");
  for (const Certificate& certificate : in_use_) {
    writer.Sample({{"file", certificate.file},
                   {"name", certificate.names.empty() ? "" : certificate.names.front()}},
                  static_cast<std::uint64_t>(std::max<std::time_t>(0, certificate.not_after)));
  }
  writer.Family("sluice_tls_reloads_total", "counter",
                "Changes of the files of certificates and keys, by their end.");
  writer.Sample({{"result", "succeeded"}}, succeeded_);
  writer.Sample({{"result", "failed"}}, failed_);
}

}  // namespace sluice
