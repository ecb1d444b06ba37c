// The bytes of a file before they are YAML: checked, with one kind of line end, and with a way from
// the library's positions (bytes) to ours (characters).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sluice/config/diagnostics.h"

namespace sluice::config {

class SourceText {
 public:
  // Complains about what is no text (NUL, no UTF-8) or too long, under a file that it adds to
  // `diagnostics` by `name`; then usable() is false.
  SourceText(std::string_view name, std::string_view bytes, Diagnostics& diagnostics);

  [[nodiscard]] bool usable() const { return usable_; }
  [[nodiscard]] FileId file() const { return file_; }
  // Without a byte order mark, with `\n` alone at the ends of lines.
  [[nodiscard]] const std::string& text() const { return text_; }

  // Of line `line` and byte `byte_column` in it, both counted from 0.
  [[nodiscard]] Location At(int line, int byte_column) const;
  // What stands there, up to the end of the text.
  [[nodiscard]] std::string_view From(int line, int byte_column) const;
  // The line, counted from 0, begins with a tab somewhere before its first other character.
  [[nodiscard]] bool IndentedByTab(int line) const;

 private:
  [[nodiscard]] std::size_t Offset(int line, int byte_column) const;

  FileId file_ = 0;
  std::string text_;
  std::vector<std::size_t> line_starts_;  // the first is 0
  bool usable_ = true;
};

}  // namespace sluice::config
