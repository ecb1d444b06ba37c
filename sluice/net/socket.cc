#include "sluice/net/socket.h"

#include <unistd.h>

namespace sluice::net {

Socket& Socket::operator=(Socket&& other) noexcept {
  Close();
  descriptor_ = std::exchange(other.descriptor_, -1);
  peer_ = other.peer_;
  return *this;
}

void Socket::Close() {
  if (descriptor_ >= 0) ::close(std::exchange(descriptor_, -1));
}

}  // namespace sluice::net
