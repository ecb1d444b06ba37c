#include "sluice/rule/path.h"

#include <array>

#include "sluice/base/ascii.h"

namespace sluice {
namespace {

enum class Kind : std::uint8_t { kPlain, kDot, kSlash, kPercent, kEscaped, kEnd, kBad };

constexpr std::array<Kind, 256> kKinds = [] {
  std::array<Kind, 256> kinds{};
  for (int c = 0; c < 256; ++c) {
    const bool alphanumeric =
        (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    const bool plain =
        alphanumeric ||
        std::string_view("-._~!$&'()*+,;=:@").find(static_cast<char>(c)) != std::string_view::npos;
    const bool bad = c <= ' ' || c == 0x7f || c == '#' || c == '\\';
    kinds[static_cast<std::size_t>(c)] = plain ? Kind::kPlain : bad ? Kind::kBad : Kind::kEscaped;
  }
  kinds['.'] = Kind::kDot;  // plain, but for a segment of dots
  kinds['/'] = Kind::kSlash;
  kinds['%'] = Kind::kPercent;
  kinds['?'] = Kind::kEnd;
  return kinds;
}();

Kind KindOf(char c) { return kKinds[static_cast<unsigned char>(c)]; }

// Writes the normal form of a path, byte by byte.
class PathWriter {
 public:
  explicit PathWriter(std::span<char> buffer) : buffer_(buffer) {}

  void Append(unsigned char byte) {
    if (kKinds[byte] <= Kind::kDot) return Put(static_cast<char>(byte));
    constexpr std::string_view kHex = "0123456789ABCDEF";
    Put('%');
    Put(kHex[byte >> 4]);
    Put(kHex[byte & 15]);
  }

  // Begins the next segment.
  void Separate() {
    if (size_ == 0) return Put('/');
    if (Segment().empty()) {
      segments_since_empty_ = 0;
    } else if (!ResolveDots()) {
      if (segments_since_empty_ >= 0) ++segments_since_empty_;
      Put('/');
    }
    segment_ = size_;
  }

  void Finish() { ResolveDots(); }

  [[nodiscard]] PathError error() const { return error_; }
  [[nodiscard]] std::string_view text() const { return {buffer_.data(), size_}; }

 private:
  [[nodiscard]] std::string_view Segment() const { return text().substr(segment_); }

  void Put(char c) {
    if (size_ == buffer_.size()) {
      error_ = PathError::kTooLong;
      return;
    }
    buffer_[size_++] = c;
    if (size_ == 1) segment_ = 1;
  }

  // Takes back the last segment when it is `.` or `..`.
  bool ResolveDots() {
    const std::string_view segment = Segment();
    if (segment != "." && segment != "..") return false;
    const bool up = segment.size() == 2;
    size_ = segment_;
    if (up) {
      if (segments_since_empty_ == 0) error_ = PathError::kAmbiguous;
      if (segments_since_empty_ > 0) --segments_since_empty_;
      if (size_ > 1) size_ = text().rfind('/', size_ - 2) + 1;
    }
    segment_ = size_;
    return true;
  }

  std::span<char> buffer_;
  std::size_t size_ = 0;
  std::size_t segment_ = 0;  // where the current one begins
  // How many kept segments stand after the last empty one; -1 before the first empty one. Where it
  // is 0, whether `..` removes the empty segment or one before it depends on the server.
  std::ptrdiff_t segments_since_empty_ = -1;
  PathError error_ = PathError::kNone;
};

struct Rewritten {
  std::string_view text;
  PathError error;
  bool escaped_slash;  // there was a `%2F`
};

Rewritten Rewrite(std::string_view target, bool split, std::span<char> buffer) {
  PathWriter writer(buffer);
  bool escaped_slash = false;
  for (std::size_t i = 0; i < target.size() && writer.error() == PathError::kNone; ++i) {
    const Kind kind = KindOf(target[i]);
    if (kind == Kind::kEnd) break;
    if (kind == Kind::kBad) return {{}, PathError::kBadCharacter, false};
    if (kind == Kind::kSlash) {
      writer.Separate();
      continue;
    }
    int byte = static_cast<unsigned char>(target[i]);
    if (kind == Kind::kPercent) {
      if (target.size() - i < 3) return {{}, PathError::kBadEscape, false};
      const int high = HexValue(target[i + 1]);
      const int low = HexValue(target[i + 2]);
      if (high < 0 || low < 0 || (high | low) == 0) return {{}, PathError::kBadEscape, false};
      byte = high << 4 | low;
      i += 2;
    }
    if (byte == '/') {  // only as an escape
      escaped_slash = true;
      if (split) {
        writer.Separate();
        continue;
      }
    }
    writer.Append(static_cast<unsigned char>(byte));
  }
  writer.Finish();
  return {writer.text(), writer.error(), escaped_slash};
}

}  // namespace

std::string_view ToString(PathError error) {
  switch (error) {
    case PathError::kNone:
      return "the path is fine";
    case PathError::kNotAbsolute:
      return "the path does not begin with `/`";
    case PathError::kBadEscape:
      return "`%` in the path is not followed by two hex digits, or is %00";
    case PathError::kBadCharacter:
      return "the path has a blank, a control character, `\\` or `#`";
    case PathError::kAmbiguous:
      return "the path has `..` after an empty segment";
    case PathError::kTooLong:
      return "the path is too long";
  }
  return "unknown error";
}

namespace internal {

std::size_t NormalLength(std::string_view target) {
  if (target.empty() || target.front() != '/') return 0;
  const char* at = target.data();
  const char* const end = at + target.size();
  for (;;) {  // at a slash
    if (++at == end || KindOf(*at) != Kind::kPlain) break;
    do {
      ++at;
    } while (at != end && KindOf(*at) <= Kind::kDot);
    if (at == end || KindOf(*at) != Kind::kSlash) break;
  }
  return static_cast<std::size_t>(at - target.data());
}

NormalPath RewritePath(std::string_view target, std::span<char> buffer) {
  if (target.empty() || target.front() != '/') return {{}, {}, PathError::kNotAbsolute};
  const Rewritten literal = Rewrite(target, false, buffer);
  if (literal.error != PathError::kNone) return {{}, {}, literal.error};
  if (!literal.escaped_slash) return {literal.text, literal.text, PathError::kNone};
  const Rewritten split = Rewrite(target, true, buffer.subspan(literal.text.size()));
  if (split.error != PathError::kNone) return {{}, {}, split.error};
  return {literal.text, split.text, PathError::kNone};
}

}  // namespace internal
}  // namespace sluice
