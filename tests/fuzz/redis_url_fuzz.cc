// URLs of Redis servers. What is read is within its bounds; written without the password and read
// again it is the same. What is refused is not repeated.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "sluice/config/redis_url.h"

namespace {

void Require(bool holds) {
  if (!holds) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  using sluice::config::ParseRedisUrl;
  const std::string_view text(reinterpret_cast<const char*>(bytes), size);
  auto url = ParseRedisUrl(text);
  if (url.ok()) {
    Require(url->host.empty() != url->unix_socket.empty());
    Require(url->host.empty() == (url->port == 0));
    Require(url->unix_socket.empty() || url->unix_socket.front() == '/');
    url->password.clear();
    const auto again = ParseRedisUrl(ToString(*url));
    Require(again.ok() && *again == *url);
  }
  const std::string_view secret = "qQ~9";
  const auto other = ParseRedisUrl("redis://:" + std::string(secret) + std::string(text));
  Require(other.status().message().find("qQ~9") == absl::string_view::npos);
  return 0;
}
