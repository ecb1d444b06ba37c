#include "sluice/rule/client_address.h"

#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <fstream>
#include <initializer_list>
#include <iterator>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sluice {
namespace {

IpAddress Address(std::string_view text) {
  const auto address = IpAddress::Parse(text);
  EXPECT_TRUE(address.has_value()) << text;
  return address.value_or(IpAddress());
}

std::vector<Field> Lines(std::string_view name, std::span<const std::string_view> values) {
  std::vector<Field> fields = {{"Host", "1.1.1.1"}};
  for (const std::string_view value : values) fields.push_back({name, value});
  return fields;
}

// Behind the proxies of 10.0.0.0/8.
std::string Client(std::string_view peer, std::initializer_list<std::string_view> lines,
                   ForwardedHeader header = ForwardedHeader::kXForwardedFor) {
  const ClientAddressOptions options{.trusted_proxies = {*IpPrefix::Parse("10.0.0.0/8")},
                                     .header = header};
  const bool forwarded = header == ForwardedHeader::kForwarded;
  const std::vector<Field> fields =
      Lines(forwarded ? "Forwarded" : "X-Forwarded-For", {lines.begin(), lines.size()});
  return ClientAddress(options, Address(peer), fields).ToString();
}

TEST(ClientAddressTest, MeetsEveryVector) {
  std::ifstream file(SLUICE_SOURCE_DIR "/tests/vectors/addresses.json");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const auto vectors = boost::json::parse(text).at("forwarded").as_array();
  ASSERT_EQ(vectors.size(), 10u);
  for (const auto& vector : vectors) {
    SCOPED_TRACE(boost::json::serialize(vector));
    ClientAddressOptions options;
    for (const auto& range : vector.at("trusted").as_array()) {
      options.trusted_proxies.push_back(*IpPrefix::Parse(std::string(range.as_string())));
    }
    std::vector<std::string> owned;
    for (const auto& line : vector.at("x_forwarded_for").as_array()) {
      owned.emplace_back(line.as_string());
    }
    const std::vector<std::string_view> lines(owned.begin(), owned.end());
    const auto peer = Address(std::string(vector.at("peer").as_string()));
    EXPECT_EQ(ClientAddress(options, peer, Lines("X-Forwarded-For", lines)).ToString(),
              std::string(vector.at("client").as_string()));
  }
}

TEST(ClientAddressTest, ANewPortIsNoNewClient) {
  EXPECT_EQ(Client("10.0.0.1", {"203.0.113.9:51000"}), "203.0.113.9");
  EXPECT_EQ(Client("10.0.0.1", {"203.0.113.9:51001"}), "203.0.113.9");
  EXPECT_EQ(Client("10.0.0.1", {"[2001:db8::1]:443"}), "2001:db8::1");
  EXPECT_EQ(Client("10.0.0.1", {"2001:db8::1"}), "2001:db8::1");
}

TEST(ClientAddressTest, TheLeftmostElementIsTheClientsOwnWord) {
  for (int i = 1; i <= 10; ++i) {
    const std::string forged = "9.9.9." + std::to_string(i);
    EXPECT_EQ(Client("10.0.0.5", {forged + ", 203.0.113.7"}), "203.0.113.7");
    EXPECT_EQ(Client("203.0.113.50", {forged}), "203.0.113.50");  // no proxy of ours
  }
}

TEST(ClientAddressTest, ThereIsAnAddressWithoutAnyHeaderAndWithGarbage) {
  EXPECT_EQ(Client("203.0.113.9", {}), "203.0.113.9");
  EXPECT_EQ(Client("10.0.0.1", {}), "10.0.0.1");
  for (const auto* garbage :
       {"", ", ,", ",", "unknown", "_hidden", "\"", "\\", "1.2.3.4;", ":::"}) {
    EXPECT_EQ(Client("10.0.0.1", {garbage}), "10.0.0.1") << garbage;
  }
  std::string long_list = "6.6.6.6";
  while (long_list.size() < 10'000) long_list += ", 10.0.0.7";
  EXPECT_EQ(Client("10.0.0.1", {long_list}), "6.6.6.6");
  EXPECT_EQ(Client("10.0.0.1", {std::string(10'000, ',')}), "10.0.0.1");
  EXPECT_EQ(Client("10.0.0.1", {std::string(10'000, 'x')}), "10.0.0.1");
}

TEST(ClientAddressTest, ReadsForwardedAsRfc7239WritesIt) {
  const struct {
    std::string_view line;
    std::string_view client;
  } rows[] = {
      {"for=192.0.2.60;proto=http;by=203.0.113.43", "192.0.2.60"},
      {"For=\"[2001:db8:cafe::17]:4711\"", "2001:db8:cafe::17"},
      {"proto=https ; for=192.0.2.60", "192.0.2.60"},
      {"for=192.0.2.43, for=198.51.100.17", "198.51.100.17"},
      {"for=192.0.2.43, for=10.0.0.9", "192.0.2.43"},
      {"for=192.0.2.43:47011", "192.0.2.43"},  // should be quoted, often is not
      {"for=\"192.0.2.43:_gazonk\"", "192.0.2.43"},
      {"for=192.0.2.43, for=unknown, for=10.0.0.9", "10.0.0.9"},
      {"for=192.0.2.43, for=_secret, for=10.0.0.9", "10.0.0.9"},
      {"for=192.0.2.43, proto=http", "10.0.0.1"},                // an element without an address
      {"for=192.0.2.43;for=6.6.6.6", "10.0.0.1"},                // one with two
      {"192.0.2.43", "10.0.0.1"},                                // the other header's form
      {"host=\"a, for=6.6.6.6\";for=192.0.2.43", "192.0.2.43"},  // a comma in quotes
      {"for=192.0.2.43;host=\"a\\\", for=6.6.6.6;\"", "192.0.2.43"},  // an escaped quote in quotes
      {"for=6.6.6.6;host=\", for=192.0.2.43", "192.0.2.43"},          // the client's open quote
      {"for=6.6.6.6;host=\"x\\, for=192.0.2.43", "192.0.2.43"},
  };
  for (const auto& row : rows) {
    EXPECT_EQ(Client("10.0.0.1", {row.line}, ForwardedHeader::kForwarded), row.client) << row.line;
  }
}

// What stands left of an untrusted hop, whatever bytes it is of, changes nothing.
TEST(ClientAddressTest, NothingThatTheClientSendsChangesWhatAProxyAppended) {
  constexpr std::string_view kBytes = "\"\\,;= 1.:[]f_";
  unsigned state = 1;
  for (int i = 0; i < 20'000; ++i) {
    std::string sent;
    for (unsigned length = i % 24; length > 0; --length) {
      state = state * 1664525 + 1013904223;
      sent += kBytes[(state >> 16) % kBytes.size()];
    }
    ASSERT_EQ(Client("10.0.0.1", {sent + ", 203.0.113.9"}), "203.0.113.9") << sent;
    ASSERT_EQ(Client("10.0.0.1", {sent, "203.0.113.9, 10.0.0.4"}), "203.0.113.9") << sent;
    ASSERT_EQ(
        Client("10.0.0.1", {sent + ", for=203.0.113.9;proto=http"}, ForwardedHeader::kForwarded),
        "203.0.113.9")
        << sent;
  }
}

}  // namespace
}  // namespace sluice
