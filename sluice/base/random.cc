#include "sluice/base/random.h"

#include <sys/random.h>

#include <array>
#include <bit>
#include <cerrno>
#include <cstdio>
#include <cstdlib>

namespace sluice {

void FillWithRandom(std::span<std::uint8_t> bytes) {
  while (!bytes.empty()) {
    const ssize_t got = getrandom(bytes.data(), bytes.size(), 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) {
      std::perror("sluice: getrandom");
      std::abort();
    }
    bytes = bytes.subspan(static_cast<std::size_t>(got));
  }
}

std::uint64_t RandomNumber() {
  std::array<std::uint8_t, sizeof(std::uint64_t)> bytes;
  FillWithRandom(bytes);
  return std::bit_cast<std::uint64_t>(bytes);
}

Duration DrawEvenly(Duration most) {
  const auto choices = static_cast<std::uint64_t>(most.count()) + 1;
  return Duration{static_cast<Duration::rep>(RandomNumber() % choices)};
}

}  // namespace sluice
