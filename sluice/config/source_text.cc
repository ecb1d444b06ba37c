#include "sluice/config/source_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "sluice/base/utf8.h"
#include "sluice/config/document.h"

namespace sluice::config {
namespace {

// Where the first byte is that cannot stand in a text; npos when there is none.
std::size_t FindNoText(std::string_view text) {
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t size = Utf8Length(text.substr(i));
    if (size == 0 || text[i] == '\0') return i;
    i += size;
  }
  return text.npos;
}

std::string WithPlainLineEnds(std::string_view bytes) {
  std::string text;
  text.reserve(bytes.size());
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    if (bytes[i] != '\r') {
      text += bytes[i];
    } else if (i + 1 == bytes.size() || bytes[i + 1] != '\n') {
      text += '\n';
    }
  }
  return text;
}

}  // namespace

SourceText::SourceText(std::string_view name, std::string_view bytes, Diagnostics& diagnostics) {
  if (bytes.size() > kMaxDocumentBytes) {
    file_ = diagnostics.AddFile(name, "");
    diagnostics.Error({file_, 0, 0}, fmt::format("the file has {} bytes; the most is {}",
                                                 bytes.size(), kMaxDocumentBytes));
    usable_ = false;
    return;
  }
  constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
  if (bytes.starts_with(kByteOrderMark)) bytes.remove_prefix(kByteOrderMark.size());
  text_ = WithPlainLineEnds(bytes);
  line_starts_.push_back(0);
  for (std::size_t i = 0; i < text_.size(); ++i) {
    if (text_[i] == '\n') line_starts_.push_back(i + 1);
  }
  file_ = diagnostics.AddFile(name, text_);

  const std::size_t bad = FindNoText(text_);
  if (bad == std::string::npos) return;
  usable_ = false;
  const auto after = std::upper_bound(line_starts_.begin(), line_starts_.end(), bad);
  const int line = static_cast<int>(after - line_starts_.begin()) - 1;
  const Location at = At(line, static_cast<int>(bad - *std::prev(after)));
  diagnostics.Error(at, "the file is not UTF-8 text from here on", "save it as UTF-8");
}

std::size_t SourceText::Offset(int line, int byte_column) const {
  // The library can point behind the last line.
  const std::size_t lines = line_starts_.size();
  if (line < 0 || static_cast<std::size_t>(line) >= lines) return text_.size();
  return std::min(line_starts_[static_cast<std::size_t>(line)] +
                      static_cast<std::size_t>(std::max(byte_column, 0)),
                  text_.size());
}

Location SourceText::At(int line, int byte_column) const {
  const std::size_t end = Offset(line, byte_column);
  const std::size_t start = Offset(line, 0);
  const auto characters =
      std::count_if(text_.begin() + static_cast<std::ptrdiff_t>(start),
                    text_.begin() + static_cast<std::ptrdiff_t>(end),
                    [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; });
  return {file_, std::max(line, 0) + 1, static_cast<int>(characters) + 1};
}

std::string_view SourceText::From(int line, int byte_column) const {
  return std::string_view(text_).substr(Offset(line, byte_column));
}

bool SourceText::IndentedByTab(int line) const {
  const std::string_view rest = From(line, 0);
  const std::string_view blanks = rest.substr(0, rest.find_first_not_of(" \t"));
  return blanks.find('\t') != blanks.npos;
}

}  // namespace sluice::config
