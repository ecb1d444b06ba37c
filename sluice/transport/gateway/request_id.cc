#include "sluice/transport/gateway/request_id.h"

#include <algorithm>

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
  for (std::size_t i = 0; i < kIdBytes; ++i) {
    const std::uint8_t byte = random_[used_++];
    out->push_back(kHex[byte >> 4U]);
    out->push_back(kHex[byte & 15U]);
  }
}

}  // namespace sluice::gateway
