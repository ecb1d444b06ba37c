// `sluice check FILE`: all that is wrong with a configuration, for people or as JSON.
//
//   {"file": "sluice.yaml", "ok": false, "rules": 0, "errors": 1, "warnings": 0,
//    "problems": [{"severity": "error", "file": "sluice.yaml", "line": 14, "column": 14,
//                  "message": "`burst` must be at least 1, got 0", "hint": "..."}]}
//
// A problem with the file as a whole has line and column 0. Fields may be added, none is taken
// away.
#pragma once

#include <string>

#include "sluice/config/report.h"

namespace sluice::config {

struct CheckOptions {
  bool json = false;
  bool strict = false;  // warnings are not fine
};

Report Check(const std::string& path, const CheckOptions& options);

}  // namespace sluice::config
