#include "sluice/base/ip.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <fstream>
#include <iterator>
#include <random>
#include <set>
#include <type_traits>

namespace sluice {
namespace {

static_assert(sizeof(IpAddress) == 16 && std::is_trivially_copyable_v<IpAddress>);

IpAddress Address(std::string_view text) {
  const auto address = IpAddress::Parse(text);
  EXPECT_TRUE(address.has_value()) << text;
  return address.value_or(IpAddress());
}

IpPrefix Prefix(std::string_view text) {
  const auto prefix = IpPrefix::Parse(text);
  EXPECT_TRUE(prefix.ok()) << prefix.status();
  return prefix.value_or(IpPrefix());
}

TEST(IpKeyTest, MeetsEveryVector) {
  std::ifstream file(SLUICE_SOURCE_DIR "/tests/vectors/addresses.json");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const auto vectors = boost::json::parse(text).at("ip_keys").as_array();
  ASSERT_EQ(vectors.size(), 21u);
  for (const auto& vector : vectors) {
    const std::string input(vector.at("input").as_string());
    SCOPED_TRACE(input);
    const auto address = IpAddress::Parse(input);
    ASSERT_EQ(address.has_value(), !vector.at("key").is_null());
    if (!address) continue;
    const int prefix = static_cast<int>(vector.at("ipv6_prefix").as_int64());
    EXPECT_EQ(IpKey(*address, prefix), std::string(vector.at("key").as_string()));
  }
}

TEST(IpKeyTest, EveryNotationOfAMappedAddressIsOneIpv4Client) {
  for (const auto* text : {"1.2.3.4", "::ffff:1.2.3.4", "::FFFF:102:304", "0:0:0:0:0:ffff:1.2.3.4",
                           "[::ffff:1.2.3.4]:80", "1.2.3.4:51000"}) {
    SCOPED_TRACE(text);
    EXPECT_TRUE(Address(text).is_v4());
    EXPECT_EQ(IpKey(Address(text), 56), "1.2.3.4");
    EXPECT_EQ(ClientNetwork(Address(text), 56), Address("1.2.3.4"));
  }
}

TEST(IpKeyTest, DottedNotationAtTheEndOfIpv6MakesNoNewClient) {
  EXPECT_EQ(IpKey(Address("2001:db8:1234:5678::1.2.3.4"), 56), "2001:db8:1234:5600::/56");
  EXPECT_EQ(IpKey(Address("2001:db8:1234:5678::102:304"), 56), "2001:db8:1234:5600::/56");
  EXPECT_EQ(IpKey(Address("64:ff9b::1.2.3.4"), 56), "64:ff9b::/56");
}

TEST(IpKeyTest, WalkingInsideOnesNetworkStaysOneClient) {
  const IpAddress first = ClientNetwork(Address("2001:db8:1:2::1"), 64);
  EXPECT_EQ(ClientNetwork(Address("2001:db8:1:2:ffff::9"), 64), first);
  EXPECT_NE(ClientNetwork(Address("2001:db8:1:3::1"), 64), first);
}

// Whatever the prefix: no IPv6 network has the bytes of an IPv4 client.
TEST(IpKeyTest, NetworksOfTheTwoFamiliesNeverMeet) {
  std::mt19937_64 random(7);
  for (int i = 0; i < 20000; ++i) {
    std::array<std::uint8_t, 16> bytes{};
    for (std::size_t b = 8; b < 16; ++b) {
      bytes[b] = random() % 2 == 0 ? 0xff : static_cast<std::uint8_t>(random());
    }
    const IpAddress address = IpAddress::FromBytes(bytes);
    const int prefix = static_cast<int>(random() % 129);
    EXPECT_EQ(ClientNetwork(address, prefix).is_v4(), address.is_v4());
  }
}

TEST(IpAddressTest, RefusesWhatIsNoAddress) {
  for (const auto* text : {"",
                           " ",
                           "1.2.3",
                           "1.2.3.4.5",
                           "1.2.3.256",
                           "01.2.3.4",
                           "1.2.3.4 ",
                           " 1.2.3.4",
                           "1.2.3.4:",
                           "1.2.3.4:65536",
                           "1.2.3.4:123456",
                           "1.2.3.4:x",
                           "[1.2.3.4]:80",
                           "[::1",
                           "[::1]x",
                           "[::1]:",
                           "::1]",
                           "[]",
                           ":",
                           ":::",
                           "1::2::3",
                           "1:2:3:4:5:6:7",
                           "1:2:3:4:5:6:7:8:9",
                           "1:2:3:4:5:6:7:8::",
                           "::1:2:3:4:5:6:7:8",
                           "1:2:3:4:5:6:7:",
                           ":1:2:3:4:5:6:7",
                           "12345::",
                           "g::",
                           "1.2.3.4::",
                           "1:1.2.3.4::",
                           "::1.2.3.4:5",
                           "::1.2.3",
                           "fe80::1%",
                           "fe80::1%a b",
                           "1.2.3.4%eth0",
                           "0x7f.0.0.1",
                           "127.1",
                           "unknown",
                           "_hidden",
                           "2001:db8::/32"}) {
    EXPECT_FALSE(IpAddress::Parse(text).has_value()) << text;
  }
}

TEST(IpAddressTest, DropsPortsAndZones) {
  const struct {
    const char* text;
    const char* plain;
  } rows[] = {
      {"203.0.113.9:51000", "203.0.113.9"}, {"[2001:db8::1]:443", "2001:db8::1"},
      {"[2001:db8::1]", "2001:db8::1"},     {"fe80::1%eth0", "fe80::1"},
      {"[fe80::1%en0]:1", "fe80::1"},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.text);
    const auto address = IpAddress::Parse(row.text);
    EXPECT_EQ(address ? address->ToString() : "", row.plain);
  }
}

TEST(IpAddressTest, WritesTheFormOfRfc5952) {
  const struct {
    const char* text;
    const char* written;
  } rows[] = {
      {"2001:DB8:0:0:1:0:0:1", "2001:db8::1:0:0:1"},     // the first of two equal runs
      {"2001:db8:0:1:1:1:1:1", "2001:db8:0:1:1:1:1:1"},  // one zero is not shortened
      {"2001:0:0:1:0:0:0:1", "2001:0:0:1::1"},
      {"0:0:0:0:0:0:0:0", "::"},
      {"1:0:0:0:0:0:0:0", "1::"},
      {"::1", "::1"},
      {"::ffff:0.0.0.0", "0.0.0.0"},
      {"::1.2.3.4", "::102:304"},
      {"255.255.255.255", "255.255.255.255"},
  };
  for (const auto& row : rows) EXPECT_EQ(Address(row.text).ToString(), row.written) << row.text;
}

// The C library is the reference for IPv6; it knows neither ports nor zones.
TEST(IpAddressTest, AgreesWithTheCLibraryOnRandomTextAndBytes) {
  std::mt19937 random(11);
  constexpr std::string_view kAlphabet = "0123456789abF:::..";
  int addresses = 0;
  for (int i = 0; i < 200000; ++i) {
    std::string text(random() % 20, ' ');
    for (char& c : text) c = kAlphabet[random() % kAlphabet.size()];
    in6_addr reference;
    if (text.find(':') == text.npos || text.find('.') < text.find(':')) continue;
    const bool valid = inet_pton(AF_INET6, text.c_str(), &reference) == 1;
    const auto address = IpAddress::Parse(text);
    ASSERT_EQ(address.has_value(), valid) << text;
    if (!valid) continue;
    ++addresses;
    ASSERT_TRUE(std::equal(std::begin(reference.s6_addr), std::end(reference.s6_addr),
                           address->bytes().begin()))
        << text;
  }
  EXPECT_GT(addresses, 1000);
  for (int i = 0; i < 20000; ++i) {
    std::array<std::uint8_t, 16> bytes;
    for (auto& b : bytes) b = random() % 2 == 0 ? 0 : static_cast<std::uint8_t>(random());
    const IpAddress address = IpAddress::FromBytes(bytes);
    ASSERT_EQ(address.bytes(), bytes);
    ASSERT_EQ(IpAddress::Parse(address.ToString()), address) << address.ToString();
  }
}

TEST(IpPrefixTest, HoldsTheAddressesOfItsRange) {
  const struct {
    const char* prefix;
    const char* address;
    bool contained;
  } rows[] = {
      {"10.0.0.0/8", "10.255.0.1", true},
      {"10.0.0.0/8", "11.0.0.0", false},
      {"10.0.0.0/8", "::ffff:10.0.0.1", true},  // the notation does not matter
      {"::ffff:10.0.0.0/104", "10.0.0.1", true},
      {"192.0.2.1", "192.0.2.1", true},
      {"192.0.2.1", "192.0.2.2", false},
      {"0.0.0.0/0", "203.0.113.9", true},
      {"0.0.0.0/0", "2001:db8::1", false},
      {"::/0", "2001:db8::1", true},
      {"::/0", "203.0.113.9", false},  // the families are apart
      {"::/64", "203.0.113.9", false},
      {"2001:db8::/33", "2001:db8:7fff::", true},
      {"2001:db8::/33", "2001:db8:8000::", false},
      {"2001:db8::1/128", "2001:db8::1", true},
      {"2001:db8::1/128", "2001:db8::2", false},
  };
  for (const auto& row : rows) {
    EXPECT_EQ(Prefix(row.prefix).Contains(Address(row.address)), row.contained)
        << row.prefix << " " << row.address;
  }
}

TEST(IpPrefixTest, SaysWhatToWriteInstead) {
  const struct {
    const char* text;
    const char* message;
  } rows[] = {
      {"10.0.0.5/8", "`10.0.0.5/8` sets bits after its length; write `10.0.0.0/8`"},
      {"10.0.0.0/33",
       "`10.0.0.0/33` has no length that fits; write a whole number from 0 to 32 "
       "after the `/`"},
      {"::/129",
       "`::/129` has no length that fits; write a whole number from 0 to 128 after the "
       "`/`"},
      {"10.0.0.0/",
       "`10.0.0.0/` has no length that fits; write a whole number from 0 to 32 after "
       "the `/`"},
      {"::ffff:10.0.0.0/90",
       "`::ffff:10.0.0.0/90` sets bits after its length; write "
       "`::ffc0:0:0/90`"},
      {"10.0.0.0:80/8",
       "`10.0.0.0:80/8` is no address range; write one like `10.0.0.0/8`, "
       "`2001:db8::/32` or `192.0.2.1`"},
  };
  for (const auto& row : rows) {
    const auto prefix = IpPrefix::Parse(row.text);
    ASSERT_FALSE(prefix.ok()) << row.text;
    EXPECT_EQ(prefix.status().message(), row.message);
  }
  for (const auto* text : {"", "/8", "10/8", "[::]/0", "fe80::%eth0/64", "lo", "10.0.0.0/8/8"}) {
    EXPECT_FALSE(IpPrefix::Parse(text).ok()) << text;
  }
}

TEST(IpPrefixTest, WritesItselfSoThatItCanBeReadAgain) {
  for (const auto* text : {"10.0.0.0/8", "192.0.2.1/32", "2001:db8::/32", "::/0", "0.0.0.0/0"}) {
    EXPECT_EQ(Prefix(text).ToString(), text);
  }
}

}  // namespace
}  // namespace sluice
