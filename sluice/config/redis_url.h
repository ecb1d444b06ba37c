// Where a Redis server is, as people write it:
//
//   redis://[user[:password]@]host[:port][/database]
//   rediss://...                                        the same over TLS
//   unix://[user[:password]@]/path/of/the/socket[?db=N]
//
//   redis://10.0.0.7                      port 6379, database 0, no password
//   redis://:s3cret@[::1]:6380/2          a password for the default user
//   rediss://sluice:s%40cret@redis.example/
//   unix:///run/redis/redis.sock?db=1
//
// In user, password and path %XX stands for any byte; what has a meaning of its own there (: @ / ?
// # %) must be written so. Strict: what is not of this form is refused rather than guessed at.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace sluice::config {

struct RedisUrl {
  bool tls = false;
  std::string user;
  std::string password;
  std::string host;  // a name or an address, without brackets; empty with a Unix socket
  std::uint16_t port = 0;
  std::string unix_socket;  // a path; empty with a host
  std::uint16_t database = 0;

  friend bool operator==(const RedisUrl&, const RedisUrl&) = default;
};

// kInvalidArgument says what is wrong and what to write instead. It repeats nothing of the text: a
// password may stand anywhere in one that is wrong.
[[nodiscard]] absl::StatusOr<RedisUrl> ParseRedisUrl(std::string_view text);

// For people: without the password, which is not there to be seen. Parses again.
[[nodiscard]] std::string ToString(const RedisUrl& url);

}  // namespace sluice::config
