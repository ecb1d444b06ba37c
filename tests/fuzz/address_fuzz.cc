// Addresses, ranges and the two headers that carry them. What is read is written and read again;
// what a client sends never changes what a trusted proxy appended to it.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "sluice/base/ip.h"
#include "sluice/rule/client_address.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  using sluice::IpAddress, sluice::IpPrefix;
  const std::string_view text(reinterpret_cast<const char*>(bytes), size);

  if (const auto address = IpAddress::Parse(text)) {
    if (IpAddress::Parse(address->ToString()) != address) std::abort();
    if (IpAddress::FromBytes(address->bytes()) != *address) std::abort();
    if (ClientNetwork(*address, 64).is_v4() != address->is_v4()) std::abort();
  }
  if (const auto range = IpPrefix::Parse(text); range.ok()) {
    const auto again = IpPrefix::Parse(range->ToString());
    if (!again.ok() || *again != *range) std::abort();
  }

  const IpAddress peer = IpAddress::V4(0x0a000001);
  const IpAddress client = IpAddress::V4(0xcb007109);  // 203.0.113.9
  sluice::ClientAddressOptions options{.trusted_proxies = {*IpPrefix::Parse("10.0.0.0/8")}};
  const std::string listed = std::string(text) + ",203.0.113.9";
  const sluice::Field list[] = {{"X-Forwarded-For", text}, {"x-forwarded-for", listed}};
  if (ClientAddress(options, peer, list) != client) std::abort();
  const std::string forwarded = std::string(text) + ",for=203.0.113.9";
  const sluice::Field elements[] = {{"Forwarded", text}, {"forwarded", forwarded}};
  options.header = sluice::ForwardedHeader::kForwarded;
  if (ClientAddress(options, peer, elements) != client) std::abort();
  if (ClientAddress(options, client, elements) != client) std::abort();
  return 0;
}
