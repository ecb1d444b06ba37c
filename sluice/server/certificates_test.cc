#include "sluice/server/certificates.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sluice/base/log.h"
#include "sluice/net/testing/certificates.h"

namespace sluice {
namespace {

using net::testing::KeyPair;
using net::testing::TestAuthority;

class CertificatesTest : public testing::Test {
 protected:
  CertificatesTest() {
    log::SetSink([this](std::string_view line) { log_.append(line).append("\n"); });
  }
  ~CertificatesTest() override { log::SetSink(nullptr); }

  static config::CertificateSettings PairOf(const KeyPair& pair) {
    return {.certificate = pair.certificate_file, .key = pair.key_file};
  }
  static config::GatewaySettings ForClients(const std::vector<KeyPair>& pairs) {
    config::GatewaySettings settings;
    settings.upstreams.push_back({.address = {"127.0.0.1", 9000}});
    settings.tls.emplace();
    for (const KeyPair& pair : pairs) settings.tls->certificates.push_back(PairOf(pair));
    return settings;
  }
  static std::unique_ptr<Certificates> Load(const config::GatewaySettings& settings) {
    auto loaded = Certificates::Load(settings);
    EXPECT_TRUE(loaded.ok()) << loaded.status();
    return loaded.ok() ? *std::move(loaded) : nullptr;
  }
  std::string TakeLog() { return std::exchange(log_, ""); }
  static std::string MetricsOf(const Certificates& certificates) {
    std::string out;
    certificates.WriteMetrics(out);
    return out;
  }
  static int LooksUntilReplaced(Certificates& certificates) {
    for (int looks = 1; looks <= 2 * CertificateWatch::kPatience; ++looks) {
      if (certificates.Look()) return looks;
    }
    return 0;
  }

  TestAuthority authority_;
  std::string log_;
};

TEST_F(CertificatesTest, WithoutTlsThereIsNothingToLoad) {
  config::GatewaySettings settings;
  settings.upstreams.push_back({.address = {"127.0.0.1", 9000}});
  const auto certificates = Load(settings);
  ASSERT_NE(certificates, nullptr);
  EXPECT_EQ(certificates->contexts().clients, nullptr);
  EXPECT_EQ(certificates->contexts().upstreams, nullptr);
  EXPECT_FALSE(certificates->Look());
  EXPECT_FALSE(certificates->Changed());
  EXPECT_EQ(MetricsOf(*certificates), "");
}

TEST_F(CertificatesTest, AStartSaysWhichFileIsWrong) {
  const KeyPair one = authority_.Issue({});
  const KeyPair other = authority_.Issue({});
  const auto loaded = Certificates::Load(ForClients({{one.certificate_file, other.key_file}}));
  ASSERT_FALSE(loaded.ok());
  EXPECT_NE(loaded.status().message().find(other.key_file), std::string::npos) << loaded.status();
}

TEST_F(CertificatesTest, ARenewedPairIsReplacedAndToldOf) {
  const KeyPair site = authority_.IssueAs("site", {.names = {"site.test"}});
  const auto certificates = Load(ForClients({site}));
  const auto before = certificates->contexts().clients;
  EXPECT_EQ(MetricsOf(*certificates),
            "# HELP sluice_tls_certificate_not_after_seconds When it expires, in seconds since "
            "1970; by its file and its first name.\n"
            "# TYPE sluice_tls_certificate_not_after_seconds gauge\n"
            "sluice_tls_certificate_not_after_seconds{file=\"" +
                site.certificate_file +
                "\",name=\"site.test\"} 4070908800\n"
                "# HELP sluice_tls_reloads_total Changes of the files of certificates and keys, "
                "by their end.\n"
                "# TYPE sluice_tls_reloads_total counter\n"
                "sluice_tls_reloads_total{result=\"succeeded\"} 0\n"
                "sluice_tls_reloads_total{result=\"failed\"} 0\n");
  EXPECT_FALSE(certificates->Look());

  authority_.IssueAs("site", {.names = {"site.test", "www.site.test"},
                              .not_after = TestAuthority::kYear2099 - 86'400});
  EXPECT_EQ(LooksUntilReplaced(*certificates), 1);
  EXPECT_NE(certificates->contexts().clients, before);
  EXPECT_NE(MetricsOf(*certificates).find("\"site.test\"} 4070822400\n"), std::string::npos);
  EXPECT_NE(MetricsOf(*certificates).find("{result=\"succeeded\"} 1\n"), std::string::npos);
  TakeLog();
  certificates->LogAll();
  const std::string told = TakeLog();
  EXPECT_NE(told.find("certificate in use file=" + site.certificate_file +
                      " names=\"site.test, www.site.test\" expires=2098-12-31T00:00:00Z"),
            std::string::npos)
      << told;
}

TEST_F(CertificatesTest, ABrokenPairLeavesTheOldOneAndIsToldOnce) {
  const KeyPair site = authority_.IssueAs("site", {.names = {"site.test"}});
  const auto certificates = Load(ForClients({site}));
  const auto before = certificates->contexts().clients;
  const KeyPair other = authority_.Issue({});
  std::filesystem::copy_file(other.key_file, site.key_file,
                             std::filesystem::copy_options::overwrite_existing);
  EXPECT_EQ(LooksUntilReplaced(*certificates), 0);
  EXPECT_EQ(certificates->contexts().clients, before);
  const std::string told = TakeLog();
  const std::size_t at = told.find("changed certificates cannot be used");
  ASSERT_NE(at, std::string::npos) << told;
  EXPECT_NE(told.find(site.key_file), std::string::npos) << told;
  EXPECT_EQ(told.find("changed certificates", at + 1), std::string::npos) << told;
  EXPECT_NE(MetricsOf(*certificates).find("{result=\"failed\"} 1\n"), std::string::npos);

  authority_.IssueAs("site", {.names = {"site.test"}});
  EXPECT_EQ(LooksUntilReplaced(*certificates), 1);
}

// Of many sites one whose files are broken, or gone, must not keep the others' renewals out.
TEST_F(CertificatesTest, ABrokenPairDoesNotKeepTheOthersOut) {
  const KeyPair one = authority_.IssueAs("one", {.names = {"one.test"}});
  const KeyPair two = authority_.IssueAs("two", {.names = {"two.test"}});
  const KeyPair three = authority_.IssueAs("three", {.names = {"three.test"}});
  const auto certificates = Load(ForClients({one, two, three}));
  std::filesystem::remove(one.key_file);
  EXPECT_EQ(authority_.Write("two.pem", "broken"), two.certificate_file);
  authority_.IssueAs("three", {.names = {"renewed.test"}});
  EXPECT_EQ(LooksUntilReplaced(*certificates), 1);
  EXPECT_EQ(LooksUntilReplaced(*certificates), 0);
  const auto& now = certificates->contexts().clients;
  ASSERT_EQ(now->certificates().size(), 3U);
  EXPECT_EQ(now->Choose("one.test"), 0U);
  EXPECT_EQ(now->Choose("two.test"), 1U);
  EXPECT_EQ(now->Choose("renewed.test"), 2U);
  EXPECT_EQ(now->Choose("three.test"), 0U);
  const std::string told = TakeLog();
  EXPECT_NE(told.find(one.key_file), std::string::npos) << told;
  EXPECT_NE(told.find(two.certificate_file), std::string::npos) << told;
  const std::string metrics = MetricsOf(*certificates);
  EXPECT_NE(metrics.find("{result=\"failed\"} 2\n"), std::string::npos) << metrics;
  EXPECT_NE(metrics.find("{result=\"succeeded\"} 1\n"), std::string::npos) << metrics;

  authority_.IssueAs("one", {.names = {"one.test"}});
  EXPECT_EQ(LooksUntilReplaced(*certificates), 1);
}

// What a reload asks: the same settings, and files that hold something else.
TEST_F(CertificatesTest, LoadedAnewForTheSameSettingsIsAChange) {
  const KeyPair site = authority_.IssueAs("site", {.names = {"site.test"}});
  const auto certificates = Load(ForClients({site}));
  EXPECT_FALSE(certificates->Changed());
  EXPECT_EQ(authority_.Write("site.key", "broken"), site.key_file);
  EXPECT_TRUE(certificates->Changed());
  EXPECT_FALSE(Certificates::Load(ForClients({site})).ok());
  authority_.IssueAs("site", {.names = {"site.test"}});
  EXPECT_TRUE(certificates->Changed());
  certificates->Become(std::move(*Load(ForClients({site}))));
  EXPECT_FALSE(certificates->Changed());
  EXPECT_FALSE(certificates->Look());
  EXPECT_NE(MetricsOf(*certificates).find("{result=\"succeeded\"} 1\n"), std::string::npos);
}

TEST_F(CertificatesTest, OneSideIsReplacedWithoutTheOther) {
  config::GatewaySettings settings = ForClients({authority_.Issue({.names = {"site.test"}})});
  settings.upstreams.push_back({.address = {"127.0.0.1", 9443}, .https = true});
  const KeyPair own = authority_.IssueAs("own", {.names = {"gateway.test"}});
  settings.upstream_tls = {.ca = authority_.ca_file(), .own = PairOf(own)};
  const auto certificates = Load(settings);
  const TlsContexts before = certificates->contexts();
  ASSERT_NE(before.clients, nullptr);
  ASSERT_NE(before.upstreams, nullptr);
  EXPECT_NE(MetricsOf(*certificates).find("name=\"gateway.test\"} 4070908800\n"),
            std::string::npos);

  authority_.IssueAs("own", {.names = {"gateway.test"}});
  EXPECT_EQ(LooksUntilReplaced(*certificates), 1);
  EXPECT_EQ(certificates->contexts().clients, before.clients);
  EXPECT_NE(certificates->contexts().upstreams, before.upstreams);
}

TEST_F(CertificatesTest, OtherSettingsTakeOverAndWhatWasCountedStays) {
  const KeyPair first = authority_.IssueAs("first", {.names = {"first.test"}});
  const auto certificates = Load(ForClients({first}));
  authority_.IssueAs("first", {.names = {"first.test"}});
  EXPECT_EQ(LooksUntilReplaced(*certificates), 1);

  const auto next = ForClients({authority_.IssueAs("second", {.names = {"second.test"}}), first});
  EXPECT_TRUE(certificates->AreFor(ForClients({first})));
  EXPECT_FALSE(certificates->AreFor(next));
  certificates->Become(std::move(*Load(next)));
  EXPECT_TRUE(certificates->AreFor(next));
  const std::string metrics = MetricsOf(*certificates);
  EXPECT_NE(metrics.find("name=\"second.test\"}"), std::string::npos);
  EXPECT_NE(metrics.find("name=\"first.test\"}"), std::string::npos);
  EXPECT_NE(metrics.find("{result=\"succeeded\"} 1\n"), std::string::npos);
  authority_.IssueAs("second", {.names = {"third.test"}});
  EXPECT_EQ(LooksUntilReplaced(*certificates), 1);
  EXPECT_NE(MetricsOf(*certificates).find("name=\"third.test\"}"), std::string::npos);
}

TEST_F(CertificatesTest, WarnsTwoWeeksBeforeTheEndAndAfterIt) {
  const std::time_t end = TestAuthority::kYear2099;
  const auto certificates = Load(ForClients({authority_.Issue({.not_after = end})}));
  const WallTime then{std::chrono::seconds{end}};
  const struct {
    Duration before_the_end;
    std::string_view told;  // empty: nothing
  } rows[] = {
      {Certificates::kSoon + std::chrono::seconds{1}, ""},
      {Certificates::kSoon, "certificate expires soon file="},
      {std::chrono::seconds{1}, "certificate expires soon file="},
      {Duration{0}, "certificate has expired file="},
  };
  for (const auto& row : rows) {
    certificates->WarnOfExpiry(then - row.before_the_end);
    const std::string told = TakeLog();
    EXPECT_EQ(told.empty(), row.told.empty()) << told;
    EXPECT_NE(told.find(row.told), std::string::npos) << told;
  }
}

}  // namespace
}  // namespace sluice
