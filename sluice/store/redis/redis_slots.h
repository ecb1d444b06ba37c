// Slots of a Redis Cluster: which one a key lies in, which server has it, and what a server answers
// that has not.
//
//   sluice:1{Xb3_9sQe2Lw}api:ann ──CRC16 of "Xb3_9sQe2Lw", mod 16384──> slot ──map──> primary
//
// From the specification of Redis Cluster. What servers say is read as what strangers write: all of
// it is checked, and what is wrong is an error in words.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "sluice/net/address.h"
#include "sluice/net/redis_reply.h"

namespace sluice::redis {

inline constexpr std::size_t kSlotCount = 16'384;

// Of a key's name: of what stands between its first '{' and the next '}', if that is not nothing,
// else of all of it.
[[nodiscard]] std::uint16_t SlotOf(std::string_view key);

// As many slots in a row, first and last among them, and the primary that has them.
struct SlotRange {
  std::uint16_t first = 0;
  std::uint16_t last = 0;
  net::HostPort primary;

  friend bool operator==(const SlotRange&, const SlotRange&) = default;
};

// Of CLUSTER SLOTS, which every version of Redis has; no slot in two of them. `asked` is who
// answered: a server that does not know its own host leaves it out. A range whose primary has no
// address is left out. Unavailable: an error, or no such reply; with the reason.
[[nodiscard]] absl::StatusOr<std::vector<SlotRange>> ReadSlots(const net::RedisValue& reply,
                                                               const net::HostPort& asked);

// What a server says that was asked for a key that it has not, or not now. It did nothing.
struct Redirect {
  enum class Kind : std::uint8_t {
    kMoved,     // "MOVED 3999 10.0.0.7:6379": that one has it, from now on
    kAsk,       // "ASK 3999 10.0.0.7:6379": of these keys that one knows, while the slot moves
    kTryAgain,  // "TRYAGAIN ...": some keys are there and some here, while the slot moves
  };
  Kind kind = Kind::kMoved;
  std::uint16_t slot = 0;
  net::HostPort to;  // an empty host: that of who answered

  friend bool operator==(const Redirect&, const Redirect&) = default;
};
// Nothing: the error is another one, or cannot be read.
[[nodiscard]] std::optional<Redirect> ReadRedirect(std::string_view error);

// Before a command that ASK led to a server.
inline constexpr std::string_view kAskingCommand = "*1\r\n$6\r\nASKING\r\n";

}  // namespace sluice::redis
