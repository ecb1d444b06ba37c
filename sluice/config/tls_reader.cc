#include "sluice/config/tls_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "sluice/base/ascii.h"
#include "sluice/base/ip.h"
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

bool IsHostName(std::string_view text) {
  const auto fits = [](char c) {
    return IsLetter(c) || IsDigit(c) || c == '-' || c == '.' || c == '_';
  };
  return text.size() <= 253 && std::all_of(text.begin(), text.end(), fits) &&
         !IpAddress::Parse(text);
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

UpstreamTlsSettings ReadClientTls(const Value& value, const std::string& base_dir) {
  UpstreamTlsSettings tls;
  Fields fields(value.node(), fmt::format("`{}`", value.name()), value.diagnostics());
  if (const auto verify = fields.Take("verify")) {
    tls.verify = verify->Bool().value_or(true);
    if (!tls.verify) {
      value.diagnostics().Warning(
          verify->node().location,
          "`verify: false` takes any certificate: who stands between can read and change all",
          "name the authority that signed the certificate by `ca` instead");
    }
  }
  if (const auto ca = fields.Take("ca")) {
    tls.ca = ReadPemFile(*ca, base_dir, PemKind::kCertificate);
    if (!tls.verify) ca->Complain("means nothing with `verify: false`");
  }
  if (const auto name = fields.Take("server_name")) {
    const auto text = name->Text();
    if (text && IsHostName(*text)) {
      tls.server_name = *text;
    } else if (text) {
      name->Complain(fmt::format("must be a host's name, got {}", Quoted(*text)),
                     "write for example `orders.internal`");
    }
  }
  const bool own = value.node().Find("certificate") || value.node().Find("key");
  if (own) {
    tls.own = ReadPair(fields, base_dir);
  } else {
    for (const auto* name : {"certificate", "key"}) (void)fields.Take(name);
  }
  fields.Finish();
  return tls;
}

}  // namespace sluice::config
