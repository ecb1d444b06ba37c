#include "sluice/base/utf8.h"

namespace sluice {

std::size_t Utf8Length(std::string_view text) {
  if (text.empty()) return 0;
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned first = byte(0);
  if (first < 0x80) return 1;
  const std::size_t length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || text.size() < length) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0U) != 0x80) return 0;
  }
  if (first == 0xe0 && byte(1) < 0xa0) return 0;  // a shorter form says the same
  if (first == 0xf0 && byte(1) < 0x90) return 0;
  if (first == 0xed && byte(1) > 0x9f) return 0;  // a surrogate
  if (first == 0xf4 && byte(1) > 0x8f) return 0;  // above U+10FFFF
  return length;
}

}  // namespace sluice
