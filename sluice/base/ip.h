// An IP address, a range of them, and which addresses count as one client.
//
// IPv4 is kept as the IPv4-mapped IPv6 address ::ffff:a.b.c.d. So the two notations of one client
// are the same 128 bits, whatever was written (`1.2.3.4`, `::ffff:1.2.3.4`, `::ffff:102:304`), and
// no notation makes a second client of it.
//
// One IPv6 customer is given a whole network, most often a /64, and walks freely in it. A limit
// for each address would be no limit, so a client is its network (ClientNetwork); IPv4 is taken
// whole. NAT64 (64:ff9b::/96) is IPv6 like any other: whoever decides on the IPv4 address inside
// would let a crafted suffix choose its bucket.
//
// Cost: 16 bytes; reading an address from text is one pass without allocation.
// Source: RFC 4291 §2.2 and RFC 5952 (text), RFC 4007 §11 (zones), RFC 4632 (prefixes).
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace sluice {

class IpAddress {
 public:
  constexpr IpAddress() = default;  // `::`
  static constexpr IpAddress V4(std::uint32_t address) {
    return IpAddress(0, std::uint64_t{0xffff} << 32 | address);
  }
  // Sixteen bytes in network order; a mapped IPv4 address is IPv4.
  static IpAddress FromBytes(const std::array<std::uint8_t, 16>& bytes);

  // Reads `1.2.3.4`, `1.2.3.4:port`, `v6`, `[v6]`, `[v6]:port`, a zone (`fe80::1%eth0`) in each v6.
  // The port and the zone are checked and dropped: neither says who the client is. Strict: four
  // decimal parts without leading zeros, nothing before or after, no spaces, no prefix length.
  static std::optional<IpAddress> Parse(std::string_view text);

  [[nodiscard]] constexpr bool is_v4() const { return high_ == 0 && low_ >> 32 == 0xffff; }
  [[nodiscard]] std::array<std::uint8_t, 16> bytes() const;  // in network order

  // `1.2.3.4`, or RFC 5952: lower case, the longest run of zeros shortened.
  [[nodiscard]] std::string ToString() const;

  // The first `bits` (0 to 128) of the 128, zeros after them.
  [[nodiscard]] constexpr IpAddress Masked(int bits) const {
    return IpAddress(high_ & Mask(bits), low_ & Mask(bits - 64));
  }

  friend constexpr auto operator<=>(const IpAddress&, const IpAddress&) = default;

 private:
  constexpr IpAddress(std::uint64_t high, std::uint64_t low) : high_(high), low_(low) {}
  static constexpr std::uint64_t Mask(int bits) {
    return bits <= 0 ? 0 : bits >= 64 ? ~std::uint64_t{0} : ~(~std::uint64_t{0} >> bits);
  }

  std::uint64_t high_ = 0;  // the first eight bytes as a number
  std::uint64_t low_ = 0;
};

// A range of addresses: `10.0.0.0/8`, `2001:db8::/32`, or one address.
//
// The families are apart: `::/0` holds no IPv4 address, as everywhere else. A range of mapped
// addresses (`::ffff:10.0.0.0/104`) is the IPv4 range.
class IpPrefix {
 public:
  constexpr IpPrefix() = default;  // contains `::` alone

  // Refuses (kInvalidArgument, one sentence that says what to write) what is not a range, a length
  // beyond the family's, and bits set after the length (`10.0.0.1/8`): one of the two is a mistake.
  static absl::StatusOr<IpPrefix> Parse(std::string_view text);

  [[nodiscard]] constexpr bool Contains(IpAddress address) const {
    return address.Masked(bits_) == network_ && address.is_v4() == network_.is_v4();
  }
  [[nodiscard]] std::string ToString() const;  // always with the length: `10.0.0.1/32`

  friend constexpr bool operator==(const IpPrefix&, const IpPrefix&) = default;

 private:
  constexpr IpPrefix(IpAddress network, int bits) : network_(network), bits_(bits) {}

  IpAddress network_;
  int bits_ = 128;  // of the 128: an IPv4 /8 has 104
};

// The client that `address` belongs to: an IPv4 address itself, else its network of `ipv6_prefix`
// bits (0 to 128). Two clients never have the same 16 bytes, across the families too, so these
// bytes serve as a key; this is the form for the hot path.
[[nodiscard]] constexpr IpAddress ClientNetwork(IpAddress address, int ipv6_prefix) {
  return address.is_v4() ? address : address.Masked(ipv6_prefix);
}

// The same client in words: `1.2.3.4` or `2001:db8:1:2::/64`.
[[nodiscard]] std::string IpKey(IpAddress address, int ipv6_prefix);

}  // namespace sluice
