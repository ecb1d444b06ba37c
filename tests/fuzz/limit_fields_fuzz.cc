// What an upstream says in limit fields: nothing that joins ours in one field may spoil it, and no
// number is larger than a structured field may hold.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "sluice/transport/dialects.h"

namespace {

void Require(bool holds) {
  if (!holds) std::abort();
}

void CheckNumbers(const sluice::transport::SaidOfOne& said) {
  constexpr std::uint64_t kMaxInteger = 999'999'999'999'999;
  Require(said.remaining <= kMaxInteger && said.reset <= kMaxInteger);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  using namespace sluice::transport;
  const std::string_view text(reinterpret_cast<const char*>(bytes), size);
  if (IsListOfStrings(text)) {
    const std::string ours = R"("a\"b";r=1;t=2)";
    std::string both = ours;
    both.append(", ").append(text);
    Require(IsListOfStrings(both));
    both.assign(text).append(",").append(ours);
    Require(IsListOfStrings(both));
    Require(text.find_first_of("\r\n") == std::string_view::npos);
  }
  if (const auto said = ReadDictionary(text)) CheckNumbers(*said);
  const std::size_t middle = text.find(';');
  if (const auto said = ReadNumbers(text.substr(0, middle),
                                    middle == text.npos ? "1" : text.substr(middle + 1))) {
    CheckNumbers(*said);
  }
  if (const auto field = FindLimitField(text)) Require(NameOf(*field).size() == text.size());
  return 0;
}
