// UTF-8 as RFC 3629 has it: no overlong forms, no surrogates, nothing above U+10FFFF.
#pragma once

#include <cstddef>
#include <string_view>

namespace sluice {

// How many bytes the character at the front of `text` takes: 1 to 4. 0 where the front is no UTF-8,
// and for an empty text. To walk over text that may be broken:
//
//   for (std::size_t i = 0; i < text.size();) {
//     const std::size_t length = Utf8Length(text.substr(i));
//     if (length == 0) ...   // the byte text[i] belongs to no character
//     i += std::max<std::size_t>(length, 1);
//   }
[[nodiscard]] std::size_t Utf8Length(std::string_view text);

}  // namespace sluice
