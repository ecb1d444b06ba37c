// One cache line of the table: four slots, and how a slot is read and taken.
//
//   | tag tag tag tag | word word word word |      8 bytes each, 64 bytes in all
//
//   tag   0: the slot is free; else 52 bits of the key's hash, and 12 bits that name the limit
//         which the word was written under (its class)
//   word  the state, or where it lies; kBusy while its owner changes more than the word
//
// How a slot is read and changed, so that readers take no lock:
//
//   read    tag, word, tag again: a pair that belongs together, or "it is changing".
//   change  of the word alone: compare-and-swap from what was read. A slot that another key took
//           in between has another word: a new instant lies after any that was dead or about to
//           be, and a window's word holds another number. (An evicted key's word may come back
//           by chance under a key of the same limit; then that key owes a unit too much.)
//   take    compare-and-swap of the word to kBusy, then look at the tag again, which cannot change
//           any more; whoever has taken a slot is alone with it until Publish().
//
// Nobody waits for another's slot while holding one, but for its own key's.
#pragma once

#include <atomic>
#include <bit>
#include <cstdint>

#include "sluice/store/store.h"

#if defined(__SANITIZE_THREAD__)
#define SLUICE_THREAD_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define SLUICE_THREAD_SANITIZER 1
#endif
#endif

// Loading four tags at once is a data race by the letter of C++; on this processor each of them
// arrives whole, and every match is checked again by an atomic load.
#if defined(__SSE2__) && !defined(SLUICE_THREAD_SANITIZER)
#define SLUICE_COMPARE_SSE2 1
#include <emmintrin.h>
#endif

namespace sluice::memory {

inline constexpr int kSlotsPerLine = 4;
inline constexpr int kClassBits = 12;
inline constexpr std::uint64_t kClassMask = (std::uint64_t{1} << kClassBits) - 1;
inline constexpr std::size_t kMaxClasses = std::size_t{1} << kClassBits;

// No state is ever this: an instant at the beginning of time, a window without a charge.
inline constexpr std::uint64_t kBusy = std::uint64_t{1} << 63;

[[nodiscard]] inline LimitId ClassOf(std::uint64_t tag) {
  return static_cast<LimitId>(tag & kClassMask);
}
[[nodiscard]] inline std::uint64_t FingerprintOf(std::uint64_t tag) { return tag & ~kClassMask; }

struct alignas(64) Line {
  std::atomic<std::uint64_t> tags[kSlotsPerLine];
  std::atomic<std::uint64_t> words[kSlotsPerLine];
};
static_assert(sizeof(Line) == 64);

// What a slot held at one moment.
struct Seen {
  std::uint64_t tag = 0;
  std::uint64_t word = 0;
};

class Slot {
 public:
  Slot() = default;
  Slot(Line& line, int index) : line_(&line), index_(index) {}

  [[nodiscard]] explicit operator bool() const { return line_ != nullptr; }
  [[nodiscard]] Line& line() const { return *line_; }
  [[nodiscard]] int index() const { return index_; }

  // False: the slot is changing just now.
  [[nodiscard]] bool Read(Seen& seen) const {
    seen.tag = tag().load(std::memory_order_acquire);
    seen.word = word().load(std::memory_order_acquire);
    return seen.word != kBusy && tag().load(std::memory_order_relaxed) == seen.tag;
  }

  // Changes the word alone. False: somebody was faster.
  [[nodiscard]] bool Replace(std::uint64_t from, std::uint64_t to) const {
    return word().compare_exchange_strong(from, to, std::memory_order_acq_rel,
                                          std::memory_order_relaxed);
  }

  // Takes the slot as it was seen. False: it is not that any more.
  [[nodiscard]] bool Take(const Seen& seen) const {
    if (!Replace(seen.word, kBusy)) return false;
    if (tag().load(std::memory_order_acquire) == seen.tag) return true;
    word().store(seen.word, std::memory_order_release);
    return false;
  }

  // Lets go of a slot that was taken. Tag 0 frees it; its word must be 0 then.
  void Publish(const Seen& state) const {
    tag().store(state.tag, std::memory_order_release);
    word().store(state.word, std::memory_order_release);
  }

 private:
  [[nodiscard]] std::atomic<std::uint64_t>& tag() const { return line_->tags[index_]; }
  [[nodiscard]] std::atomic<std::uint64_t>& word() const { return line_->words[index_]; }

  Line* line_ = nullptr;
  int index_ = 0;
};

inline void PrefetchToWrite(const void* at) {
  __builtin_prefetch(at, 1);
  // Else GCC 12 takes the function for one without effect and leaves out its calls.
  asm volatile("");
}

// One bit for each slot whose tag has this fingerprint, whatever its class.
[[nodiscard]] inline unsigned MatchMask(const Line& line, std::uint64_t fingerprint) {
#if defined(SLUICE_COMPARE_SSE2)
  const auto* const tags = reinterpret_cast<const __m128i*>(&line.tags[0]);
  const __m128i want = _mm_set1_epi64x(static_cast<long long>(fingerprint));
  const __m128i keep = _mm_set1_epi64x(static_cast<long long>(~kClassMask));
  const __m128 equal01 =
      _mm_castsi128_ps(_mm_cmpeq_epi32(_mm_and_si128(_mm_load_si128(tags), keep), want));
  const __m128 equal23 =
      _mm_castsi128_ps(_mm_cmpeq_epi32(_mm_and_si128(_mm_load_si128(tags + 1), keep), want));
  // A tag is equal where both of its halves are.
  const __m128 lower_halves = _mm_shuffle_ps(equal01, equal23, _MM_SHUFFLE(2, 0, 2, 0));
  const __m128 upper_halves = _mm_shuffle_ps(equal01, equal23, _MM_SHUFFLE(3, 1, 3, 1));
  return static_cast<unsigned>(_mm_movemask_ps(_mm_and_ps(lower_halves, upper_halves)));
#else
  unsigned mask = 0;
  for (int i = 0; i < kSlotsPerLine; ++i) {
    const std::uint64_t tag = line.tags[i].load(std::memory_order_relaxed);
    mask |= static_cast<unsigned>(FingerprintOf(tag) == fingerprint) << i;
  }
  return mask;
#endif
}

}  // namespace sluice::memory
