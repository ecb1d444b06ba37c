// Comparing and copying short runs of bytes without a call.
//
// Names, keys and paths are a few dozen bytes long. For these the C library's memcmp and memcpy
// spend more on the call and on choosing a variant than on the bytes; here the first and the last
// word of the run are taken, which overlap, so that there is no loop. Longer runs go to the
// library.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace sluice {
namespace internal {

template <typename Word>
[[nodiscard]] inline Word LoadWord(const char* at) {
  Word word;
  std::memcpy(&word, at, sizeof word);
  return word;
}

// Both ends of a run of sizeof(Word) to 2 * sizeof(Word) bytes.
template <typename Word>
[[nodiscard]] inline bool SameEnds(const char* a, const char* b, std::size_t size) {
  const std::size_t last = size - sizeof(Word);
  return ((LoadWord<Word>(a) ^ LoadWord<Word>(b)) |
          (LoadWord<Word>(a + last) ^ LoadWord<Word>(b + last))) == 0;
}
template <typename Word>
inline void CopyEnds(char* to, const char* from, std::size_t size) {
  const std::size_t last = size - sizeof(Word);
  const Word head = LoadWord<Word>(from);
  const Word tail = LoadWord<Word>(from + last);
  std::memcpy(to, &head, sizeof head);
  std::memcpy(to + last, &tail, sizeof tail);
}

struct Words16 {
  std::uint64_t low;
  std::uint64_t high;
};

}  // namespace internal

// a == b.
[[nodiscard]] inline bool SameBytes(std::string_view a, std::string_view b) {
  const std::size_t size = a.size();
  if (size != b.size()) return false;
  if (size > 16) return std::memcmp(a.data(), b.data(), size) == 0;
  if (size >= 8) return internal::SameEnds<std::uint64_t>(a.data(), b.data(), size);
  if (size >= 4) return internal::SameEnds<std::uint32_t>(a.data(), b.data(), size);
  if (size >= 2) return internal::SameEnds<std::uint16_t>(a.data(), b.data(), size);
  return size == 0 || a.front() == b.front();
}

// Copies `from` to `to`, which must not overlap; an empty view may point nowhere.
inline void CopyBytes(char* to, std::string_view from) {
  const std::size_t size = from.size();
  if (size > 64) {
    std::memcpy(to, from.data(), size);
  } else if (size > 32) {
    internal::CopyEnds<internal::Words16>(to, from.data(), 32);
    internal::CopyEnds<internal::Words16>(to + size - 32, from.data() + size - 32, 32);
  } else if (size >= 16) {
    internal::CopyEnds<internal::Words16>(to, from.data(), size);
  } else if (size >= 8) {
    internal::CopyEnds<std::uint64_t>(to, from.data(), size);
  } else if (size >= 4) {
    internal::CopyEnds<std::uint32_t>(to, from.data(), size);
  } else if (size >= 2) {
    internal::CopyEnds<std::uint16_t>(to, from.data(), size);
  } else if (size == 1) {
    *to = from.front();
  }
}

}  // namespace sluice
