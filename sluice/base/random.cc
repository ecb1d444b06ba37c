#include "sluice/base/random.h"

#include <sys/random.h>

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

}  // namespace sluice
