#include "sluice/net/testing/certificates.h"

#include <gtest/gtest.h>
#include <openssl/pem.h>
#include <stdlib.h>  // NOLINT: mkdtemp

#include <filesystem>
#include <fstream>
#include <utility>

#include "sluice/base/ip.h"
#include "sluice/net/internal/openssl.h"

namespace sluice::net::testing {
namespace {

using internal::BioPtr;
using internal::KeyPtr;
using internal::X509Ptr;

KeyPtr MakeKey(int rsa_bits) {
  return KeyPtr(rsa_bits > 0
                    ? EVP_PKEY_Q_keygen(nullptr, nullptr, "RSA", static_cast<std::size_t>(rsa_bits))
                    : EVP_PKEY_Q_keygen(nullptr, nullptr, "EC", "P-256"));
}

void AddExtension(X509* certificate, X509* issuer, int id, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  X509_EXTENSION* extension = X509V3_EXT_conf_nid(nullptr, &context, id, value.c_str());
  ASSERT_NE(extension, nullptr) << value;
  X509_add_ext(certificate, extension, -1);
  X509_EXTENSION_free(extension);
}

std::string AlternativeNames(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) {
    if (!text.empty()) text.append(",");
    text.append(IpAddress::Parse(name) ? "IP:" : "DNS:").append(name);
  }
  return text;
}

std::string Contents(const BioPtr& out) {
  const char* bytes = nullptr;
  const long size = BIO_get_mem_data(out.get(), &bytes);
  return {bytes, static_cast<std::size_t>(size)};
}

std::string Pem(X509* certificate) {
  const BioPtr out(BIO_new(BIO_s_mem()));
  PEM_write_bio_X509(out.get(), certificate);
  return Contents(out);
}

std::string Pem(EVP_PKEY* key, const std::string& pass_phrase) {
  const BioPtr out(BIO_new(BIO_s_mem()));
  PEM_write_bio_PKCS8PrivateKey(out.get(), key, pass_phrase.empty() ? nullptr : EVP_aes_128_cbc(),
                                pass_phrase.data(), static_cast<int>(pass_phrase.size()), nullptr,
                                nullptr);
  return Contents(out);
}

}  // namespace

struct TestAuthority::Signer {
  KeyPtr key;
  X509Ptr certificate;

  // A certificate for `of`, not signed yet.
  static X509Ptr Draft(const Wanted& wanted, EVP_PKEY* of, long serial) {
    X509Ptr draft(X509_new());
    X509_set_version(draft.get(), X509_VERSION_3);
    ASN1_INTEGER_set(X509_get_serialNumber(draft.get()), serial);
    ASN1_TIME_set(X509_getm_notBefore(draft.get()), wanted.not_before);
    ASN1_TIME_set(X509_getm_notAfter(draft.get()), wanted.not_after);
    X509_set_pubkey(draft.get(), of);
    const auto* name = reinterpret_cast<const unsigned char*>(wanted.common_name.c_str());
    X509_NAME_add_entry_by_NID(X509_get_subject_name(draft.get()), NID_commonName, MBSTRING_UTF8,
                               const_cast<unsigned char*>(name), -1, -1, 0);
    return draft;
  }

  static void Sign(X509* draft, X509* issuer, EVP_PKEY* issuers_key) {
    X509_set_issuer_name(draft, X509_get_subject_name(issuer));
    AddExtension(draft, issuer, NID_authority_key_identifier, "keyid");
    EXPECT_NE(X509_sign(draft, issuers_key, EVP_sha256()), 0);
  }

  static Signer Make(const std::string& name, const Signer* issuer, long serial) {
    Signer made{MakeKey(0), nullptr};
    made.certificate = Draft({.common_name = name}, made.key.get(), serial);
    X509* draft = made.certificate.get();
    AddExtension(draft, draft, NID_basic_constraints, "critical,CA:TRUE");
    AddExtension(draft, draft, NID_key_usage, "critical,keyCertSign,cRLSign");
    AddExtension(draft, draft, NID_subject_key_identifier, "hash");
    Sign(draft, issuer ? issuer->certificate.get() : draft,
         issuer ? issuer->key.get() : made.key.get());
    return made;
  }
};

TestAuthority::TestAuthority() {
  std::string folder = ::testing::TempDir() + "sluice_certificates_XXXXXX";
  if (::mkdtemp(folder.data()) == nullptr) ADD_FAILURE() << "cannot make " << folder;
  folder_ = folder + "/";
  root_ = std::make_unique<Signer>(Signer::Make("Test Root", nullptr, serial_++));
  ca_file_ = Write("ca.pem", Pem(root_->certificate.get()));
}

TestAuthority::~TestAuthority() {
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
}

std::string TestAuthority::Write(std::string_view name, std::string_view content) const {
  std::string path = folder_ + std::string(name);
  std::ofstream(path, std::ios::binary) << content;
  return path;
}

KeyPair TestAuthority::Issue(const Wanted& wanted) {
  return IssueAs("pair" + std::to_string(serial_), wanted);
}

KeyPair TestAuthority::IssueAs(std::string_view stem, const Wanted& wanted) {
  const KeyPtr key = MakeKey(wanted.rsa_bits);
  const X509Ptr leaf = Signer::Draft(wanted, key.get(), serial_++);
  AddExtension(leaf.get(), leaf.get(), NID_subject_key_identifier, "hash");
  if (!wanted.names.empty()) {
    AddExtension(leaf.get(), leaf.get(), NID_subject_alt_name, AlternativeNames(wanted.names));
  }
  std::string more;
  if (wanted.self_signed) {
    Signer::Sign(leaf.get(), leaf.get(), key.get());
  } else if (wanted.through_intermediate) {
    const Signer between = Signer::Make("Test Intermediate", root_.get(), serial_++);
    Signer::Sign(leaf.get(), between.certificate.get(), between.key.get());
    more = Pem(between.certificate.get());
  } else {
    Signer::Sign(leaf.get(), root_->certificate.get(), root_->key.get());
  }
  const std::string name(stem);
  return {.certificate_file = Write(name + ".pem", Pem(leaf.get()) + more),
          .key_file = Write(name + ".key", Pem(key.get(), wanted.pass_phrase))};
}

}  // namespace sluice::net::testing
