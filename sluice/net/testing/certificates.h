// Keys and certificates for tests, made on the spot: an authority of the test's own in a folder
// that goes away with it. The dates are fixed, so that no test asks what day it is: valid from 2020
// to 2099 unless it says otherwise.
//
//   TestAuthority authority;
//   const KeyPair site = authority.Issue({.names = {"site.test", "*.site.test", "127.0.0.1"}});
//   ... site.certificate_file, site.key_file, authority.ca_file()
#pragma once

#include <ctime>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::net::testing {

struct KeyPair {
  std::string certificate_file;  // PEM
  std::string key_file;
};

class TestAuthority {
 public:
  static constexpr std::time_t kYear2000 = 946'684'800;
  static constexpr std::time_t kYear2001 = 978'307'200;
  static constexpr std::time_t kYear2020 = 1'577'836'800;
  static constexpr std::time_t kYear2099 = 4'070'908'800;

  struct Wanted {
    std::vector<std::string> names;  // subjectAltName: DNS names and IP addresses; may be none
    std::string common_name = "test";
    std::time_t not_before = kYear2020;
    std::time_t not_after = kYear2099;
    bool self_signed = false;           // by its own key, not by the authority
    bool through_intermediate = false;  // signed by one that the authority signed; a chain of two
    int rsa_bits = 0;                   // 0: a key on the curve P-256, which is made in no time
    std::string pass_phrase;            // of the key's file; empty: none
  };

  TestAuthority();
  TestAuthority(const TestAuthority&) = delete;
  TestAuthority& operator=(const TestAuthority&) = delete;
  ~TestAuthority();

  [[nodiscard]] const std::string& folder() const { return folder_; }
  [[nodiscard]] const std::string& ca_file() const { return ca_file_; }

  // Into files of their own; each call makes another key. Fails the test when it cannot.
  [[nodiscard]] KeyPair Issue(const Wanted& wanted);
  // The same into files with this stem (STEM.pem, STEM.key), in place of what is there.
  KeyPair IssueAs(std::string_view stem, const Wanted& wanted);

  // A file of the folder with this content, for what is no certificate.
  [[nodiscard]] std::string Write(std::string_view name, std::string_view content) const;

 private:
  struct Signer;

  std::string folder_;
  std::string ca_file_;
  std::unique_ptr<Signer> root_;
  long serial_ = 1;
};

}  // namespace sluice::net::testing
