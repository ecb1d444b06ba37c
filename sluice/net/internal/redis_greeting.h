// What a connection to Redis begins with: who we are, which database, our name, and whether the
// server is up to work, and a primary. All of it goes out together.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "sluice/net/redis_reply.h"

namespace sluice::net::internal {

class RedisGreeting {
 public:
  struct Options {
    std::string_view user;  // with no password either: no AUTH
    std::string_view password;
    std::uint32_t database = 0;    // 0: no SELECT
    std::string_view client_name;  // empty: no CLIENT SETNAME
    bool primary = false;          // true: ROLE, which must be a primary's
  };
  explicit RedisGreeting(const Options& options);

  [[nodiscard]] const std::string& bytes() const { return bytes_; }
  [[nodiscard]] bool done() const { return answered_ == steps_.size(); }

  // The next reply. Not OK (kUnavailable): the connection is good for nothing. The message has the
  // server's words, unless they could hold what we sent it with AUTH.
  absl::Status Answer(RedisValue reply);

 private:
  enum class Step : std::uint8_t { kAuth, kSelect, kSetName, kPing, kRole };

  void Add(Step step, std::initializer_list<std::string_view> words);

  std::string bytes_;
  std::vector<Step> steps_;
  std::size_t answered_ = 0;
};

}  // namespace sluice::net::internal
