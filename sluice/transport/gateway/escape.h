// Text of a client's in places where not every byte may stand.
#pragma once

#include <string>
#include <string_view>

namespace sluice::gateway {

// Appends `text`. Printable ASCII stands for itself, but for the bytes in `also`; every other byte
// becomes `lead` and two hexadecimal digits.
inline void AppendEscaped(std::string_view text, std::string_view lead, std::string_view also,
                          std::string* out) {
  constexpr std::string_view kHex = "0123456789ABCDEF";
  for (const char c : text) {
    if (c >= 0x20 && c < 0x7f && also.find(c) == also.npos) {
      out->push_back(c);
      continue;
    }
    out->append(lead);
    out->push_back(kHex[static_cast<unsigned char>(c) >> 4U]);
    out->push_back(kHex[static_cast<unsigned char>(c) & 15U]);
  }
}

}  // namespace sluice::gateway
