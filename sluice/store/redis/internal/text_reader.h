// Reads a text from its beginning: numbers, and what stands between them. After something that was
// expected is not there, ok() is false and nothing more is read.
#pragma once

#include <charconv>
#include <cstdint>
#include <limits>
#include <string_view>

namespace sluice::redis {

class TextReader {
 public:
  explicit TextReader(std::string_view text) : rest_(text) {}

  [[nodiscard]] bool ok() const { return ok_; }
  [[nodiscard]] std::string_view rest() const { return rest_; }
  // Everything was as expected, and nothing is left.
  [[nodiscard]] bool done() const { return ok_ && rest_.empty(); }

  // Whether `word` comes next, which is then read.
  bool Take(std::string_view word) {
    if (!ok_ || !rest_.starts_with(word)) return false;
    rest_.remove_prefix(word.size());
    return true;
  }
  TextReader& Skip(std::string_view word) {
    if (!Take(word)) Fail();
    return *this;
  }
  // Up to `end`, which stays.
  std::string_view Until(char end) {
    const std::size_t size = rest_.find(end);
    if (!ok_ || size == std::string_view::npos) return Fail(), std::string_view{};
    const std::string_view read = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return read;
  }

  // Digits, below 2^63; 0 when not ok.
  std::int64_t Number() {
    std::int64_t number = 0;
    const char* const end = rest_.data() + rest_.size();
    if (!ok_ || rest_.empty() || rest_[0] == '-') return Fail();
    const auto [read, error] = std::from_chars(rest_.data(), end, number);
    if (error != std::errc{}) return Fail();
    rest_.remove_prefix(static_cast<std::size_t>(read - rest_.data()));
    return number;
  }
  // The same, but below 2^53, as all numbers are that the script keeps.
  std::int64_t Count() {
    const std::int64_t number = Number();
    return number < (std::int64_t{1} << 53) ? number : Fail();
  }
  // As Number(), with zeros by their number: "6e10".
  std::int64_t ShortNumber() {
    std::int64_t number = Number();
    if (!Take("e")) return number;
    for (std::int64_t zeros = Number(); ok_ && zeros > 0; --zeros) {
      if (number == 0 || number > std::numeric_limits<std::int64_t>::max() / 10) return Fail();
      number *= 10;
    }
    return ok_ ? number : 0;
  }
  // Of microseconds, as nanoseconds.
  std::int64_t ShortUs() {
    const std::int64_t us = ShortNumber();
    return us > std::numeric_limits<std::int64_t>::max() / 1000 ? Fail() : us * 1000;
  }

 private:
  std::int64_t Fail() {
    ok_ = false;
    return 0;
  }

  std::string_view rest_;
  bool ok_ = true;
};

}  // namespace sluice::redis
