// `sluice explain FILE --request 'GET /v1/orders'`: which rules a request meets, with which key and
// how much each of them allows; nothing is counted.
//
//   GET /v1/orders from 203.0.113.9, plan pro
//     flood    counts it under ip=203.0.113.9 with cost 1: token-bucket 50/s, burst 200
//     api      counts it under api_key=ann with cost 1: token-bucket 1000/min, burst 200 (plan pro)
//     login    does not meet it: method does not match
//
// As JSON: {"method", "path", "host", "client", "plan", "rules": [{"name", "meets", "denies",
// "reason", "mode", "key": [...], "limit", "plan", "cost"}]}; "reason" says why a rule does not
// meet the request or denies it without counting.
#pragma once

#include <string>
#include <vector>

#include "sluice/config/report.h"

namespace sluice::config {

struct ExplainOptions {
  // METHOD TARGET, or the target alone for GET. A target that is a whole URL names the host, too.
  std::string request;
  std::vector<std::string> headers;     // "Name: value"
  std::string peer = "127.0.0.1";       // who holds the connection
  std::vector<std::string> attributes;  // "name=value"
  bool json = false;
};

// What is wrong with the options is told as "error: ..." with kExitFailed, as for the file.
Report Explain(const std::string& path, const ExplainOptions& options);

}  // namespace sluice::config
