// sluice explain: which rules a request meets, in order, with which keys and why.
#include <iostream>
#include <memory>
#include <string>

#include "apps/sluice/commands.h"
#include "sluice/config/explain_report.h"

namespace sluice::app {

void AddExplain(CLI::App& program, int& exit_code) {
  struct Given {
    std::string path;
    config::ExplainOptions options;
  };
  auto given = std::make_shared<Given>();
  config::ExplainOptions& options = given->options;
  CLI::App* command =
      program.add_subcommand("explain", "Tell which rules a request meets; nothing is counted");
  command->add_option("file", given->path, "The configuration, YAML")->required();
  command->add_option("--request", options.request, "The request, as in 'GET /v1/orders'")
      ->required();
  command->add_option("--header", options.headers, "A header, as in 'X-API-Key: ann'; may repeat");
  command->add_option("--ip", options.peer, "The address that holds the connection")
      ->capture_default_str();
  command->add_option("--attribute", options.attributes, "What a door passes on, as in tenant=t1");
  command->add_flag("--json", options.json, "As JSON");
  command->callback([given, &exit_code] {
    const config::Report report = config::Explain(given->path, given->options);
    std::cout << report.text << std::flush;
    exit_code = report.exit_code;
  });
}

}  // namespace sluice::app
