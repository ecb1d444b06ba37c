#include "sluice/net/tls_context.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <openssl/x509.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "sluice/net/testing/certificates.h"

namespace sluice::net {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::KeyPair;
using testing::TestAuthority;

class TlsContextTest : public ::testing::Test {
 protected:
  static absl::Status ServerStatus(const KeyPair& pair) {
    return TlsServerContext::Load({.pairs = {{pair.certificate_file, pair.key_file}}}).status();
  }
  static std::string Read(const std::string& file) {
    std::ostringstream content;
    content << std::ifstream(file).rdbuf();
    return content.str();
  }
  static void ExpectRefused(const absl::Status& status, absl::StatusCode code,
                            const std::string& file, const std::string& words) {
    EXPECT_EQ(status.code(), code) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(file));
    EXPECT_THAT(std::string(status.message()), HasSubstr(words));
  }

  TestAuthority authority_;
};

TEST_F(TlsContextTest, TellsNamesAndTimesOfEachCertificate) {
  const KeyPair named =
      authority_.Issue({.names = {"A.Test", "*.a.test", "10.0.0.1", "2001:DB8::1"}});
  const KeyPair plain = authority_.Issue({.common_name = "Old.Test",
                                          .not_before = TestAuthority::kYear2000,
                                          .not_after = TestAuthority::kYear2001});
  const auto context =
      TlsServerContext::Load({.pairs = {{named.certificate_file, named.key_file},
                                        {plain.certificate_file, plain.key_file}}});
  ASSERT_TRUE(context.ok()) << context.status();
  ASSERT_EQ((*context)->certificates().size(), 2U);
  const TlsServerContext::Certificate& first = (*context)->certificates()[0];
  EXPECT_EQ(first.file, named.certificate_file);
  EXPECT_THAT(first.names, ElementsAre("a.test", "*.a.test", "10.0.0.1", "2001:db8::1"));
  EXPECT_EQ(first.not_before, TestAuthority::kYear2020);
  EXPECT_EQ(first.not_after, TestAuthority::kYear2099);
  const TlsServerContext::Certificate& second = (*context)->certificates()[1];
  EXPECT_THAT(second.names, ElementsAre("old.test"));
  EXPECT_EQ(second.not_after, TestAuthority::kYear2001);
}

TEST_F(TlsContextTest, TakesChainsAndBothKindsOfKeysInOneFileOrTwo) {
  EXPECT_TRUE(ServerStatus(authority_.Issue({.through_intermediate = true})).ok());
  EXPECT_TRUE(ServerStatus(authority_.Issue({.rsa_bits = 2048})).ok());
  // One file with both, in either order.
  const KeyPair pair = authority_.Issue({});
  const std::string key = Read(pair.key_file);
  const std::string certificate = Read(pair.certificate_file);
  const std::string key_first = authority_.Write("key_first.pem", key + certificate);
  const std::string key_last = authority_.Write("key_last.pem", certificate + key);
  EXPECT_EQ(ServerStatus({key_first, key_first}), absl::OkStatus());
  EXPECT_EQ(ServerStatus({key_last, key_last}), absl::OkStatus());
  // As `openssl ecparam -genkey` writes it: the curve's name (P-256) in front.
  const std::string with_curve = authority_.Write(
      "curve.key",
      "-----BEGIN EC PARAMETERS-----\nBggqhkjOPQMBBw==\n-----END EC PARAMETERS-----\n" + key);
  EXPECT_EQ(ServerStatus({pair.certificate_file, with_curve}), absl::OkStatus());
}

TEST_F(TlsContextTest, ChoosesTheExactNameThenTheWildcardThenTheFirst) {
  const std::vector<std::vector<std::string>> names = {{"first.test"},
                                                       {"*.site.test", "site.test"},
                                                       {"www.site.test", "*.b.test"},
                                                       {"www.site.test"}};
  TlsServerContext::Options options;
  for (const auto& each : names) {
    const KeyPair pair = authority_.Issue({.names = each});
    options.pairs.push_back({pair.certificate_file, pair.key_file});
  }
  const auto context = TlsServerContext::Load(options);
  ASSERT_TRUE(context.ok()) << context.status();
  const struct {
    std::string_view name;
    std::size_t chosen;
  } rows[] = {
      {"first.test", 0},    {"site.test", 1},     {"api.site.test", 1},
      {"www.site.test", 2}, {"WWW.Site.TEST", 2}, {"a.b.test", 2},
      {"b.test", 0},        {"x.y.site.test", 0}, {"", 0},
      {".site.test", 0},    {"other", 0},         {"*.site.test", 1},
      {"site.test.", 0},
  };
  for (const auto& row : rows) EXPECT_EQ((*context)->Choose(row.name), row.chosen) << row.name;
}

TEST_F(TlsContextTest, SaysWhichFileOfAServerIsWrongAndWhy) {
  const KeyPair good = authority_.Issue({});
  const KeyPair other = authority_.Issue({});
  const KeyPair locked = authority_.Issue({.pass_phrase = "secret"});
  const KeyPair weak = authority_.Issue({.rsa_bits = 1024});
  const std::string empty = authority_.Write("empty.pem", "");
  const std::string damaged = authority_.Write(
      "damaged.pem", Read(good.certificate_file).substr(0, 200) + "\n-----END CERTIFICATE-----\n");
  const std::string bad_key =
      authority_.Write("bad.key", "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n");
  const std::string none = authority_.folder() + "none";
  const auto kInvalid = absl::StatusCode::kInvalidArgument;
  const auto kMissing = absl::StatusCode::kNotFound;
  const struct {
    KeyPair pair;
    absl::StatusCode code;
    std::string file;
    std::string words;
  } rows[] = {
      {{none, good.key_file}, kMissing, none, "No such file"},
      {{good.certificate_file, none}, kMissing, none, "No such file"},
      {{authority_.folder(), good.key_file}, kInvalid, authority_.folder(), "a folder"},
      {{empty, good.key_file}, kInvalid, empty, "there is no certificate in it"},
      {{good.key_file, good.key_file}, kInvalid, good.key_file, "there is no certificate in it"},
      {{damaged, good.key_file}, kInvalid, damaged, "certificate 1 in it cannot be read"},
      {{good.certificate_file, good.certificate_file},
       kInvalid,
       good.certificate_file,
       "there is no private key in it"},
      {{good.certificate_file, bad_key}, kInvalid, bad_key, "the private key in it cannot be read"},
      {{good.certificate_file, other.key_file},
       kInvalid,
       other.key_file,
       "the key belongs to another certificate"},
      {{locked.certificate_file, locked.key_file},
       kInvalid,
       locked.key_file,
       "the key is encrypted"},
      {{weak.certificate_file, weak.key_file}, kInvalid, weak.certificate_file, "too small"},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.words);
    ExpectRefused(ServerStatus(row.pair), row.code, row.file, row.words);
  }
}

TEST_F(TlsContextTest, SaysWhichFileOfAClientIsWrongAndWhy) {
  const KeyPair good = authority_.Issue({});
  const std::string none = authority_.folder() + "none";
  EXPECT_TRUE(TlsClientContext::Load({.ca_file = authority_.ca_file(),
                                      .certificate_file = good.certificate_file,
                                      .key_file = good.key_file})
                  .ok());
  ExpectRefused(TlsClientContext::Load({.ca_file = none}).status(), absl::StatusCode::kNotFound,
                none, "No such file");
  ExpectRefused(TlsClientContext::Load({.ca_file = good.key_file}).status(),
                absl::StatusCode::kInvalidArgument, good.key_file, "there is no certificate in it");
  ExpectRefused(TlsClientContext::Load({.certificate_file = good.certificate_file,
                                        .key_file = authority_.Issue({}).key_file,
                                        .verify = false})
                    .status(),
                absl::StatusCode::kInvalidArgument, ".key",
                "the key belongs to another certificate");
}

TEST(TlsClientContextTest, BelievesTheSystemsAuthoritiesOrSaysThatThereAreNone) {
  const TestAuthority authority;
  const char* variable = X509_get_default_cert_file_env();
  ::setenv(variable, authority.ca_file().c_str(), 1);
  EXPECT_TRUE(TlsClientContext::Load({}).ok());
  ::setenv(variable, "/nowhere/authorities.pem", 1);
  EXPECT_EQ(TlsClientContext::Load({}).status().code(), absl::StatusCode::kNotFound);
  EXPECT_TRUE(TlsClientContext::Load({.verify = false}).ok());
  ::unsetenv(variable);
}

}  // namespace
}  // namespace sluice::net
