#include "tests/access_logs/access_log.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iostream>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/time/time.h"

namespace sluice::testing {
namespace {

[[noreturn]] void Fail(const std::string& what) {
  std::cerr << what << "\n";
  std::exit(1);
}

std::vector<std::string> Lines(const std::string& path) {
  std::ifstream file(path);
  if (!file) Fail("cannot read " + path);
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(std::move(line));
  return lines;
}

WallTime FromSeconds(std::int64_t seconds) { return WallTime{std::chrono::seconds{seconds}}; }

// 83.149.9.216 - - [17/May/2015:10:05:03 +0000] "GET /x HTTP/1.1" 200 ...
LoggedRequest ReadApacheLine(const std::string& line) {
  const std::size_t open = line.find('[');
  const std::size_t close = line.find(']', open);
  const std::size_t quote = line.find('"', close);
  if (open == line.npos || close == line.npos || quote == line.npos)
    Fail("not a log line: " + line);
  absl::Time time;
  std::string error;
  const std::string text = line.substr(open + 1, close - open - 1);
  if (!absl::ParseTime("%d/%b/%Y:%H:%M:%S %z", text, &time, &error)) Fail(text + ": " + error);
  const std::string request = line.substr(quote + 1, line.find('"', quote + 1) - quote - 1);
  const std::size_t first = request.find(' ');
  const std::size_t second = request.find(' ', first + 1);
  return {.client = line.substr(0, line.find(' ')),
          .time = FromSeconds(absl::ToUnixSeconds(time)),
          .method = request.substr(0, first),
          .target = first == request.npos ? "/" : request.substr(first + 1, second - first - 1)};
}

}  // namespace

std::vector<LoggedRequest> ReadApacheLog(const std::string& path) {
  std::vector<LoggedRequest> log;
  for (const std::string& line : Lines(path)) log.push_back(ReadApacheLine(line));
  return log;
}

std::vector<LoggedRequest> ReadTabSeparatedLog(const std::string& path) {
  std::vector<LoggedRequest> log;
  const std::vector<std::string> lines = Lines(path);
  for (std::size_t i = 1; i < lines.size(); ++i) {
    const std::vector<std::string> columns = absl::StrSplit(lines[i], '\t');
    std::int64_t seconds = 0;
    if (columns.size() < 5 || !absl::SimpleAtoi(columns[2], &seconds))
      Fail("not a log line: " + lines[i]);
    log.push_back({.client = columns[0],
                   .time = FromSeconds(seconds),
                   .method = columns[3],
                   .target = columns[4]});
  }
  return log;
}

void SortByTime(std::vector<LoggedRequest>& log) {
  std::stable_sort(log.begin(), log.end(),
                   [](const LoggedRequest& a, const LoggedRequest& b) { return a.time < b.time; });
}

}  // namespace sluice::testing
