// One spelling for each path, so that no other spelling escapes a rule.
//
// Servers take /api/login, //api//login, /api/./login, /api/x/../login and /api/%6cogin for one
// resource. A rule that compares what was sent limits one of them and lets the others pass. So
// paths, and the patterns of rules, are compared in one normal form:
//
//   - the query is cut off
//   - every byte has one spelling: what may stand in a path segment (RFC 3986 pchar: letters,
//     digits and -._~!$&'()*+,;=:@) stands for itself, all else is an escape with upper-case digits
//   - several slashes in a row are one; `.` and `..` are resolved, at the root `..` goes nowhere
//   - case is kept, and so is a slash at the end: PathPattern says how these compare
//
// `%2F` is the hard one. Half of all servers take it for a separator, half for a letter of a name
// (GitLab's /projects/group%2Fname). Whichever we chose, on the other half a rule could be escaped.
// So such a path has two readings, and a rule must bite when either of them is in its way, while an
// exemption needs both:
//
//   sent                      literal                      split
//   /api%2Flogin              /api%2Flogin                 /api/login
//   /health/..%2Fapi/login    /health/..%2Fapi/login       /api/login
//
// Refused rather than guessed at, since servers differ and nobody sends them in good faith: a `..`
// that would remove an empty segment (/a//../b is /b to some and /a/b to others), a backslash,
// `#`, control characters and blanks, NUL also when escaped, and `%` without two hex digits.
//
// The normal form is for comparing. It is not for forwarding: `%3B` and `;` compare equal here, and
// an upstream may tell them apart.
//
// Cost: one pass; for a path that is normal already one look at each byte, and the view itself is
// returned. Nothing allocates.
// Source: RFC 3986 §3.3 and §6.2.2.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace sluice {

enum class PathError : std::uint8_t {
  kNone,
  kNotAbsolute,   // does not begin with `/`
  kBadEscape,     // `%` without two hex digits, or %00
  kBadCharacter,  // a control character, a blank, `\` or `#`
  kAmbiguous,     // `..` after an empty segment
  kTooLong,       // the buffer is too small
};

// One short sentence, for the answer to the client and the log.
[[nodiscard]] std::string_view ToString(PathError error);

struct NormalPath {
  std::string_view literal;  // `%2F` is a letter of a name
  std::string_view split;    // `%2F` separates; the same view where there is none
  PathError error = PathError::kNone;

  [[nodiscard]] bool ok() const { return error == PathError::kNone; }
  [[nodiscard]] bool has_two_readings() const { return literal.data() != split.data(); }
};

// What the buffer of NormalizePath needs at most for a target of `size` bytes: two readings, in
// which each byte may become an escape.
[[nodiscard]] constexpr std::size_t PathBufferSize(std::size_t size) { return 6 * size; }

// `target` is the request target in origin form: `/path` or `/path?query`. The views of the result
// point into `target` or `buffer`. With a buffer smaller than PathBufferSize() long paths that are
// not normal already may be refused as kTooLong; no path is ever cut short.
[[nodiscard]] NormalPath NormalizePath(std::string_view target, std::span<char> buffer);
// The same into `path`, for the hot path: a result that is copied just after it was written waits
// for the writes.
void NormalizePath(std::string_view target, std::span<char> buffer, NormalPath& path);

namespace internal {

// How many bytes of `target` are in normal form for sure; 0 when it does not begin with a slash.
// Stops at a dot behind a slash, whatever follows.
[[nodiscard]] std::size_t NormalLength(std::string_view target);
// NormalizePath for a target that is not in normal form.
[[nodiscard]] NormalPath RewritePath(std::string_view target, std::span<char> buffer);

}  // namespace internal

inline void NormalizePath(std::string_view target, std::span<char> buffer, NormalPath& path) {
  const std::size_t normal = internal::NormalLength(target);
  if (normal == 0 || (normal < target.size() && target[normal] != '?')) {
    path = internal::RewritePath(target, buffer);
    return;
  }
  path.literal = {target.data(), normal};
  path.split = {target.data(), normal};
  path.error = PathError::kNone;
}

inline NormalPath NormalizePath(std::string_view target, std::span<char> buffer) {
  NormalPath path;
  NormalizePath(target, buffer, path);
  return path;
}

}  // namespace sluice
