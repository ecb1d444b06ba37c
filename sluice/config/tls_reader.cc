#include "sluice/config/tls_reader.h"

#include <fmt/format.h>

#include <array>
#include <utility>

#include "sluice/config/pem_file.h"

namespace sluice::config {
namespace {

constexpr std::string_view kPairHint = "write `certificate: fullchain.pem` and `key: privkey.pem`";

// `certificate` and `key` of a map that must have both.
CertificateSettings ReadPair(Fields& fields, const std::string& base_dir) {
  CertificateSettings pair;
  if (const auto file = fields.Require("certificate", kPairHint)) {
    pair.certificate = ReadPemFile(*file, base_dir, PemKind::kCertificate);
  }
  if (const auto file = fields.Require("key", kPairHint)) {
    pair.key = ReadPemFile(*file, base_dir, PemKind::kKey);
  }
  return pair;
}

std::vector<CertificateSettings> ReadCertificates(const Value& value, const std::string& base_dir) {
  std::vector<CertificateSettings> pairs;
  const std::vector<Value> items = value.Items();
  if (items.size() > kMaxCertificates) {
    value.Complain(
        fmt::format("has {} certificates; {} are the most", items.size(), kMaxCertificates));
    return pairs;
  }
  for (const Value& item : items) {
    Fields fields(item.node(), "one of `certificates`", item.diagnostics());
    pairs.push_back(ReadPair(fields, base_dir));
    fields.Finish();
  }
  return pairs;
}

}  // namespace

TlsSettings ReadTls(const Value& value, const std::string& base_dir) {
  TlsSettings tls;
  Fields fields(value.node(), "`tls`", value.diagnostics());
  if (const auto list = fields.Take("certificates")) {
    tls.certificates = ReadCertificates(*list, base_dir);
    for (const auto* name : {"certificate", "key"}) {
      fields.Refuse(name, "can not stand beside `certificates`", "make it one of the list");
    }
  } else {
    tls.certificates.push_back(ReadPair(fields, base_dir));
  }
  static constexpr std::array<Value::Word<TlsVersion>, 2> kVersions = {
      {{"1.2", TlsVersion::k12}, {"1.3", TlsVersion::k13}}};
  if (const auto version = fields.Take("min_version")) {
    tls.min_version = version->OneOf(kVersions).value_or(tls.min_version);
  }
  fields.Finish();
  return tls;
}

}  // namespace sluice::config
