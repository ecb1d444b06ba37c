// A connected socket that nobody reads or writes yet, on its way to a Stream.
#pragma once

#include <utility>

#include "sluice/net/address.h"

namespace sluice::net {

// Owns its descriptor, which does not block.
class Socket {
 public:
  Socket() = default;
  Socket(int descriptor, const tcp::endpoint& peer) : descriptor_(descriptor), peer_(peer) {}
  Socket(Socket&& other) noexcept
      : descriptor_(std::exchange(other.descriptor_, -1)), peer_(other.peer_) {}
  Socket& operator=(Socket&& other) noexcept;
  ~Socket() { Close(); }

  [[nodiscard]] bool open() const { return descriptor_ >= 0; }
  [[nodiscard]] int descriptor() const { return descriptor_; }  // -1: none
  // Who is at the other end; of a Unix socket nobody.
  [[nodiscard]] const tcp::endpoint& peer() const { return peer_; }

  void Close();

 private:
  int descriptor_ = -1;
  tcp::endpoint peer_;
};

}  // namespace sluice::net
