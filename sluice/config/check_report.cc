#include "sluice/config/check_report.h"

#include <fmt/format.h>

#include <boost/json.hpp>

#include "sluice/config/load.h"

namespace sluice::config {
namespace {

namespace json = boost::json;

std::string Json(const std::string& path, const LoadResult& result, std::size_t rules) {
  const Diagnostics& diagnostics = result.diagnostics;
  json::array problems;
  for (const Diagnostic& one : diagnostics.Sorted()) {
    problems.push_back({{"severity", one.severity == Severity::kError ? "error" : "warning"},
                        {"file", diagnostics.FileName(one.location.file)},
                        {"line", one.location.line},
                        {"column", one.location.column},
                        {"message", one.message},
                        {"hint", one.hint}});
  }
  const json::object report = {{"file", path},
                               {"ok", result.config.has_value()},
                               {"rules", rules},
                               {"errors", diagnostics.errors()},
                               {"warnings", diagnostics.warnings()},
                               {"problems", std::move(problems)}};
  return json::serialize(report) + "\n";
}

}  // namespace

Report Check(const std::string& path, const CheckOptions& options) {
  const LoadResult result = Load(path, 1);
  const std::size_t rules = result.config ? result.config->rules->rules().size() : 0;
  Report report;
  if (!result.config) {
    report.exit_code = kExitFailed;
  } else if (options.strict && result.diagnostics.warnings() > 0) {
    report.exit_code = kExitWarned;
  }
  if (options.json) {
    report.text = Json(path, result, rules);
  } else {
    report.text = result.diagnostics.Text();
    if (result.config)
      report.text += fmt::format("{}: {}, no errors\n", path, Counted(rules, "rule"));
  }
  return report;
}

}  // namespace sluice::config
