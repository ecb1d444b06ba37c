#include "sluice/base/hash.h"

#include <cassert>

#include "sluice/base/random.h"
#include "sluice/base/siphash.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace sluice {
namespace {

#if defined(__x86_64__)

constexpr int kBlockRounds = 4;
constexpr int kFinalRounds = 8;

// Up to 16 bytes without reading beyond them. Not one to one by itself (the parts overlap), but it
// is for a given length, and the length is bound in at the end.
__attribute__((target("aes,sse4.1"))) inline __m128i LoadShort(const char* bytes,
                                                               std::size_t size) {
  std::uint64_t lo = 0;
  std::uint64_t hi = 0;
  if (size >= 8) {
    std::memcpy(&lo, bytes, 8);
    std::memcpy(&hi, bytes + size - 8, 8);
  } else if (size >= 4) {
    std::uint32_t head;
    std::uint32_t tail;
    std::memcpy(&head, bytes, 4);
    std::memcpy(&tail, bytes + size - 4, 4);
    lo = head;
    hi = tail;
  } else if (size > 0) {
    lo = static_cast<std::uint8_t>(bytes[0]) |
         static_cast<std::uint64_t>(static_cast<std::uint8_t>(bytes[size / 2])) << 8 |
         static_cast<std::uint64_t>(static_cast<std::uint8_t>(bytes[size - 1])) << 16;
  }
  return _mm_set_epi64x(static_cast<long long>(hi), static_cast<long long>(lo));
}

__attribute__((target("aes,sse4.1"))) Hash128 AesHash(const std::uint8_t* round_keys,
                                                      std::string_view bytes) {
  const auto* const keys = reinterpret_cast<const __m128i*>(round_keys);
  __m128i x = _mm_load_si128(keys);
  const __m128i k0 = _mm_load_si128(keys + 1);
  const __m128i k1 = _mm_load_si128(keys + 2);
  const __m128i k2 = _mm_load_si128(keys + 3);
  const __m128i k3 = _mm_load_si128(keys + 4);
  static_assert(kBlockRounds == 4);
  const auto absorb = [&](__m128i block) __attribute__((target("aes,sse4.1"))) {
    x = _mm_xor_si128(x, block);
    x = _mm_aesenc_si128(x, k0);
    x = _mm_aesenc_si128(x, k1);
    x = _mm_aesenc_si128(x, k2);
    x = _mm_aesenc_si128(x, k3);
  };

  const char* at = bytes.data();
  const std::size_t size = bytes.size();
  if (size <= 16) {
    absorb(LoadShort(at, size));
  } else {
    const char* const last = at + size - 16;
    for (; at < last; at += 16) {
      absorb(_mm_loadu_si128(reinterpret_cast<const __m128i*>(at)));
    }
    // Overlaps the block before it where the size is no multiple of 16.
    absorb(_mm_loadu_si128(reinterpret_cast<const __m128i*>(last)));
  }

  x = _mm_xor_si128(x, _mm_set_epi64x(0, static_cast<long long>(size)));
  for (int i = 0; i < kFinalRounds; ++i) {
    x = _mm_aesenc_si128(x, _mm_load_si128(keys + 1 + kBlockRounds + i));
  }
  Hash128 result;
  result.lo = static_cast<std::uint64_t>(_mm_cvtsi128_si64(x));
  result.hi = static_cast<std::uint64_t>(_mm_extract_epi64(x, 1));
  return result;
}

bool HasAes() { return __builtin_cpu_supports("aes") && __builtin_cpu_supports("sse4.1"); }

#else

Hash128 AesHash(const std::uint8_t*, std::string_view) { std::abort(); }
bool HasAes() { return false; }

#endif

}  // namespace

bool HashKey::IsSupported(HashKind kind) {
  switch (kind) {
    case HashKind::kAes:
      return HasAes();
    case HashKind::kSipHash13:
      return true;
  }
  return false;
}

HashKey HashKey::Random() {
  std::array<std::uint8_t, 32> secret;
  FillWithRandom(secret);
  return {IsSupported(HashKind::kAes) ? HashKind::kAes : HashKind::kSipHash13, secret};
}

HashKey::HashKey(HashKind kind, const std::array<std::uint8_t, 32>& secret)
    : kind_(kind), secret_(secret) {
  assert(IsSupported(kind));
  if (kind_ != HashKind::kAes) return;
  // A pseudo-random function of the first half of the secret over (second half, number of the
  // round key): independent round keys, as far as anybody can tell.
  char message[17];
  std::memcpy(message, secret_.data() + 16, 16);
  for (std::size_t i = 0; i * 16 < round_keys_.size(); ++i) {
    message[16] = static_cast<char>(i);
    const Hash128 key = SipHash128<2, 4>::Of(secret_.data(), {message, sizeof message});
    std::memcpy(&round_keys_[i * 16], &key, 16);
  }
}

Hash128 HashKey::operator()(std::string_view bytes) const {
  if (kind_ == HashKind::kAes) [[likely]] {
    return AesHash(round_keys_.data(), bytes);
  }
  return SipHash128<1, 3>::Of(secret_.data(), bytes);
}

}  // namespace sluice
