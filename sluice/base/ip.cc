#include "sluice/base/ip.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "sluice/base/ascii.h"

namespace sluice {
namespace {

constexpr int kGroups = 8;  // of 16 bits each
using Groups = std::array<std::uint16_t, kGroups>;

// Takes one decimal number of at most `max` off the front; no sign, no leading zero.
std::optional<std::uint32_t> TakeDecimal(std::string_view& text, std::uint32_t max) {
  std::uint32_t value = 0;
  std::size_t used = 0;
  for (; used < text.size() && IsDigit(text[used]); ++used) {
    if (used > 0 && value == 0) return std::nullopt;
    value = value * 10 + static_cast<std::uint32_t>(text[used] - '0');
    if (value > max) return std::nullopt;
  }
  if (used == 0) return std::nullopt;
  text.remove_prefix(used);
  return value;
}

bool TakeChar(std::string_view& text, char c) {
  if (text.empty() || text.front() != c) return false;
  text.remove_prefix(1);
  return true;
}

// Takes `a.b.c.d` off the front.
std::optional<std::uint32_t> TakeV4(std::string_view& text) {
  std::uint32_t address = 0;
  for (int part = 0; part < 4; ++part) {
    if (part > 0 && !TakeChar(text, '.')) return std::nullopt;
    const auto value = TakeDecimal(text, 255);
    if (!value) return std::nullopt;
    address = address << 8 | *value;
  }
  return address;
}

// Takes up to four hex digits off the front.
std::optional<std::uint16_t> TakeGroup(std::string_view& text) {
  unsigned value = 0;
  std::size_t used = 0;
  for (; used < text.size() && used < 4 && HexValue(text[used]) >= 0; ++used) {
    value = value << 4 | static_cast<unsigned>(HexValue(text[used]));
  }
  if (used == 0) return std::nullopt;
  text.remove_prefix(used);
  return static_cast<std::uint16_t>(value);
}

// Takes groups up to the end or a `::`. An IPv4 address at the very end is the last two groups.
// False when what stands there can be no part of an address.
bool TakeGroups(std::string_view& text, Groups& groups, int& count, int max) {
  while (!text.empty()) {
    if (count == max) return false;
    std::string_view tail = text;
    if (count + 2 <= max && text.find('.') != text.npos) {
      if (const auto v4 = TakeV4(tail); v4.has_value() && tail.empty()) {
        groups[count++] = static_cast<std::uint16_t>(*v4 >> 16);
        groups[count++] = static_cast<std::uint16_t>(*v4);
        text = {};
        return true;
      }
    }
    const auto group = TakeGroup(text);
    if (!group) return false;
    groups[count++] = *group;
    if (text.empty() || text.substr(0, 2) == "::") return true;
    if (!TakeChar(text, ':') || text.empty()) return false;
  }
  return true;
}

// The whole of `text` is an IPv6 address without zone, brackets or port.
std::optional<Groups> ParseV6(std::string_view text) {
  Groups head{};
  int head_count = 0;
  if (text.substr(0, 2) != "::" && !TakeGroups(text, head, head_count, kGroups))
    return std::nullopt;
  if (text.empty()) return head_count == kGroups ? std::optional(head) : std::nullopt;
  if (head_count == kGroups) return std::nullopt;
  text.remove_prefix(2);

  // `::` stands for at least one group of zeros.
  Groups tail{};
  int tail_count = 0;
  if (!TakeGroups(text, tail, tail_count, kGroups - 1 - head_count)) return std::nullopt;
  if (!text.empty()) return std::nullopt;
  for (int i = 0; i < tail_count; ++i) head[kGroups - tail_count + i] = tail[i];
  return head;
}

// Zones are names of interfaces; what can stand in a URL's zone is more than enough.
bool DropZone(std::string_view& text) {
  const std::size_t percent = text.find('%');
  if (percent == text.npos) return true;
  const std::string_view zone = text.substr(percent + 1);
  text = text.substr(0, percent);
  if (zone.empty() || zone.size() > 64) return false;
  for (const char c : zone) {
    const bool named = IsDigit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' ||
                       c == '.' || c == '_' || c == '~';
    if (!named) return false;
  }
  return true;
}

bool IsPort(std::string_view text) {
  // Zeros in front are harmless here, and the number is dropped anyway.
  if (text.empty() || text.size() > 5) return false;
  unsigned value = 0;
  for (const char c : text) {
    if (!IsDigit(c)) return false;
    value = value * 10 + static_cast<unsigned>(c - '0');
  }
  return value <= 65535;
}

std::uint64_t LoadBigEndian(const std::uint8_t* bytes) {
  std::uint64_t value = 0;
  for (int i = 0; i < 8; ++i) value = value << 8 | bytes[i];
  return value;
}

}  // namespace

IpAddress IpAddress::FromBytes(const std::array<std::uint8_t, 16>& bytes) {
  return {LoadBigEndian(bytes.data()), LoadBigEndian(bytes.data() + 8)};
}

std::array<std::uint8_t, 16> IpAddress::bytes() const {
  std::array<std::uint8_t, 16> out;
  for (int i = 0; i < 8; ++i) {
    out[i] = static_cast<std::uint8_t>(high_ >> (56 - 8 * i));
    out[8 + i] = static_cast<std::uint8_t>(low_ >> (56 - 8 * i));
  }
  return out;
}

std::optional<IpAddress> IpAddress::Parse(std::string_view text) {
  std::string_view rest = text;
  if (const auto v4 = TakeV4(rest); v4.has_value()) {
    if (!rest.empty() && !(TakeChar(rest, ':') && IsPort(rest))) return std::nullopt;
    return V4(*v4);
  }

  if (TakeChar(text, '[')) {
    const std::size_t end = text.find(']');
    if (end == text.npos) return std::nullopt;
    std::string_view port = text.substr(end + 1);
    if (!port.empty() && !(TakeChar(port, ':') && IsPort(port))) return std::nullopt;
    text = text.substr(0, end);
  }
  if (!DropZone(text)) return std::nullopt;
  const auto groups = ParseV6(text);
  if (!groups) return std::nullopt;
  std::uint64_t halves[2] = {0, 0};
  for (int i = 0; i < kGroups; ++i) halves[i / 4] = halves[i / 4] << 16 | (*groups)[i];
  return IpAddress(halves[0], halves[1]);
}

std::string IpAddress::ToString() const {
  const std::array<std::uint8_t, 16> b = bytes();
  if (is_v4()) {
    return absl::StrCat(int{b[12]}, ".", int{b[13]}, ".", int{b[14]}, ".", int{b[15]});
  }
  Groups groups;
  for (int i = 0; i < kGroups; ++i) {
    groups[i] = static_cast<std::uint16_t>(b[2 * i] << 8 | b[2 * i + 1]);
  }
  // The first of the longest runs of at least two zeros.
  int run_start = -1, run_length = 1;
  for (int i = 0; i < kGroups; ++i) {
    int length = 0;
    while (i + length < kGroups && groups[i + length] == 0) ++length;
    if (length > run_length) {
      run_start = i;
      run_length = length;
    }
    i += length;
  }
  std::string text;
  for (int i = 0; i < kGroups; ++i) {
    if (i == run_start) {
      text += "::";
      i += run_length - 1;
      continue;
    }
    if (!text.empty() && text.back() != ':') text += ':';
    absl::StrAppend(&text, absl::Hex(groups[i]));
  }
  return text;
}

absl::StatusOr<IpPrefix> IpPrefix::Parse(std::string_view text) {
  const auto refuse = [&](auto... why) {
    return absl::InvalidArgumentError(
        absl::StrCat("`", absl::string_view(text.data(), text.size()), "` ", why...));
  };
  const std::size_t slash = text.find('/');
  const std::string_view before = text.substr(0, slash);
  // A range has neither port nor zone: the address must be all of the text.
  const auto address = IpAddress::Parse(before);
  std::string_view v4 = before;
  const bool written_v4 = TakeV4(v4).has_value();
  if (!address || (written_v4 ? !v4.empty() : before.find_first_of("[%") != before.npos)) {
    return refuse(
        "is no address range; write one like `10.0.0.0/8`, `2001:db8::/32` or `192.0.2.1`");
  }

  int bits = 128;
  if (slash != text.npos) {
    std::string_view length = text.substr(slash + 1);
    const std::uint32_t most = written_v4 ? 32 : 128;
    const auto value = TakeDecimal(length, most);
    if (!value || !length.empty()) {
      return refuse("has no length that fits; write a whole number from 0 to ", most,
                    " after the `/`");
    }
    bits = static_cast<int>(*value) + (written_v4 ? 96 : 0);
  }
  const IpPrefix prefix(address->Masked(bits), bits);
  if (prefix.network_ != *address) {
    return refuse("sets bits after its length; write `", prefix.ToString(), "`");
  }
  return prefix;
}

std::string IpPrefix::ToString() const {
  return absl::StrCat(network_.ToString(), "/", network_.is_v4() ? bits_ - 96 : bits_);
}

std::string IpKey(IpAddress address, int ipv6_prefix) {
  if (address.is_v4()) return address.ToString();
  return absl::StrCat(address.Masked(ipv6_prefix).ToString(), "/", ipv6_prefix);
}

}  // namespace sluice
