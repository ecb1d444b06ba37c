#include "sluice/net/internal/pem.h"

#include <openssl/crypto.h>
#include <openssl/pem.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>

#include "absl/strings/str_cat.h"
#include "sluice/base/ascii.h"
#include "sluice/base/ip.h"
#include "sluice/base/small_file.h"

namespace sluice::net::internal {
namespace {

absl::Status Bad(const std::string& file, const std::string& what) {
  return absl::InvalidArgumentError(absl::StrCat(file, ": ", what));
}

absl::StatusOr<std::string> ReadFile(const std::string& file) {
  absl::StatusOr<std::string> bytes = ReadSmallFile(file, kMaxPemBytes);
  if (bytes.ok()) return bytes;
  return absl::Status(bytes.status().code(),
                      absl::StrCat(file, ": cannot be read: ", bytes.status().message()));
}

BioPtr Over(const std::string& bytes) {
  return BioPtr(BIO_new_mem_buf(bytes.data(), static_cast<int>(bytes.size())));
}

// Overwrites a key's text at the end: memory that is given back keeps what was in it.
class Wiped {
 public:
  explicit Wiped(std::string& secret) : secret_(secret) {}
  Wiped(const Wiped&) = delete;
  Wiped& operator=(const Wiped&) = delete;
  ~Wiped() { OPENSSL_cleanse(secret_.data(), secret_.size()); }

 private:
  std::string& secret_;
};

// Nobody types in a pass phrase: remembers that one was asked for.
int RefusePassPhrase(char* /*buffer*/, int /*size*/, int /*for_writing*/, void* asked) {
  *static_cast<bool*>(asked) = true;
  return -1;
}

bool AtEndOfPem() {
  const unsigned long error = ERR_peek_last_error();
  return ERR_GET_LIB(error) == ERR_LIB_PEM && ERR_GET_REASON(error) == PEM_R_NO_START_LINE;
}

std::string TextOf(const ASN1_STRING* text) {
  const auto* bytes = reinterpret_cast<const char*>(ASN1_STRING_get0_data(text));
  return {bytes, static_cast<std::size_t>(ASN1_STRING_length(text))};
}

std::string AddressOf(const ASN1_OCTET_STRING* address) {
  const std::string raw = TextOf(address);
  std::array<std::uint8_t, 16> bytes{};
  if (raw.size() == 4) {  // as a mapped address
    bytes[10] = bytes[11] = 0xff;
  } else if (raw.size() != bytes.size()) {
    return {};
  }
  std::copy(raw.begin(), raw.end(), bytes.end() - static_cast<std::ptrdiff_t>(raw.size()));
  return IpAddress::FromBytes(bytes).ToString();
}

// Names with other signs in them (a NUL, say, to look like another name) are nobody's.
void AddName(std::string name, std::vector<std::string>* names) {
  for (char& c : name) {
    if (c <= ' ' || c >= 0x7f) return;
    c = Lower(c);
  }
  if (!name.empty()) names->push_back(std::move(name));
}

std::string CommonNameOf(X509& certificate) {
  const X509_NAME* subject = X509_get_subject_name(&certificate);
  const int at = X509_NAME_get_index_by_NID(subject, NID_commonName, -1);
  if (at < 0) return {};
  return TextOf(X509_NAME_ENTRY_get_data(X509_NAME_get_entry(subject, at)));
}

}  // namespace

absl::StatusOr<std::vector<X509Ptr>> ReadCertificates(const std::string& file) {
  const absl::StatusOr<std::string> bytes = ReadFile(file);
  if (!bytes.ok()) return bytes.status();
  const BioPtr in = Over(*bytes);
  std::vector<X509Ptr> certificates;
  ERR_clear_error();
  while (X509* next = PEM_read_bio_X509(in.get(), nullptr, nullptr, nullptr)) {
    certificates.emplace_back(next);
  }
  const bool at_end = AtEndOfPem();
  const std::string why = TakeError();
  if (!at_end) {
    return Bad(file, absl::StrCat("certificate ", certificates.size() + 1,
                                  " in it cannot be read: ", why));
  }
  if (certificates.empty()) {
    return Bad(file, "there is no certificate in it; write it as PEM (BEGIN CERTIFICATE)");
  }
  return certificates;
}

absl::StatusOr<KeyPtr> ReadKey(const std::string& file) {
  absl::StatusOr<std::string> bytes = ReadFile(file);
  if (!bytes.ok()) return bytes.status();
  const Wiped wiped(*bytes);
  const BioPtr in = Over(*bytes);
  bool asked = false;
  ERR_clear_error();
  KeyPtr key(PEM_read_bio_PrivateKey(in.get(), nullptr, RefusePassPhrase, &asked));
  const std::string why = TakeError();
  if (key) return key;
  if (asked) {
    return Bad(file,
               "the key is encrypted and nobody is there to type the pass phrase; write it without "
               "one (openssl pkey -in FILE -out NEW)");
  }
  if (bytes->find("PRIVATE KEY-----") == std::string::npos) {
    return Bad(file, "there is no private key in it; write it as PEM (BEGIN PRIVATE KEY)");
  }
  return Bad(file, absl::StrCat("the private key in it cannot be read: ", why));
}

absl::Status UsePair(SSL_CTX* context, const std::vector<X509Ptr>& chain,
                     const std::string& certificate_file, const std::string& key_file) {
  const absl::StatusOr<KeyPtr> key = ReadKey(key_file);
  if (!key.ok()) return key.status();
  ERR_clear_error();
  if (X509_check_private_key(chain.front().get(), key->get()) != 1) {
    ERR_clear_error();
    return Bad(key_file, absl::StrCat("the key belongs to another certificate than the first in ",
                                      certificate_file));
  }
  if (SSL_CTX_use_certificate(context, chain.front().get()) != 1) {
    return Bad(certificate_file, "the certificate is refused: " + TakeError());
  }
  if (SSL_CTX_use_PrivateKey(context, key->get()) != 1) {
    return Bad(key_file, "the key is refused: " + TakeError());
  }
  for (std::size_t i = 1; i < chain.size(); ++i) {
    if (SSL_CTX_add1_chain_cert(context, chain[i].get()) == 1) continue;
    return Bad(certificate_file,
               absl::StrCat("certificate ", i + 1, " in it is refused: ", TakeError()));
  }
  return absl::OkStatus();
}

std::vector<std::string> NamesOf(X509& certificate) {
  const GeneralNamesPtr alternatives(static_cast<GENERAL_NAMES*>(
      X509_get_ext_d2i(&certificate, NID_subject_alt_name, nullptr, nullptr)));
  std::vector<std::string> names;
  const int count = alternatives ? sk_GENERAL_NAME_num(alternatives.get()) : 0;
  for (int i = 0; i < count; ++i) {
    const GENERAL_NAME* name = sk_GENERAL_NAME_value(alternatives.get(), i);
    if (name->type == GEN_DNS) AddName(TextOf(name->d.dNSName), &names);
    if (name->type == GEN_IPADD) AddName(AddressOf(name->d.iPAddress), &names);
  }
  if (names.empty()) AddName(CommonNameOf(certificate), &names);
  return names;
}

std::time_t TimeOf(const ASN1_TIME* time) {
  std::tm parts{};
  if (ASN1_TIME_to_tm(time, &parts) != 1) return 0;
  return ::timegm(&parts);
}

}  // namespace sluice::net::internal
