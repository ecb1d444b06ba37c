#include "sluice/transport/gateway/request_id.h"

#include <algorithm>
#include <array>

#include "sluice/base/ascii.h"
#include "sluice/base/random.h"

namespace sluice::gateway {

bool IsRequestId(std::string_view text) {
  constexpr std::string_view kOthers = "-_.:/+=@";
  return !text.empty() && text.size() <= kMaxRequestIdBytes &&
         std::all_of(text.begin(), text.end(), [&](char c) {
           return IsLetter(c) || IsDigit(c) || kOthers.find(c) != std::string_view::npos;
         });
}

void RequestIds::Append(std::string* out) {
  constexpr std::string_view kHex = "0123456789abcdef";
  if (used_ == random_.size()) {
    FillWithRandom(random_);
    used_ = 0;
  }
  std::array<char, 2 * kIdBytes> digits;
  for (std::size_t i = 0; i < kIdBytes; ++i) {
    const std::uint8_t byte = random_[used_++];
    digits[2 * i] = kHex[byte >> 4U];
    digits[2 * i + 1] = kHex[byte & 15U];
  }
  out->append(digits.data(), digits.size());
}

}  // namespace sluice::gateway
