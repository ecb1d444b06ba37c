#include "sluice/store/redis/redis_slots.h"

#include <algorithm>
#include <array>
#include <bitset>
#include <charconv>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"

namespace sluice::redis {
namespace {

constexpr std::size_t kLongestHost = 255;

// CRC16-CCITT, as XMODEM has it: x^16 + x^12 + x^5 + 1.
constexpr std::array<std::uint16_t, 256> CrcTable() {
  std::array<std::uint16_t, 256> table{};
  for (unsigned byte = 0; byte < table.size(); ++byte) {
    unsigned crc = byte << 8U;
    for (int bit = 0; bit < 8; ++bit)
      crc = (crc & 0x8000U) != 0 ? (crc << 1U) ^ 0x1021U : crc << 1U;
    table[byte] = static_cast<std::uint16_t>(crc);
  }
  return table;
}
constexpr std::array<std::uint16_t, 256> kCrcTable = CrcTable();

std::string_view Tagged(std::string_view key) {
  const std::size_t open = key.find('{');
  if (open == std::string_view::npos) return key;
  const std::size_t close = key.find('}', open);
  if (close == std::string_view::npos || close == open + 1) return key;
  return key.substr(open + 1, close - open - 1);
}

bool IsHost(std::string_view text) {
  const auto plain = [](char c) { return c > ' ' && c <= '~'; };
  return !text.empty() && text.size() <= kLongestHost && std::ranges::all_of(text, plain);
}

template <typename Number>
std::optional<Number> NumberIn(std::string_view text) {
  Number number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return number;
}

absl::Status NoMap(std::string_view why) {
  return absl::UnavailableError(
      absl::StrCat("its map of slots cannot be read: ", absl::string_view(why.data(), why.size())));
}

// Where the preferred form of its address is not known: "ip" of what else is told of a node.
std::string_view OtherAddress(const net::RedisValue& node) {
  const net::RedisValue more = node[3];
  for (std::size_t i = 0; i + 1 < more.size(); i += 2) {
    if (more[i].text() == "ip") return more[i + 1].text();
  }
  return {};
}

// [host, port, id, more]. An empty host: it has none.
absl::StatusOr<net::HostPort> AddressOf(const net::RedisValue& node, const net::HostPort& asked) {
  if (node.size() < 2) return NoMap("a server without an address");
  const std::int64_t port = node[1].integer();
  if (port < 0 || port > 65'535) return NoMap("a port that is none");
  std::string_view host = node[0].text();
  if (host == "?") {
    host = OtherAddress(node);
  } else if (host.empty()) {
    host = asked.host;
  }
  if (host.empty() || port == 0) return net::HostPort{};
  if (!IsHost(host)) return NoMap("a host that is none");
  return net::HostPort{.host = std::string(host), .port = static_cast<std::uint16_t>(port)};
}

}  // namespace

std::uint16_t SlotOf(std::string_view key) {
  std::uint16_t crc = 0;
  for (const char c : Tagged(key)) {
    const auto byte = static_cast<std::uint8_t>(c);
    crc = static_cast<std::uint16_t>((crc << 8U) ^ kCrcTable[(crc >> 8U) ^ byte]);
  }
  return crc % kSlotCount;
}

absl::StatusOr<std::vector<SlotRange>> ReadSlots(const net::RedisValue& reply,
                                                 const net::HostPort& asked) {
  if (reply.is_error()) {
    if (reply.error().empty()) return NoMap("an error without a word");
    return absl::UnavailableError({reply.error().data(), reply.error().size()});
  }
  if (!reply.is_array()) return NoMap("it is no list");
  std::vector<SlotRange> ranges;
  std::bitset<kSlotCount> taken;
  for (std::size_t i = 0; i < reply.size(); ++i) {
    const net::RedisValue range = reply[i];
    const std::int64_t first = range[0].integer();
    const std::int64_t last = range[1].integer();
    if (range.size() < 3 || range[0].kind() != net::RedisKind::kInteger ||
        range[1].kind() != net::RedisKind::kInteger) {
      return NoMap("a range without slots or a server");
    }
    if (first < 0 || first > last || last >= static_cast<std::int64_t>(kSlotCount)) {
      return NoMap(absl::StrCat("slots ", first, " to ", last));
    }
    absl::StatusOr<net::HostPort> primary = AddressOf(range[2], asked);
    if (!primary.ok()) return primary.status();
    for (auto slot = static_cast<std::size_t>(first); slot <= static_cast<std::size_t>(last);
         ++slot) {
      if (taken.test(slot)) return NoMap(absl::StrCat("slot ", slot, " twice"));
      taken.set(slot);
    }
    if (primary->host.empty()) continue;
    ranges.push_back({.first = static_cast<std::uint16_t>(first),
                      .last = static_cast<std::uint16_t>(last),
                      .primary = *std::move(primary)});
  }
  return ranges;
}

std::optional<Redirect> ReadRedirect(std::string_view error) {
  Redirect redirect;
  std::size_t blank = error.find(' ');
  const std::string_view word = error.substr(0, blank);
  if (word == "TRYAGAIN") {
    redirect.kind = Redirect::Kind::kTryAgain;
    return redirect;
  }
  if (word != "MOVED" && word != "ASK") return std::nullopt;
  redirect.kind = word == "ASK" ? Redirect::Kind::kAsk : Redirect::Kind::kMoved;
  if (blank == std::string_view::npos) return std::nullopt;
  error.remove_prefix(blank + 1);
  blank = error.find(' ');
  // The last one: an address of IPv6 has several.
  const std::size_t colon = error.rfind(':');
  if (blank == std::string_view::npos || colon == std::string_view::npos || colon < blank) {
    return std::nullopt;
  }
  const auto slot = NumberIn<std::uint16_t>(error.substr(0, blank));
  const auto port = NumberIn<std::uint16_t>(error.substr(colon + 1));
  const std::string_view host = error.substr(blank + 1, colon - blank - 1);
  if (!slot || *slot >= kSlotCount || !port || *port == 0) return std::nullopt;
  if (!host.empty() && (!IsHost(host) || host == "?")) return std::nullopt;
  redirect.slot = *slot;
  redirect.to = {.host = std::string(host), .port = *port};
  return redirect;
}

}  // namespace sluice::redis
