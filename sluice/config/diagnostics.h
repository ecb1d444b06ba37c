// All that is wrong with a configuration, gathered and told at once.
//
//   rules/api.yaml:14:14: error: `burst` must be at least 1, got 0
//      14 |       burst: 0
//         |              ^
//         = a burst of 0 denies every request; to deny on purpose write `deny: true`
//   rules/api.yaml:22:5: error: unknown field `algoritm`; did you mean `algorithm`?
//      22 |     algoritm: fixed-window
//         |     ^
//   2 errors in 1 file; generation 41 of the rules stays in force
//
// In the order of file, line and column, whatever the order in which they were found. What stands
// in a file is shown without control characters and cut to a width, so that a file cannot write to
// the reader's terminal or fill it. What may be a password is shown as `***`: in a line the part of
// a URL before its last @, and what follows the word `password`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

namespace sluice::config {

using FileId = std::uint32_t;

// Where something stands. Lines and columns count from 1, columns in characters; line 0 is the file
// as a whole.
struct Location {
  FileId file = 0;
  int line = 0;
  int column = 0;
  friend bool operator==(const Location&, const Location&) = default;
  friend bool operator<(const Location& a, const Location& b) {
    return std::tie(a.file, a.line, a.column) < std::tie(b.file, b.line, b.column);
  }
};

enum class Severity : std::uint8_t { kError, kWarning };

struct Diagnostic {
  Location location;
  Severity severity = Severity::kError;
  std::string message;  // what is wrong with the value found, in one line
  std::string hint;     // what to write instead, or why; may be empty
};

class Diagnostics {
 public:
  // At most so many are told; the last line counts all.
  static constexpr std::size_t kMaxTold = 100;

  // The text is kept to show its lines. A file that could not be read has no text.
  FileId AddFile(std::string_view name, std::string_view text);

  void Error(Location location, std::string_view message, std::string_view hint = "");
  void Warning(Location location, std::string_view message, std::string_view hint = "");

  [[nodiscard]] std::size_t errors() const { return errors_; }
  [[nodiscard]] std::size_t warnings() const { return all_.size() - errors_; }
  [[nodiscard]] const std::string& FileName(FileId file) const { return files_[file].name; }
  // "rules/api.yaml:14:14"; the name alone for the file as a whole.
  [[nodiscard]] std::string PlaceOf(const Location& location) const;

  // In the order of their places.
  [[nodiscard]] std::vector<Diagnostic> Sorted() const;
  // As above, with a newline at the end; empty when there is nothing to tell. `consequence` ends
  // the last line: "generation 41 of the rules stays in force".
  [[nodiscard]] std::string Text(std::string_view consequence = "") const;

 private:
  struct File {
    std::string name;
    std::vector<std::string> lines;
  };
  void Add(Diagnostic diagnostic);
  void AppendOne(const Diagnostic& diagnostic, std::string& out) const;
  [[nodiscard]] std::string CountLine(std::string_view consequence) const;

  std::vector<File> files_;
  std::vector<Diagnostic> all_;
  std::size_t errors_ = 0;
};

// What a user wrote, fit for a message: in backticks, control characters escaped, cut when long.
[[nodiscard]] std::string Quoted(std::string_view text);

// "1 error", "2 errors".
[[nodiscard]] std::string Counted(std::size_t count, std::string_view noun);

}  // namespace sluice::config
