// `tls` and `upstream_tls`: what is read, and what is told about the files that they name.
#include <gtest/gtest.h>
#include <stdlib.h>  // NOLINT: mkdtemp

#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include "sluice/config/load.h"

namespace sluice::config {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kCertificate = "-----BEGIN CERTIFICATE-----\nMII\n";
constexpr std::string_view kKey = "-----BEGIN PRIVATE KEY-----\nMII\n";

class TlsSettingsTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = testing::TempDir() + "sluice_tls_settings_XXXXXX";
    ASSERT_NE(mkdtemp(folder_.data()), nullptr);
    Write("a.pem", kCertificate);
    Write("a.key", kKey);
    Write("b.pem", kCertificate);
    Write("b.key", "-----BEGIN EC PRIVATE KEY-----\nMII\n");
  }
  void TearDown() override { fs::remove_all(folder_); }

  void Write(const std::string& name, std::string_view text) const {
    std::ofstream(Path(name), std::ios::binary) << text;
    fs::permissions(Path(name), fs::perms::owner_read | fs::perms::owner_write);
  }
  std::string Path(const std::string& name) const { return folder_ + "/" + name; }

  LoadResult LoadGateway(const std::string& fields) const {
    return LoadText("f", "gateway: { listen: a:1, " + fields + " }\n", folder_, 1);
  }
  GatewaySettings Good(const std::string& fields) const {
    const LoadResult result = LoadGateway(fields);
    EXPECT_EQ(result.diagnostics.Text(), "");
    return result.config ? *result.config->gateway : GatewaySettings{};
  }
  // "column message = hint" lines, files named without their folder; warnings begin with "warning".
  std::string Complaints(const std::string& fields) const {
    std::string all;
    for (const Diagnostic& one : LoadGateway(fields).diagnostics.Sorted()) {
      all += (one.severity == Severity::kWarning ? "warning " : "") +
             std::to_string(one.location.column) + " " + one.message +
             (one.hint.empty() ? "" : " = " + one.hint) + "\n";
    }
    for (std::size_t at = 0; (at = all.find(folder_ + "/")) != all.npos;) {
      all.erase(at, folder_.size() + 1);
    }
    return all;
  }

  std::string folder_;
};

TEST_F(TlsSettingsTest, OneCertificateOrAList) {
  EXPECT_EQ(Good("upstream: http://b").tls, std::nullopt);
  const CertificateSettings a{.certificate = Path("a.pem"), .key = Path("a.key")};
  const CertificateSettings b{.certificate = Path("b.pem"), .key = Path("b.key")};
  EXPECT_EQ(Good("upstream: http://b, tls: { certificate: a.pem, key: a.key }").tls,
            (TlsSettings{.certificates = {a}, .min_version = TlsVersion::k12}));
  EXPECT_EQ(Good("upstream: http://b, tls: { min_version: 1.3, certificates: "
                 "[{ certificate: a.pem, key: a.key }, { certificate: b.pem, key: b.key }] }")
                .tls,
            (TlsSettings{.certificates = {a, b}, .min_version = TlsVersion::k13}));
  EXPECT_EQ(Complaints("upstream: http://b, tls: { certificate: a.pem, certificates: "
                       "{ certificate: a.pem, key: a.key } }"),
            "52 `certificate` can not stand beside `certificates` = make it one of the list\n");
  EXPECT_EQ(Complaints("upstream: http://b, tls: { certificate: a.pem, min_version: 1.1 }"),
            "50 `tls` needs `key` = write `certificate: fullchain.pem` and `key: privkey.pem`\n"
            "85 `min_version` must be one of 1.2, 1.3; got `1.1` = did you mean `1.2`?\n");
}

TEST_F(TlsSettingsTest, TellsAFileThatIsNotWhatItShouldBe) {
  Write("der", "\x30\x82");
  Write("request", "-----BEGIN CERTIFICATE REQUEST-----\n");
  Write("locked", "-----BEGIN ENCRYPTED PRIVATE KEY-----\n");
  Write("old", "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n");
  const auto pair = [this](const std::string& certificate, const std::string& key) {
    return Complaints("upstream: http://b, tls: { certificate: " + certificate + ", key: " + key +
                      " }");
  };
  const std::string missing = pair("no.pem", "a.key");
  EXPECT_TRUE(missing.starts_with("65 `")) << missing;
  EXPECT_TRUE(missing.ends_with("cannot be read: No such file or directory\n")) << missing;
  EXPECT_EQ(pair("a.key", "a.pem"),
            "65 `certificate` names `a.key`, in which there is no certificate = a private key is "
            "in it; that goes into `key`\n"
            "77 `key` names `a.pem`, in which there is no private key = a certificate is in it; "
            "that goes into `certificate`\n");
  EXPECT_EQ(pair("request", "der"),
            "65 `certificate` names `request`, in which there is no certificate = a certificate "
            "begins with `-----BEGIN CERTIFICATE-----`\n"
            "79 `key` names `der`, which is no PEM file = PEM begins with `-----BEGIN PRIVATE "
            "KEY-----`; `openssl pkey -inform der` makes it of DER\n");
  for (const std::string key : {"locked", "old"}) {
    EXPECT_EQ(pair("a.pem", key),
              "77 `key` names `" + key +
                  "`, whose key has a password = `openssl pkey -in FILE -out NEW` takes it away; "
                  "nobody is there to type it at a start\n");
  }
}

TEST_F(TlsSettingsTest, OneFileCanHoldBoth) {
  Write("both", std::string(kKey) + std::string(kCertificate));
  EXPECT_EQ(Good("upstream: http://b, tls: { certificate: both, key: both }").tls->certificates,
            (std::vector<CertificateSettings>{{Path("both"), Path("both")}}));
}

TEST_F(TlsSettingsTest, WarnsOfAKeyThatEveryUserCanRead) {
  fs::permissions(Path("a.key"), fs::perms::group_read, fs::perm_options::add);
  const std::string fields = "upstream: http://b, tls: { certificate: a.pem, key: a.key }";
  EXPECT_EQ(Complaints(fields), "");
  fs::permissions(Path("a.key"), fs::perms::others_read, fs::perm_options::add);
  EXPECT_EQ(Complaints(fields),
            "warning 77 `key` names `a.key`, which every user of this machine can read = `chmod "
            "o= FILE`, or `defaultMode: 0440` of a Kubernetes Secret's volume\n");
  EXPECT_TRUE(LoadGateway(fields).config.has_value());
}

TEST_F(TlsSettingsTest, HttpsUpstreamsHaveAPortOfTheirOwn) {
  const auto gateway = Good("upstream: [https://b, http://b, https://c:8443, \"https://[::1]/\"]");
  EXPECT_EQ(gateway.upstreams,
            (std::vector<UpstreamSettings>{{.address = {"b", 443}, .https = true},
                                           {.address = {"b", 80}, .https = false},
                                           {.address = {"c", 8443}, .https = true},
                                           {.address = {"::1", 443}, .https = true}}));
  EXPECT_EQ(gateway.upstream_tls, UpstreamTlsSettings{});
}

TEST_F(TlsSettingsTest, ReadsHowUpstreamsAreChecked) {
  EXPECT_EQ(Good("upstream: https://b, upstream_tls: { ca: b.pem, server_name: orders.internal, "
                 "verify: true, certificate: a.pem, key: a.key }")
                .upstream_tls,
            (UpstreamTlsSettings{.ca = Path("b.pem"),
                                 .server_name = "orders.internal",
                                 .verify = true,
                                 .own = CertificateSettings{Path("a.pem"), Path("a.key")}}));
  EXPECT_EQ(Complaints("upstream: http://b, upstream_tls: { ca: b.pem }"),
            "59 `upstream_tls` means nothing without an `https://` upstream\n");
  EXPECT_EQ(Complaints("upstream: https://b, upstream_tls: { certificate: a.pem }"),
            "60 `upstream_tls` needs `key` = write `certificate: fullchain.pem` and `key: "
            "privkey.pem`\n");
  EXPECT_EQ(Complaints("upstream: https://b, upstream_tls: { server_name: 10.0.0.1 }"),
            "75 `server_name` must be a host's name, got `10.0.0.1` = write for example "
            "`orders.internal`\n");
  EXPECT_EQ(Complaints("upstream: https://b, upstream_tls: { ca: a.key }"),
            "66 `ca` names `a.key`, in which there is no certificate = a private key is in it; "
            "that goes into `key`\n");
}

TEST_F(TlsSettingsTest, WarnsWhenNothingIsChecked) {
  const std::string fields = "upstream: https://b, upstream_tls: { verify: false }";
  EXPECT_EQ(Complaints(fields),
            "warning 70 `verify: false` takes any certificate: who stands between can read and "
            "change all = name the authority that signed the certificate by `ca` "
            "instead\n");
  EXPECT_FALSE(LoadGateway(fields).config->gateway->upstream_tls.verify);
  EXPECT_EQ(Complaints("upstream: https://b, upstream_tls: { verify: false, ca: a.pem }"),
            "warning 70 `verify: false` takes any certificate: who stands between can read and "
            "change all = name the authority that signed the certificate by `ca` "
            "instead\n81 `ca` means nothing with `verify: false`\n");
}

}  // namespace
}  // namespace sluice::config
