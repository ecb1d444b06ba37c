#include "sluice/rule/path_pattern.h"

#include <algorithm>
#include <cstddef>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "sluice/base/ascii.h"
#include "sluice/base/bytes.h"

namespace sluice {
namespace {

bool Equal(std::string_view a, std::string_view b, bool ignore_case) {
  return ignore_case ? EqualsIgnoringCase(a, b) : SameBytes(a, b);
}

void DropSlashAtEnd(std::string_view& path) {
  if (!path.empty() && path.back() == '/') path.remove_suffix(1);
}

// What the pattern's writer has to mend, as the second half of a sentence; empty when all is well.
std::string_view Fault(std::string_view pattern) {
  if (pattern.empty() || pattern.front() != '/') return "does not begin with `/`";
  if (pattern.find('?') != pattern.npos) {
    return "has a `?`; the query is no part of a path, leave it out";
  }
  if (pattern.find_first_of("{}") != pattern.npos) {
    return "has `{}`; for any one segment write `*`";
  }
  if (pattern.find("%2a") != pattern.npos || pattern.find("%2A") != pattern.npos) {
    return "has an escaped `*`; for any one segment write `*`";
  }
  return "";
}

}  // namespace

absl::StatusOr<PathPattern> PathPattern::Compile(std::string_view pattern, bool ignore_case) {
  const auto refuse = [&](std::string_view why) {
    return absl::InvalidArgumentError(
        absl::StrCat("`", absl::string_view(pattern.data(), pattern.size()), "` ",
                     absl::string_view(why.data(), why.size())));
  };
  if (const std::string_view fault = Fault(pattern); !fault.empty()) return refuse(fault);
  std::string buffer(PathBufferSize(pattern.size()), '\0');
  const NormalPath path = NormalizePath(pattern, buffer);
  if (!path.ok()) {
    const std::string_view why = ToString(path.error);
    return refuse(absl::StrCat("is no path: ", absl::string_view(why.data(), why.size())));
  }

  PathPattern compiled;
  compiled.text_ = pattern;
  compiled.ignore_case_ = ignore_case;
  std::string_view rest = path.literal;
  DropSlashAtEnd(rest);
  while (!rest.empty()) {
    const std::string segment(rest.substr(0, rest.find('/', 1)));
    rest.remove_prefix(segment.size());
    if (segment == "/**") {
      if (compiled.any_rest_) return refuse("has `**` twice; once is the most");
      compiled.any_rest_ = true;
    } else if (segment != "/*" && segment.find('*') != segment.npos) {
      return refuse("has a `*` inside a segment; it stands for a whole one");
    } else if (compiled.any_rest_) {
      compiled.tail_.push_back(segment);
    } else if (segment == "/*" || !compiled.middle_.empty()) {
      compiled.middle_.push_back(segment);
    } else {
      compiled.literal_ += segment;
    }
  }
  return compiled;
}

bool PathPattern::TakeLiteral(std::string_view& path) const {
  if (path.size() < literal_.size()) return false;
  if (!Equal(path.substr(0, literal_.size()), literal_, ignore_case_)) return false;
  path.remove_prefix(literal_.size());
  return path.empty() || path.front() == '/';
}

bool PathPattern::SegmentMatches(const std::string& pattern, std::string_view segment) const {
  return pattern == "/*" || Equal(pattern, segment, ignore_case_);
}

bool PathPattern::Matches(std::string_view path) const {
  DropSlashAtEnd(path);
  if (!TakeLiteral(path)) return false;
  for (const std::string& pattern : middle_) {
    if (path.empty()) return false;
    const std::string_view segment = path.substr(0, path.find('/', 1));
    if (!SegmentMatches(pattern, segment)) return false;
    path.remove_prefix(segment.size());
  }
  if (!any_rest_) return path.empty();
  for (auto pattern = tail_.rbegin(); pattern != tail_.rend(); ++pattern) {
    if (path.empty()) return false;
    const std::string_view segment = path.substr(path.rfind('/'));
    if (!SegmentMatches(*pattern, segment)) return false;
    path.remove_suffix(segment.size());
  }
  return true;
}

}  // namespace sluice
