#include "sluice/config/diagnostics.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <set>

#include "sluice/config/redis_url.h"

namespace sluice::config {
namespace {

constexpr std::size_t kLineWidth = 120;  // characters of a source line that are shown
constexpr std::size_t kQuotedWidth = 60;
constexpr std::string_view kCut = "...";

bool IsControl(char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }

bool IsContinuation(char c) { return (static_cast<unsigned char>(c) & 0xc0) == 0x80; }

std::string Escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '\n') {
      out += "\\n";
    } else if (IsControl(c)) {
      out += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    } else {
      out += c;
    }
  }
  return out;
}

// One string for each character as a terminal shows it; a control character becomes `?`.
std::vector<std::string> Characters(std::string_view line) {
  std::vector<std::string> characters;
  for (const char c : line) {
    if (IsContinuation(c) && !characters.empty()) {
      characters.back() += c;
    } else {
      characters.emplace_back(1, IsControl(c) && c != '\t' ? '?' : c);
    }
  }
  return characters;
}

// A star for each character, so that carets keep their places.
void Hide(std::size_t begin, std::size_t end, std::string& line) {
  if (begin >= end) return;
  const std::string_view hidden = std::string_view(line).substr(begin, end - begin);
  const auto characters =
      hidden.size() - std::count_if(hidden.begin(), hidden.end(), IsContinuation);
  line.replace(begin, end - begin, characters, '*');
}

// In the URL of a Redis server that is out of form a password may stand anywhere.
void HideWrongRedisUrls(std::string& line) {
  for (const std::string_view scheme : {"redis://", "rediss://"}) {
    for (std::size_t at = 0; (at = line.find(scheme, at)) != line.npos;) {
      const std::size_t begin = at + scheme.size();
      const std::size_t end = std::min(line.find_first_of("\"'` ,}", begin), line.size());
      if (!ParseRedisUrl(std::string_view(line).substr(at, end - at)).ok()) Hide(begin, end, line);
      at = begin;
    }
  }
}

// Errs to the side of hiding: a URL may be out of form, and be followed by anything.
std::string WithoutPasswords(std::string_view text) {
  std::string line(text);
  constexpr std::string_view kField = "password";
  for (std::size_t at = 0; (at = line.find(kField, at)) != line.npos;) {
    at += kField.size();
    const std::size_t colon = line.find_first_not_of("\"' ", at);
    if (colon == line.npos || line[colon] != ':') continue;
    Hide(line.find_first_not_of(' ', colon + 1), line.size(), line);
  }
  for (const std::string_view start : {"url:", "url\":", "url':", "://"}) {
    const std::size_t at = line.rfind('@');
    const std::size_t begin = line.find(start);
    if (at != line.npos && begin < at) Hide(begin + start.size(), at, line);
  }
  HideWrongRedisUrls(line);
  return line;
}

// The line and the caret under it.
void AppendSource(std::string_view line, const Location& location, std::string& out) {
  const std::vector<std::string> characters = Characters(line);
  const std::size_t caret =
      std::min(static_cast<std::size_t>(std::max(location.column, 1)) - 1, characters.size());
  // Of a long line, the part around the caret.
  std::size_t begin = 0;
  if (characters.size() > kLineWidth && caret > kLineWidth / 2) begin = caret - kLineWidth / 2;
  const std::size_t end = std::min(characters.size(), begin + kLineWidth);

  out += fmt::format("{:5} | ", location.line);
  std::string under = "      | ";
  if (begin > 0) {
    out += kCut;
    under.append(kCut.size(), ' ');
  }
  for (std::size_t i = begin; i < end; ++i) {
    out += characters[i];
    // A tab under a tab keeps the caret in its place, however wide the terminal makes it.
    if (i < caret) under += characters[i] == "\t" ? '\t' : ' ';
  }
  if (end < characters.size()) out += kCut;
  while (!out.empty() && out.back() == ' ') out.pop_back();
  out += fmt::format("\n{}^\n", under);
}

}  // namespace

FileId Diagnostics::AddFile(std::string_view name, std::string_view text) {
  File file{.name = Escaped(name), .lines = {}};
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    file.lines.push_back(WithoutPasswords(text.substr(0, end)));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  files_.push_back(std::move(file));
  return static_cast<FileId>(files_.size() - 1);
}

void Diagnostics::Error(Location location, std::string_view message, std::string_view hint) {
  Add({location, Severity::kError, Escaped(WithoutPasswords(message)), Escaped(hint)});
}

void Diagnostics::Warning(Location location, std::string_view message, std::string_view hint) {
  Add({location, Severity::kWarning, Escaped(WithoutPasswords(message)), Escaped(hint)});
}

void Diagnostics::Add(Diagnostic diagnostic) {
  if (diagnostic.severity == Severity::kError) ++errors_;
  all_.push_back(std::move(diagnostic));
}

std::vector<Diagnostic> Diagnostics::Sorted() const {
  std::vector<Diagnostic> sorted = all_;
  std::stable_sort(sorted.begin(), sorted.end(), [](const Diagnostic& a, const Diagnostic& b) {
    return a.location < b.location;
  });
  return sorted;
}

std::string Diagnostics::PlaceOf(const Location& location) const {
  const std::string& name = files_[location.file].name;
  if (location.line == 0) return name;
  return fmt::format("{}:{}:{}", name, location.line, location.column);
}

void Diagnostics::AppendOne(const Diagnostic& diagnostic, std::string& out) const {
  const Location& at = diagnostic.location;
  const File& file = files_[at.file];
  out += fmt::format("{}: {}: {}\n", PlaceOf(at),
                     diagnostic.severity == Severity::kError ? "error" : "warning",
                     diagnostic.message);
  if (at.line > 0 && static_cast<std::size_t>(at.line) <= file.lines.size()) {
    AppendSource(file.lines[static_cast<std::size_t>(at.line) - 1], at, out);
  }
  if (!diagnostic.hint.empty()) out += fmt::format("      = {}\n", diagnostic.hint);
}

std::string Diagnostics::CountLine(std::string_view consequence) const {
  std::string line;
  if (errors() > 0) line = Counted(errors(), "error");
  if (warnings() > 0) {
    line += (line.empty() ? "" : " and ") + Counted(warnings(), "warning");
  }
  std::set<FileId> files;
  for (const Diagnostic& diagnostic : all_) files.insert(diagnostic.location.file);
  line += " in " + Counted(files.size(), "file");
  if (!consequence.empty()) {
    line += fmt::format("; {}", consequence);
  }
  return line;
}

std::string Diagnostics::Text(std::string_view consequence) const {
  if (all_.empty()) return "";
  std::string out;
  const std::vector<Diagnostic> sorted = Sorted();
  for (std::size_t i = 0; i < std::min(sorted.size(), kMaxTold); ++i) AppendOne(sorted[i], out);
  if (sorted.size() > kMaxTold) {
    out += fmt::format("(the first {} of {})\n", kMaxTold, sorted.size());
  }
  out += CountLine(consequence) + "\n";
  return out;
}

std::string Quoted(std::string_view text) {
  std::string shown = "`";
  std::size_t cut = std::min(text.size(), kQuotedWidth);
  while (cut > 0 && cut < text.size() && IsContinuation(text[cut])) --cut;
  shown += Escaped(text.substr(0, cut));
  if (cut < text.size()) shown += kCut;
  return shown + "`";
}

std::string Counted(std::size_t count, std::string_view noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

}  // namespace sluice::config
