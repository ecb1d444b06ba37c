// What a subcommand prints, and its exit code: 0 done, 1 strict and there were warnings, 2 the file
// is wrong or it could not be done.
#pragma once

#include <string>

namespace sluice::config {

struct Report {
  std::string text;  // for standard output, with a newline at the end
  int exit_code = 0;
};

}  // namespace sluice::config
