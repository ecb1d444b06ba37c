// sluice check: errors and warnings of a configuration, by the code that start and reload use.
#include <iostream>
#include <memory>
#include <string>

#include "apps/sluice/commands.h"
#include "sluice/config/check_report.h"

namespace sluice::app {

void AddCheck(CLI::App& program, int& exit_code) {
  struct Given {
    std::string path;
    config::CheckOptions options;
  };
  auto given = std::make_shared<Given>();
  CLI::App* command = program.add_subcommand("check", "Tell what is wrong with a configuration");
  command->add_option("file", given->path, "The configuration, YAML")->required();
  command->add_flag("--json", given->options.json, "As JSON");
  command->add_flag("--strict", given->options.strict, "Exit with 1 when there are warnings");
  command->callback([given, &exit_code] {
    const config::Report report = config::Check(given->path, given->options);
    std::cout << report.text << std::flush;
    exit_code = report.exit_code;
  });
}

}  // namespace sluice::app
