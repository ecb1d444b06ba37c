// sluice: a distributed rate limiter. See README.md.
#include <CLI/CLI.hpp>

#include "apps/sluice/commands.h"

int main(int argc, char** argv) {
  CLI::App program("Sluice, a distributed rate limiter", "sluice");
  program.set_version_flag("--version", SLUICE_VERSION);
  program.require_subcommand(1);
  int exit_code = sluice::app::kDone;
  sluice::app::AddServe(program, exit_code);
  sluice::app::AddCheck(program, exit_code);
  sluice::app::AddExplain(program, exit_code);
  try {
    program.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    // --help and --version are "errors" of code 0; everything else could not be done.
    return program.exit(error) == 0 ? sluice::app::kDone : sluice::app::kFailed;
  }
  return exit_code;
}
