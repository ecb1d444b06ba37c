// A keyed 128-bit hash for the keys of counters.
//
// A table that keeps no key bytes needs a pseudo-random function under a secret key: two clients
// must not be merged, and no client may aim at another's slot. Two kinds, chosen at run time, once
// for each HashKey:
//
//   AES          x = x0;  for each 16 bytes m:  x = 4 rounds of AES (x xor m)
//                         at the end:           x = 8 rounds of AES (x xor length)
//                x0 and the 12 round keys are secret and independent. Two given blocks collide
//                after four rounds with a probability of about 2^-110 (at least 25 active
//                S-boxes), so the length, which is bound in last, cannot be cancelled by what
//                stands before it. About 6 ns for 45 bytes.
//   SipHash-1-3  with 128 bits (Aumasson, Bernstein: "SipHash: a fast short-input PRF"; the wide
//                output as in their reference code). Portable. About 26 ns for 45 bytes.
//
// Neither result may leave the process other than together with its HashKey (a snapshot file).
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
  // From the operating system's random source, with the best kind that this processor has. The
  // process ends where there is no such source: without a secret there is no safe table.
  static HashKey Random();
  // From given bytes, for tests and snapshots. Requires IsSupported(kind).
  HashKey(HashKind kind, const std::array<std::uint8_t, 32>& secret);

  static bool IsSupported(HashKind kind);

  [[nodiscard]] Hash128 operator()(std::string_view bytes) const;

  [[nodiscard]] HashKind kind() const { return kind_; }
  [[nodiscard]] const std::array<std::uint8_t, 32>& secret() const { return secret_; }

 private:
  HashKind kind_;
  std::array<std::uint8_t, 32> secret_;
  // x0, four round keys for the blocks, eight for the end, expanded from the secret (AES only).
  alignas(16) std::array<std::uint8_t, 16 * 13> round_keys_{};
};

}  // namespace sluice
