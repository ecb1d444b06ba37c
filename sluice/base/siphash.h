// SipHash-c-d with a 128-bit result (Aumasson, Bernstein: "SipHash: a fast short-input PRF"), for
// any number of rounds, so that the form in use (1-3) is checked together with the published
// vectors of 2-4.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "sluice/base/hash.h"

namespace sluice {

inline std::uint64_t LoadLittleEndian64(const void* from) {
  std::uint64_t value;
  std::memcpy(&value, from, sizeof value);
  if constexpr (std::endian::native == std::endian::big) value = __builtin_bswap64(value);
  return value;
}

template <int kBlockRounds, int kFinalRounds>
class SipHash128 {
 public:
  // `key` points to 16 bytes.
  [[nodiscard]] static Hash128 Of(const std::uint8_t* key, std::string_view bytes) {
    SipHash128 state(LoadLittleEndian64(key), LoadLittleEndian64(key + 8));
    const char* at = bytes.data();
    std::size_t left = bytes.size();
    for (; left >= 8; at += 8, left -= 8) state.Absorb(LoadLittleEndian64(at));
    // The last block: what is left, and the length in its highest byte.
    std::uint8_t last[8] = {};
    if (left > 0) std::memcpy(last, at, left);
    last[7] = static_cast<std::uint8_t>(bytes.size());
    state.Absorb(LoadLittleEndian64(last));
    return state.Finish();
  }

 private:
  SipHash128(std::uint64_t k0, std::uint64_t k1)
      : v0_(k0 ^ 0x736f6d6570736575),
        v1_(k1 ^ 0x646f72616e646f6d ^ 0xee),
        v2_(k0 ^ 0x6c7967656e657261),
        v3_(k1 ^ 0x7465646279746573) {}

  void Absorb(std::uint64_t block) {
    v3_ ^= block;
    Rounds<kBlockRounds>();
    v0_ ^= block;
  }

  Hash128 Finish() {
    v2_ ^= 0xee;
    Rounds<kFinalRounds>();
    const std::uint64_t lo = v0_ ^ v1_ ^ v2_ ^ v3_;
    v1_ ^= 0xdd;
    Rounds<kFinalRounds>();
    return {lo, v0_ ^ v1_ ^ v2_ ^ v3_};
  }

  template <int kCount>
  void Rounds() {
    for (int i = 0; i < kCount; ++i) {
      v0_ += v1_;
      v2_ += v3_;
      v1_ = std::rotl(v1_, 13) ^ v0_;
      v3_ = std::rotl(v3_, 16) ^ v2_;
      v0_ = std::rotl(v0_, 32) + v3_;
      v2_ += v1_;
      v3_ = std::rotl(v3_, 21) ^ v0_;
      v1_ = std::rotl(v1_, 17) ^ v2_;
      v2_ = std::rotl(v2_, 32);
    }
  }

  std::uint64_t v0_, v1_, v2_, v3_;
};

}  // namespace sluice
