// A keyed 128-bit hash for the keys of counters.
//
// A table that keeps no key bytes needs a pseudo-random function under a secret key: two clients
// must not be merged, and no client may aim at another's slot. Four AES rounds a block (CBC-MAC
// shape, length bound in, more rounds at the end) where the processor has them, else
// SipHash-1-3-128; which one is chosen at run time, once for each HashKey. Both are differential-
// tested for their own properties, and neither result may leave the process other than together
// with its HashKey (a snapshot file).
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace sluice {

struct Hash128 {
  std::uint64_t lo = 0;
  std::uint64_t hi = 0;
  friend bool operator==(const Hash128&, const Hash128&) = default;
};

enum class HashKind : std::uint8_t { kAes = 1, kSipHash13 = 2 };

class HashKey {
 public:
  // From the operating system's random source, with the best kind that this processor has.
  static HashKey Random();
  // From given bytes; the kind must be supported here (IsSupported), for tests and snapshots.
  HashKey(HashKind kind, const std::array<std::uint8_t, 32>& secret);

  static bool IsSupported(HashKind kind);

  [[nodiscard]] Hash128 operator()(std::string_view bytes) const;

  [[nodiscard]] HashKind kind() const { return kind_; }
  [[nodiscard]] const std::array<std::uint8_t, 32>& secret() const { return secret_; }

 private:
  HashKind kind_;
  std::array<std::uint8_t, 32> secret_;
  // Round keys, expanded from the secret, follow here (AES only).
  alignas(16) std::array<std::uint8_t, 16 * 12> round_keys_{};
};

}  // namespace sluice
