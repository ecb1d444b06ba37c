#include "sluice/base/hash.h"

#include <bit>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "sluice/base/siphash.h"

namespace sluice {
namespace {

constexpr std::array<std::uint8_t, 32> kSecret = {0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10,
                                                  11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21,
                                                  22, 23, 24, 25, 26, 27, 28, 29, 30, 31};

// Each byte one more than the one before it.
std::string Counting(std::size_t size) {
  std::string bytes(size, '\0');
  for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<char>(i);
  return bytes;
}

// As OpenSSL prints it: 16 bytes, lower half first, little-endian.
std::string Hex(Hash128 hash) {
  std::string text;
  for (const std::uint64_t half : {hash.lo, hash.hi}) {
    for (int i = 0; i < 8; ++i) {
      constexpr char kDigits[] = "0123456789ABCDEF";
      const auto byte = static_cast<std::uint8_t>(half >> (8 * i));
      text += kDigits[byte >> 4];
      text += kDigits[byte & 15];
    }
  }
  return text;
}

std::vector<HashKey> EveryKind() {
  std::vector<HashKey> keys;
  for (const HashKind kind : {HashKind::kAes, HashKind::kSipHash13}) {
    if (HashKey::IsSupported(kind)) keys.emplace_back(kind, kSecret);
  }
  return keys;
}

// The first rows are of the authors' reference code, the others of OpenSSL 3.0:
// openssl mac -macopt hexkey:00..0f -macopt size:16 -macopt c-rounds:1 -macopt d-rounds:3 SIPHASH
TEST(HashTest, SipHashGivesThePublishedAndOpenSslsValues) {
  const auto sip24 = [](std::size_t size) {
    return Hex(SipHash128<2, 4>::Of(kSecret.data(), Counting(size)));
  };
  EXPECT_EQ(sip24(0), "A3817F04BA25A8E66DF67214C7550293");
  EXPECT_EQ(sip24(1), "DA87C1D86B99AF44347659119B22FC45");
  EXPECT_EQ(sip24(15), "5493E99933B0A8117E08EC0F97CFC3D9");
  EXPECT_EQ(sip24(16), "6EE2A4CA67B054BBFD3315BF85230577");

  const HashKey sip13(HashKind::kSipHash13, kSecret);
  EXPECT_EQ(Hex(sip13("")), "E77EBCB22788A5BEFD62DB6ADD303001");
  EXPECT_EQ(Hex(sip13(Counting(1))), "FC6F370460D3EDA85E0573CC2B2FF063");
  EXPECT_EQ(Hex(sip13(Counting(7))), "1084B923F2AAE0C3A62F2EC80848AB77");
  EXPECT_EQ(Hex(sip13(Counting(8))), "AA12FEE1D5E3DAB4724F16AB35F9C799");
  EXPECT_EQ(Hex(sip13(Counting(15))), "C17E5505B2BD526C2921CDEC1E7E0109");
  EXPECT_EQ(Hex(sip13(Counting(16))), "D0A8D95715518EEBB513B0F83D9E1793");
  EXPECT_EQ(Hex(sip13(Counting(45))), "FE28158E727B868F3903C9ACDA64A258");
  EXPECT_EQ(Hex(sip13(Counting(64))), "1253DEF24B4AA5364EC8A759BA6A66C2");
}

// One round of AES as FIPS 197 words it, on bytes, without tables: slow, and nothing to share with
// the processor's instruction.
using Block = std::array<std::uint8_t, 16>;

std::uint8_t Twice(std::uint8_t a) {
  return static_cast<std::uint8_t>(a << 1 ^ (a & 0x80 ? 0x1b : 0));
}

std::uint8_t Times(std::uint8_t a, std::uint8_t b) {
  std::uint8_t product = 0;
  for (; b != 0; b >>= 1, a = Twice(a)) product ^= b & 1 ? a : 0;
  return product;
}

std::uint8_t SubByte(std::uint8_t a) {
  std::uint8_t inverse = 1;  // a^254, the inverse of a; 0 stays 0
  for (int i = 0; i < 254; ++i) inverse = Times(inverse, a);
  std::uint8_t result = 0x63;
  for (int i = 0; i < 5; ++i) result ^= std::rotl(inverse, i);
  return result;
}

Block AesRound(const Block& in, const std::uint8_t* round_key) {
  Block out{};
  for (int column = 0; column < 4; ++column) {
    std::uint8_t s[4];
    for (int row = 0; row < 4; ++row) s[row] = SubByte(in[(4 * (column + row) + row) % 16]);
    for (int row = 0; row < 4; ++row) {
      const std::uint8_t mixed = Twice(s[row]) ^ Twice(s[(row + 1) % 4]) ^ s[(row + 1) % 4] ^
                                 s[(row + 2) % 4] ^ s[(row + 3) % 4];
      out[4 * column + row] = mixed ^ round_key[4 * column + row];
    }
  }
  return out;
}

Hash128 ReferenceAesHash(std::string_view bytes) {
  std::array<std::uint8_t, 16 * 13> keys;
  for (int i = 0; i < 13; ++i) {
    std::string message(reinterpret_cast<const char*>(kSecret.data()) + 16, 16);
    message += static_cast<char>(i);
    const Hash128 key = SipHash128<2, 4>::Of(kSecret.data(), message);
    std::memcpy(&keys[16 * i], &key, 16);
  }
  Block x;
  std::memcpy(x.data(), keys.data(), 16);
  const auto absorb = [&](std::string_view block) {
    for (int i = 0; i < 16; ++i) x[i] ^= static_cast<std::uint8_t>(block[i]);
    for (int i = 0; i < 4; ++i) x = AesRound(x, &keys[16 * (1 + i)]);
  };
  for (std::size_t at = 0; at + 16 < bytes.size(); at += 16) absorb(bytes.substr(at, 16));
  absorb(bytes.substr(bytes.size() - 16));
  for (int i = 0; i < 8; ++i) x[i] ^= static_cast<std::uint8_t>(bytes.size() >> (8 * i));
  for (int i = 0; i < 8; ++i) x = AesRound(x, &keys[16 * (5 + i)]);
  return {LoadLittleEndian64(x.data()), LoadLittleEndian64(x.data() + 8)};
}

TEST(HashTest, AesIsWhatItsHeaderSays) {
  if (!HashKey::IsSupported(HashKind::kAes)) return;  // nothing to hold against the formula here
  const HashKey aes(HashKind::kAes, kSecret);
  for (const std::size_t size : {16, 17, 31, 32, 33, 45, 64, 100}) {
    EXPECT_EQ(aes(Counting(size)), ReferenceAesHash(Counting(size))) << size;
  }
}

TEST(HashTest, EachSingleBitChangesAboutHalfOfTheResult) {
  for (const HashKey& key : EveryKind()) {
    for (std::size_t size = 1; size <= 50; ++size) {
      std::string bytes = Counting(size);
      const Hash128 before = key(bytes);
      int changed = 0;
      for (std::size_t bit = 0; bit < 8 * size; ++bit) {
        bytes[bit / 8] ^= static_cast<char>(1 << bit % 8);
        const Hash128 after = key(bytes);
        bytes[bit / 8] ^= static_cast<char>(1 << bit % 8);
        const int flipped =
            std::popcount(before.lo ^ after.lo) + std::popcount(before.hi ^ after.hi);
        EXPECT_GT(flipped, 25) << "size " << size << ", bit " << bit;
        changed += flipped;
      }
      EXPECT_NEAR(changed / (8.0 * static_cast<double>(size)), 64, 64.0 / 8) << size;
    }
  }
}

TEST(HashTest, LengthIsPartOfTheKey) {
  // Zero bytes at the end, the same byte a different number of times, every length up to 200: what
  // a padded last block or an overlapping one could confuse.
  for (const HashKey& key : EveryKind()) {
    std::set<std::pair<std::uint64_t, std::uint64_t>> seen;
    std::size_t inputs = 0;
    for (const char fill : {'\0', 'a', '\xff'}) {
      for (std::size_t size = fill == '\0' ? 0 : 1; size <= 200; ++size, ++inputs) {
        const Hash128 hash = key(std::string(size, fill));
        seen.emplace(hash.lo, hash.hi);
      }
    }
    // A length that is XORed to the text instead of being bound in would merge these.
    for (std::size_t size = 17; size < 32; ++size, ++inputs) {
      std::string text(size, '\0');
      text[0] = static_cast<char>(17 ^ size ^ 0x40);
      const Hash128 hash = key(text);
      seen.emplace(hash.lo, hash.hi);
    }
    EXPECT_EQ(seen.size(), inputs);
  }
}

TEST(HashTest, ReadsNothingBeyondTheBytesGiven) {
  for (const HashKey& key : EveryKind()) {
    for (std::size_t size = 0; size <= 70; ++size) {
      const std::string exact = Counting(size);
      const std::vector<char> alone(exact.begin(), exact.end());  // on the heap: asan sees the ends
      const std::string within = "xyz" + exact + std::string(32, '\x5a');
      EXPECT_EQ(key({alone.data(), size}), key(std::string_view(within).substr(3, size))) << size;
    }
  }
}

TEST(HashTest, OtherSecretsGiveOtherValues) {
  for (const HashKey& key : EveryKind()) {
    for (std::size_t byte = 0; byte < kSecret.size(); ++byte) {
      std::array<std::uint8_t, 32> other = kSecret;
      other[byte] ^= 1;
      // SipHash takes 16 bytes of key; the rest of the secret is for the round keys of AES.
      if (key.kind() == HashKind::kSipHash13 && byte >= 16) continue;
      EXPECT_NE(HashKey(key.kind(), other)("ann"), key("ann")) << byte;
    }
  }
}

TEST(HashTest, RandomKeysDiffer) {
  const HashKey a = HashKey::Random();
  const HashKey b = HashKey::Random();
  EXPECT_NE(a.secret(), b.secret());
  EXPECT_NE(a("ann"), b("ann"));
  EXPECT_TRUE(HashKey::IsSupported(a.kind()));
  EXPECT_EQ(HashKey(a.kind(), a.secret())("ann"), a("ann"));
}

}  // namespace
}  // namespace sluice
