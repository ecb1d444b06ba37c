// What a subcommand prints, and its exit code.
#pragma once

#include <string>

namespace sluice::config {

inline constexpr int kExitDone = 0;    // also a check with warnings
inline constexpr int kExitWarned = 1;  // check --strict, and there were warnings
inline constexpr int kExitFailed = 2;  // the file is wrong, or it could not be done

struct Report {
  std::string text;  // for standard output, with a newline at the end
  int exit_code = kExitDone;
};

}  // namespace sluice::config
