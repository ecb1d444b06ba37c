// sluice: a rate limiter. See README.md.
#include <CLI/CLI.hpp>

#include "apps/sluice/commands.h"
#include "sluice/config/report.h"

int main(int argc, char** argv) {
  CLI::App program("Sluice, a rate limiter", "sluice");
  program.set_version_flag("--version", SLUICE_VERSION);
  program.require_subcommand(1);
  int exit_code = sluice::config::kExitDone;
  sluice::app::AddServe(program, exit_code);
  sluice::app::AddCheck(program, exit_code);
  sluice::app::AddExplain(program, exit_code);
  try {
    program.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    // --help and --version are "errors" of code 0; everything else could not be done.
    return program.exit(error) == 0 ? sluice::config::kExitDone : sluice::config::kExitFailed;
  }
  return exit_code;
}
