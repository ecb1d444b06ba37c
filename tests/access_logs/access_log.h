// Access logs as a list of requests: who, when, what. For tests; the product's own log readers know
// many more forms.
#pragma once

#include <string>
#include <vector>

#include "sluice/base/time.h"

namespace sluice::testing {

struct LoggedRequest {
  std::string client;
  WallTime time;  // whole seconds
  std::string method;
  std::string target;
};

// Both abort the test program when the file is not there or a line cannot be read.
std::vector<LoggedRequest> ReadApacheLog(const std::string& path);
// Tab-separated: host, logname, time, method, url, ...; one header line.
std::vector<LoggedRequest> ReadTabSeparatedLog(const std::string& path);

void SortByTime(std::vector<LoggedRequest>& log);  // stable

}  // namespace sluice::testing
