// Which paths a rule is for: `/v1/orders`, `/v1/*/items`, `/v1/**`.
//
//   *     one whole segment, whatever it is
//   **    any number of segments, none among them; once in a pattern, anywhere
//
//   pattern         matches                                  does not match
//   /v1/orders      /v1/orders  /v1/orders/  /v1/%6frders    /v1/orders/7  /v1/Orders
//   /v1/*/items     /v1/7/items                              /v1/items  /v1/7/8/items
//   /v1/**          /v1  /v1/  /v1/orders/7                  /v10
//   /v1/**/items    /v1/items  /v1/7/8/items                 /v1/items/7
//
// A slash at the end makes no difference, on either side: nearly every server answers both, and a
// slash must not be a way around a limit. Case makes one, unless `ignore_case` is asked for, since
// most servers tell /api/login and /API/login apart.
//
// Patterns are brought to the normal form of path.h as paths are, so `/caf%C3%A9` and `/café` are
// one pattern.
//
// Cost: compiled once; a match is linear in the path's length, without going back, and allocates
// nothing.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "sluice/rule/path.h"

namespace sluice {

class PathPattern {
 public:
  // kInvalidArgument with one sentence that says what to write.
  static absl::StatusOr<PathPattern> Compile(std::string_view pattern, bool ignore_case = false);

  // For what limits: true when some reading of the path is covered.
  [[nodiscard]] bool MatchesAnyReading(const NormalPath& path) const {
    return Matches(path.literal) || (path.has_two_readings() && Matches(path.split));
  }
  // For what exempts: true when no reading of the path leads elsewhere.
  [[nodiscard]] bool MatchesEveryReading(const NormalPath& path) const {
    return Matches(path.literal) && (!path.has_two_readings() || Matches(path.split));
  }

  // One reading, in normal form.
  [[nodiscard]] bool Matches(std::string_view normal) const;

  [[nodiscard]] const std::string& text() const { return text_; }  // as it was written

 private:
  PathPattern() = default;

  // Both take what they match off one end of `path`, whose every segment begins with a slash.
  [[nodiscard]] bool TakeLiteral(std::string_view& path) const;
  [[nodiscard]] bool SegmentMatches(const std::string& pattern, std::string_view segment) const;

  std::string text_;
  bool ignore_case_ = false;
  // `/v1/orders/*/items/**/x` is compiled into:
  std::string literal_;              // "/v1/orders", which most patterns are made of
  std::vector<std::string> middle_;  // "/*", "/items"
  bool any_rest_ = false;            // there is a `**`
  std::vector<std::string> tail_;    // "/x"
};

}  // namespace sluice
