#include "sluice/config/pem_file.h"

#include <fmt/format.h>

#include <string_view>

#include "sluice/base/small_file.h"
#include "sluice/config/read_file.h"
#include "sluice/config/secret_file.h"
#include "sluice/config/settings_reader.h"

namespace sluice::config {
namespace {

constexpr std::string_view kBegin = "-----BEGIN ";

// What the file says that it holds, each by its "-----BEGIN ...-----".
struct Contents {
  bool anything = false;
  bool certificate = false;
  bool key = false;
  bool encrypted_key = false;
};

Contents ContentsOf(std::string_view pem) {
  Contents contents;
  for (std::size_t at = 0; (at = pem.find(kBegin, at)) != pem.npos;) {
    at += kBegin.size();
    const std::string_view label = pem.substr(at, pem.find("-----", at) - at);
    contents.anything = true;
    // "CERTIFICATE", "TRUSTED CERTIFICATE"; but not "CERTIFICATE REQUEST".
    contents.certificate |= label.ends_with("CERTIFICATE");
    contents.key |= label.ends_with("PRIVATE KEY");
    contents.encrypted_key |= label == "ENCRYPTED PRIVATE KEY";
  }
  // The older form says it in a field inside: "Proc-Type: 4,ENCRYPTED".
  contents.encrypted_key |= contents.key && pem.find("4,ENCRYPTED") != pem.npos;
  return contents;
}

// `written` is the path as the user wrote it: short, and how he knows it.
void CheckContents(const Value& value, std::string_view written, const Contents& contents,
                   PemKind kind) {
  const bool certificate = kind == PemKind::kCertificate;
  if (!contents.anything) {
    value.Complain(fmt::format("names {}, which is no PEM file", Quoted(written)),
                   certificate ? "PEM begins with `-----BEGIN CERTIFICATE-----`; `openssl x509 "
                                 "-inform der` makes it of DER"
                               : "PEM begins with `-----BEGIN PRIVATE KEY-----`; `openssl pkey "
                                 "-inform der` makes it of DER");
  } else if (certificate && !contents.certificate) {
    value.Complain(fmt::format("names {}, in which there is no certificate", Quoted(written)),
                   contents.key ? "a private key is in it; that goes into `key`"
                                : "a certificate begins with `-----BEGIN CERTIFICATE-----`");
  } else if (!certificate && !contents.key) {
    value.Complain(fmt::format("names {}, in which there is no private key", Quoted(written)),
                   contents.certificate ? "a certificate is in it; that goes into `certificate`"
                                        : "a key begins with `-----BEGIN PRIVATE KEY-----`");
  } else if (!certificate && contents.encrypted_key) {
    value.Complain(fmt::format("names {}, whose key has a password", Quoted(written)),
                   "`openssl pkey -in FILE -out NEW` takes it away; nobody is there to type it at "
                   "a start");
  }
}

}  // namespace

std::string ReadPemFile(const Value& value, const std::string& base_dir, PemKind kind) {
  const auto text = value.Text();
  if (!text) return "";
  std::string path = PathFrom(base_dir, *text);
  const auto pem = ReadFile(path, kMaxPemBytes, value.node().location, value.diagnostics());
  if (!pem) return path;
  CheckContents(value, *text, ContentsOf(*pem), kind);
  if (kind == PemKind::kKey) WarnIfAllCanRead(value, *text, path);
  return path;
}

}  // namespace sluice::config
