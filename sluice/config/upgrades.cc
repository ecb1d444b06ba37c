#include "sluice/config/upgrades.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "sluice/base/ascii.h"

namespace sluice::config {
namespace {

constexpr std::size_t kMostProtocols = 16;
constexpr std::string_view kNone = "none";

// What brings HTTP again: `HTTP/2.0` and `TLS/1.0` are written with their versions elsewhere.
constexpr std::array<std::string_view, 5> kCarryRequests = {"h2c", "h2", "http", "tls", "any"};

std::string LowerOf(std::string_view text) {
  std::string lower(text);
  std::transform(lower.begin(), lower.end(), lower.begin(), Lower);
  return lower;
}

}  // namespace

std::vector<std::string> ReadUpgrades(const Value& value) {
  std::vector<std::string> protocols;
  const std::vector<Value> items = value.Items();
  for (const Value& item : items) {
    const auto text = item.Text();
    if (!text) continue;
    const std::string name = LowerOf(*text);
    const bool carries =
        std::find(kCarryRequests.begin(), kCarryRequests.end(), name) != kCarryRequests.end();
    if (!IsToken(name)) {
      item.Complain(fmt::format("must name a protocol without its version, got {}", Quoted(*text)),
                    "write for example `websocket`");
    } else if (carries) {
      item.Complain(fmt::format("can not have {}", Quoted(*text)),
                    "requests inside of it would be seen by no rule");
    } else {
      protocols.push_back(name);
    }
  }
  const bool none = std::find(protocols.begin(), protocols.end(), kNone) != protocols.end();
  if (none && items.size() > 1)
    value.Complain("has `none` beside others", "leave one of the two out");
  if (protocols.size() > kMostProtocols) {
    value.Complain(
        fmt::format("must have at most {} protocols, got {}", kMostProtocols, protocols.size()));
  }
  if (none) protocols.clear();
  return protocols;
}

}  // namespace sluice::config
