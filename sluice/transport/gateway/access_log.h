// The access log: a line for each request, also for those that were refused before any rule was
// asked, and for upgraded connections when they end. Requests for the health path have none.
//
// combined, as nginx and Apache write it:
//   192.0.2.7 - - [30/Nov/2026:13:05:27 +0000] "GET /v1/orders HTTP/1.1" 200 612 "-" "curl/8.1"
//
// json:
//   {"time":"2026-11-30T13:05:27.123Z","client":"192.0.2.7","peer":"10.0.0.2","method":"GET",
//    "path":"/v1/orders","protocol":"HTTP/1.1","host":"shop.example","user_agent":"curl/8.1",
//    "referer":"","request_id":"9f...","status":200,"bytes_sent":612,"bytes_received":0,
//    "duration_ms":12.345,"decision":"allowed","rule":"api","result":"forwarded",
//    "upstream":"10.0.0.1:9000","upstream_ms":11.870}
//
//   client      as the rules see it (behind proxies); peer: who the connection is with
//   bytes       of content, without heads and chunks; of an upgraded connection all that passed
//   duration    from the request's head to its end
//   decision    what the engine answered, "none" where it was not asked; rule: the decisive one
//   result      forwarded, failed, aborted (books.h), denied, or refused before any rule was asked
//   upstream    the one that was asked; upstream_ms: from then to the head of its answer
//   status 499  the connection ended before an answer had begun
//   null, or -  is not known: no rule met the request, or its head could not be read
//
// Whatever a client sends stays inside its member: control bytes, quotes, backslashes and what is
// no UTF-8 are escaped (combined: \xHH, as nginx does). The query is left out unless asked for: it
// may hold keys. A text of a client's is cut after kMaxAccessText bytes.
//
// Cost: a request appends to two strings that its connection keeps and copies them into a ring
// (line_writer.h); no allocation, no system call.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "sluice/base/line_writer.h"
#include "sluice/base/time.h"

namespace sluice::gateway {

enum class AccessForm : std::uint8_t { kCombined, kJson };

// Where lines go, and how.
struct AccessLog {
  LineWriter& lines;  // with a ring for each loop
  AccessForm form = AccessForm::kCombined;
  bool query = false;  // paths with their query
};

inline constexpr std::size_t kMaxAccessText = 4096;

// What is known when a request begins. Only views: they must last for one call.
struct AccessRequest {
  std::chrono::milliseconds since_1970{0};
  std::string_view client;
  std::string_view peer;
  std::string_view method;  // empty: the head could not be read
  std::string_view target;
  int minor_version = 1;
  std::string_view host;
  std::string_view user_agent;
  std::string_view referer;
  std::string_view request_id;
};

// What is known when it ends.
struct AccessEnd {
  int status = 0;  // 0: none was sent
  std::uint64_t sent = 0;
  std::uint64_t received = 0;
  Duration duration{0};
  std::string_view decision;
  std::string_view rule;
  std::string_view result;
  std::string_view upstream;
  Duration upstream_time{-1};  // negative: it has not answered
};

// One request's line on its way. Reused from request to request.
class AccessLine {
 public:
  void Begin(const AccessLog& log, const AccessRequest& request);
  // The whole line, with its newline; good until the next Begin().
  [[nodiscard]] std::string_view Finish(const AccessEnd& end);

 private:
  AccessForm form_ = AccessForm::kCombined;
  std::string text_;
  std::string rest_;  // of combined: what stands behind the numbers
};

}  // namespace sluice::gateway
