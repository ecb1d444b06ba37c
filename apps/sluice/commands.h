// The subcommands of `sluice`. Each adds its options to the program and, when it was chosen, runs
// and sets the exit code:
//
//   0  done (also a check with warnings)
//   1  check --strict with warnings
//   2  the file is wrong, or it could not be done
#pragma once

#include <CLI/CLI.hpp>

namespace sluice::app {

inline constexpr int kDone = 0;
inline constexpr int kWarned = 1;
inline constexpr int kFailed = 2;

// `exit_code` outlives the parsing.
void AddServe(CLI::App& program, int& exit_code);
void AddCheck(CLI::App& program, int& exit_code);
void AddExplain(CLI::App& program, int& exit_code);

}  // namespace sluice::app
