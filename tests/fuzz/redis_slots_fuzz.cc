// What a server of a cluster says: its map of slots, and where it sends what is asked.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "sluice/net/redis_reply.h"
#include "sluice/store/redis/redis_slots.h"

namespace {

using namespace sluice;  // NOLINT: a program of one file

void Require(bool holds) {
  if (!holds) std::abort();
}

bool IsAddress(const net::HostPort& address) {
  const auto plain = [](char c) { return c > ' ' && c <= '~'; };
  return address.port != 0 && address.host.size() <= 255 &&
         std::ranges::all_of(address.host, plain);
}

void CheckMap(const net::RedisReply& reply) {
  const auto map = redis::ReadSlots(reply, {.host = "asked", .port = 1});
  if (!map.ok()) return Require(!map.status().message().empty());
  std::vector<bool> taken(redis::kSlotCount);
  for (const redis::SlotRange& range : *map) {
    Require(range.first <= range.last && range.last < redis::kSlotCount);
    for (std::size_t slot = range.first; slot <= range.last; ++slot) {
      Require(!taken[slot]);
      taken[slot] = true;
    }
    Require(IsAddress(range.primary) && !range.primary.host.empty());
  }
}

void CheckRedirect(std::string_view error) {
  const auto redirect = redis::ReadRedirect(error);
  if (!redirect || redirect->kind == redis::Redirect::Kind::kTryAgain) return;
  Require(redirect->slot < redis::kSlotCount && IsAddress(redirect->to));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  Require(redis::SlotOf(bytes) < redis::kSlotCount);
  CheckRedirect(bytes);
  net::RedisReplyReader reader;
  reader.Feed(bytes);
  net::RedisReply reply;
  while (reader.Next(&reply) == net::RedisReplyReader::Step::kReply) {
    CheckMap(reply);
    CheckRedirect(reply.error());
  }
  return 0;
}
