#include "sluice/net/tls_context.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <cstdlib>
#include <utility>

#include "absl/strings/str_cat.h"
#include "sluice/base/ascii.h"
#include "sluice/net/internal/openssl.h"
#include "sluice/net/internal/pem.h"
#include "sluice/net/internal/tls_session.h"

namespace sluice::net {
namespace {

using internal::SslCtxPtr;
using internal::X509Ptr;

// As ALPN writes it: each name with its length in front.
constexpr std::array<unsigned char, 9> kHttp1 = {8, 'h', 't', 't', 'p', '/', '1', '.', '1'};

SslCtxPtr MakeContext(const SSL_METHOD* method, TlsVersion min_version) {
  SslCtxPtr context(SSL_CTX_new(method));
  assert(context);
  SSL_CTX_set_min_proto_version(context.get(),
                                min_version == TlsVersion::k13 ? TLS1_3_VERSION : TLS1_2_VERSION);
  SSL_CTX_set_security_level(context.get(), std::max(2, SSL_CTX_get_security_level(context.get())));
  SSL_CTX_set_options(context.get(), SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
  SSL_CTX_set_mode(context.get(), SSL_MODE_ENABLE_PARTIAL_WRITE |
                                      SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                                      SSL_MODE_RELEASE_BUFFERS);
  // One system call a record instead of two, and it is known when the socket has no more.
  SSL_CTX_set_read_ahead(context.get(), 1);
  return context;
}

// A server's, with the certificate, chain and key of `other`, which has been given them before.
SslCtxPtr CopyOf(SSL_CTX* other) {
  const bool newest = SSL_CTX_get_min_proto_version(other) == TLS1_3_VERSION;
  SslCtxPtr context = MakeContext(TLS_server_method(), newest ? TlsVersion::k13 : TlsVersion::k12);
  STACK_OF(X509)* chain = nullptr;
  SSL_CTX_get0_chain_certs(other, &chain);
  const bool done = SSL_CTX_use_certificate(context.get(), SSL_CTX_get0_certificate(other)) == 1 &&
                    SSL_CTX_use_PrivateKey(context.get(), SSL_CTX_get0_privatekey(other)) == 1 &&
                    (chain == nullptr || SSL_CTX_set1_chain(context.get(), chain) == 1);
  if (!done) std::abort();  // no memory, as in operator new
  return context;
}

// A client that does not speak HTTP/1.1 is told so before it sends what we would not understand.
int ChooseProtocol(SSL* /*ssl*/, const unsigned char** chosen, unsigned char* chosen_size,
                   const unsigned char* offered, unsigned int offered_size, void* /*unused*/) {
  for (unsigned int at = 0; at < offered_size; at += offered[at] + 1U) {
    const unsigned char* name = offered + at + 1;
    if (offered[at] != kHttp1[0] || offered_size - at < kHttp1.size()) continue;
    if (!std::equal(kHttp1.begin() + 1, kHttp1.end(), name)) continue;
    *chosen = name;
    *chosen_size = offered[at];
    return SSL_TLSEXT_ERR_OK;
  }
  return SSL_TLSEXT_ERR_ALERT_FATAL;
}

// RFC 9525 (6.3): the star stands for exactly one label.
bool MatchesWildcard(std::string_view pattern, std::string_view name) {
  if (!pattern.starts_with("*.")) return false;
  const std::size_t dot = name.find('.');
  return dot != std::string_view::npos && dot > 0 && name.substr(dot) == pattern.substr(1);
}

absl::Status TrustOnly(SSL_CTX* context, const std::string& ca_file) {
  const absl::StatusOr<std::vector<X509Ptr>> authorities = internal::ReadCertificates(ca_file);
  if (!authorities.ok()) return authorities.status();
  for (const X509Ptr& authority : *authorities) {
    if (X509_STORE_add_cert(SSL_CTX_get_cert_store(context), authority.get()) == 1) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(ca_file, ": a certificate in it is refused: ", internal::TakeError()));
  }
  return absl::OkStatus();
}

TlsServerContext::Certificate Described(const std::string& file, X509& certificate) {
  return {.file = file,
          .names = internal::NamesOf(certificate),
          .not_before = internal::TimeOf(X509_get0_notBefore(&certificate)),
          .not_after = internal::TimeOf(X509_get0_notAfter(&certificate))};
}

// Of the system's authorities the one file that has all of them: of its folder OpenSSL would read a
// piece at each handshake.
absl::Status TrustTheSystem(SSL_CTX* context) {
  const char* const chosen = std::getenv(X509_get_default_cert_file_env());
  if (chosen != nullptr) return TrustOnly(context, chosen);
  for (const char* file : {X509_get_default_cert_file(), "/etc/ssl/certs/ca-certificates.crt"}) {
    const absl::Status status = TrustOnly(context, file);
    if (!absl::IsNotFound(status)) return status;
  }
  return absl::NotFoundError(
      "this system has no file of authorities: install the package ca-certificates, or name a "
      "`ca`");
}

}  // namespace

absl::StatusOr<std::shared_ptr<const TlsServerContext>> TlsServerContext::Load(
    const Options& options) {
  assert(!options.pairs.empty());
  std::shared_ptr<TlsServerContext> context(new TlsServerContext());
  for (const Pair& pair : options.pairs) {
    if (absl::Status status = context->Add(pair, options.min_version); !status.ok()) return status;
  }
  return context;
}

absl::Status TlsServerContext::Add(const Pair& pair, TlsVersion min_version) {
  const auto chain = internal::ReadCertificates(pair.certificate_file);
  if (!chain.ok()) return chain.status();
  SslCtxPtr context = MakeContext(TLS_server_method(), min_version);
  if (absl::Status status =
          internal::UsePair(context.get(), *chain, pair.certificate_file, pair.key_file);
      !status.ok()) {
    return status;
  }
  Take(context.release());
  certificates_.push_back(Described(pair.certificate_file, *chain->front()));
  return absl::OkStatus();
}

void TlsServerContext::Take(SSL_CTX* context) {
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);  // tickets are all there is
  SSL_CTX_set_tlsext_servername_callback(context, &TlsServerContext::OnName);
  SSL_CTX_set_tlsext_servername_arg(context, this);
  SSL_CTX_set_alpn_select_cb(context, &ChooseProtocol, nullptr);
  handles_.push_back(context);
}

// The first handle is the one that handshakes begin with and that asks us for a name, so it must
// be our own; from the others a handshake takes no more than the certificate.
std::shared_ptr<const TlsServerContext> TlsServerContext::Join(
    std::vector<std::shared_ptr<const TlsServerContext>> parts) {
  assert(!parts.empty());
  if (parts.size() == 1) return parts.front();
  std::shared_ptr<TlsServerContext> joined(new TlsServerContext());
  joined->Take(CopyOf(parts.front()->handle()).release());
  for (const auto& part : parts) {
    for (std::size_t i = 0; i < part->handles_.size(); ++i) {
      joined->certificates_.push_back(part->certificates_[i]);
      if (joined->certificates_.size() == 1) continue;
      SSL_CTX_up_ref(part->handles_[i]);
      joined->handles_.push_back(part->handles_[i]);
    }
  }
  joined->parts_ = std::move(parts);
  return joined;
}

TlsServerContext::~TlsServerContext() {
  for (SSL_CTX* handle : handles_) SSL_CTX_free(handle);
}

std::size_t TlsServerContext::Choose(std::string_view name) const {
  if (certificates_.size() == 1 || name.empty()) return 0;
  std::string wanted(name);
  for (char& c : wanted) c = Lower(c);
  const auto first_where = [&](const auto& fits) {
    return static_cast<std::size_t>(
        std::find_if(certificates_.begin(), certificates_.end(),
                     [&](const Certificate& certificate) {
                       return std::any_of(certificate.names.begin(), certificate.names.end(), fits);
                     }) -
        certificates_.begin());
  };
  std::size_t chosen = first_where([&](const std::string& known) { return known == wanted; });
  if (chosen < certificates_.size()) return chosen;
  chosen = first_where([&](const std::string& known) { return MatchesWildcard(known, wanted); });
  return chosen < certificates_.size() ? chosen : 0;
}

int TlsServerContext::OnName(SSL* ssl, int* /*alert*/, void* self) {
  const auto& context = *static_cast<const TlsServerContext*>(self);
  const char* name = SSL_get_servername(ssl, TLSEXT_NAMETYPE_host_name);
  const std::size_t chosen = context.Choose(name == nullptr ? std::string_view() : name);
  if (chosen > 0) SSL_set_SSL_CTX(ssl, context.handles_[chosen]);
  return SSL_TLSEXT_ERR_OK;
}

absl::StatusOr<std::shared_ptr<const TlsClientContext>> TlsClientContext::Load(
    const Options& options) {
  std::shared_ptr<TlsClientContext> context(new TlsClientContext());
  context->handle_ = MakeContext(TLS_client_method(), TlsVersion::k12).release();
  context->server_name_ = options.server_name;
  SSL_CTX* handle = context->handle_;
  SSL_CTX_set_verify(handle, options.verify ? SSL_VERIFY_PEER : SSL_VERIFY_NONE, nullptr);
  // Tickets go to whoever connects (tls_peer.h): OpenSSL's own cache would be shared by all loops.
  SSL_CTX_set_session_cache_mode(handle, SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL);
  SSL_CTX_sess_set_new_cb(handle, &internal::TlsSession::OnTicket);
  SSL_CTX_set_alpn_protos(handle, kHttp1.data(), kHttp1.size());
  if (!options.ca_file.empty() || options.verify) {
    const std::string& ca_file = options.ca_file;
    const absl::Status trusts =
        ca_file.empty() ? TrustTheSystem(handle) : TrustOnly(handle, ca_file);
    if (!trusts.ok()) return trusts;
  }
  if (options.certificate_file.empty()) return context;
  const auto chain = internal::ReadCertificates(options.certificate_file);
  if (!chain.ok()) return chain.status();
  const absl::Status status =
      internal::UsePair(handle, *chain, options.certificate_file, options.key_file);
  if (!status.ok()) return status;
  context->certificate_ = Described(options.certificate_file, *chain->front());
  return context;
}

TlsClientContext::~TlsClientContext() { SSL_CTX_free(handle_); }

}  // namespace sluice::net
