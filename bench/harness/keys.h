// Keys as a limiter meets them: "ck_live_" and some digits of a client out of many, drawn uniformly
// by a generator that is cheap beside what is measured.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>

namespace sluice::bench {

// xorshift64*: a new number in about a nanosecond.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed * 2 + 1) {}
  std::uint64_t Next() {
    state_ ^= state_ >> 12;
    state_ ^= state_ << 25;
    state_ ^= state_ >> 27;
    return state_ * 0x2545F4914F6CDD1DULL;
  }
  // In [0, bound).
  std::uint64_t Below(std::uint64_t bound) {
    __extension__ using Wide = unsigned __int128;
    return static_cast<std::uint64_t>((Wide{Next()} * bound) >> 64);
  }

 private:
  std::uint64_t state_;
};

// Writes the key of client `number`, 45 bytes: api_key:ck_live_XXXXXXXX|route:/v1/order/item.
class KeyText {
 public:
  KeyText() {
    constexpr std::string_view kForm = "api_key:ck_live_00000000|route:/v1/order/item";
    static_assert(kForm.size() == 45);
    std::copy(kForm.begin(), kForm.end(), text_.begin());
  }
  std::string_view Of(std::uint64_t number) {
    static constexpr char kDigits[] = "0123456789abcdef";
    for (int i = 0; i < 8; ++i) {
      text_[static_cast<std::size_t>(23 - i)] = kDigits[number & 15];
      number >>= 4;
    }
    return {text_.data(), text_.size()};
  }

 private:
  std::array<char, 45> text_{};
};

}  // namespace sluice::bench
