// Paths and patterns: the normal form is normal, views stay inside what was given, and a pattern
// made of a path covers that path.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "sluice/rule/path.h"
#include "sluice/rule/path_pattern.h"

namespace {

using sluice::NormalizePath, sluice::PathBufferSize, sluice::PathPattern;

void CheckIsNormal(std::string_view path) {
  std::string buffer(PathBufferSize(path.size()), '\0');
  const auto again = NormalizePath(path, buffer);
  if (!again.ok() || again.literal != path) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(bytes), size);
  std::string buffer(PathBufferSize(size), '\0');
  const auto path = NormalizePath(text, buffer);
  if (path.error == sluice::PathError::kTooLong) std::abort();
  std::string small(size / 2, '\0');
  const auto cut = NormalizePath(text, small);
  if (cut.ok() && (cut.literal != path.literal || cut.split != path.split)) std::abort();

  const auto pattern = PathPattern::Compile(text);
  if (!path.ok()) {
    if (pattern.ok()) std::abort();
    return 0;
  }
  CheckIsNormal(path.literal);
  CheckIsNormal(path.split);
  if (path.split.find("%2F") != path.split.npos) std::abort();
  // `*` in the path stands for itself there, and for any segment in the pattern.
  if (pattern.ok() && !pattern->MatchesAnyReading(path)) std::abort();
  return 0;
}
