// The subcommands of `sluice`. Each adds its options to the program and, when it was chosen, runs
// and sets the exit code (sluice/config/report.h).
#pragma once

#include <CLI/CLI.hpp>

namespace sluice::app {

// `exit_code` outlives the parsing.
void AddServe(CLI::App& program, int& exit_code);
void AddCheck(CLI::App& program, int& exit_code);
void AddExplain(CLI::App& program, int& exit_code);

}  // namespace sluice::app
