// The heads of HTTP/1.1 messages (RFC 9112): where one ends, and what it says.
//
//   bytes of a connection            a head, as views into those bytes
//   ---------------------            ---------------------------------
//   HeadScanner::Scan  -- complete --> ParseRequestHead / ParseResponseHead
//     | need more          | bad
//     read on              answer problem.status and close
//
// Tokens are taken apart by Boost.Beast's basic_parser; its messages are not used, so nothing is
// allocated for a field. On top stand the checks that a gateway needs, because the next reader of
// the same bytes must not be able to see another message in them (request smuggling):
//
//   refused with 400   bare LF or CR, NUL and other control bytes, folded lines, white space before
//                      a colon, a request line out of form, a fragment or user name in the target,
//                      Content-Length twice, signed, in a list or above 10^18, Content-Length with
//                      Transfer-Encoding, Transfer-Encoding in HTTP/1.0 or not ending in one
//                      `chunked`, Host missing, twice, empty or out of form
//   refused with 417   an expectation other than `100-continue`
//   refused with 431   more bytes or fields than HeadLimits
//   refused with 501   another transfer coding than chunked; the method CONNECT
//   refused with 505   another major version than HTTP/1, or a minor one above 1
//
// The same checks apply to what an upstream answers; there every problem means 502.
//
// Views are valid as long as the bytes given stay where they are. Cost: one pass to find the end,
// one to parse; no allocation once a head object has seen a head with as many fields.
#pragma once

#include <boost/beast/http/field.hpp>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "sluice/base/ascii.h"

namespace sluice::net {

using FieldId = boost::beast::http::field;

struct HeadLimits {
  std::size_t max_bytes = std::size_t{32} * 1024;  // start line, fields and the empty line
  std::size_t max_fields = 100;
};

// What is wrong with a head: the status that a server answers with, and why, for people.
struct HeadProblem {
  int status = 0;  // 0: nothing is wrong
  std::string_view reason;

  [[nodiscard]] bool ok() const { return status == 0; }
};

// Finds the end of a head in bytes that arrive piece by piece, and refuses early what no further
// byte can mend (a bare LF would otherwise wait for an end that never comes).
class HeadScanner {
 public:
  enum class State : std::uint8_t { kNeedMore, kComplete, kBad };

  // `bytes` begin at the head's first byte and, from call to call, only get longer.
  [[nodiscard]] State Scan(std::string_view bytes, const HeadLimits& limits);

  [[nodiscard]] std::size_t size() const { return position_; }  // of the head, once complete
  [[nodiscard]] const HeadProblem& problem() const { return problem_; }
  void Reset() { *this = {}; }

 private:
  State Bad(int status, std::string_view reason);

  std::size_t position_ = 0;    // all before it was looked at
  std::size_t line_start_ = 0;  // of the line that is not finished yet
  std::size_t lines_ = 0;       // finished ones
  HeadProblem problem_;
};

struct Field {
  std::string_view name;   // as sent
  std::string_view value;  // without white space around it
  FieldId id;              // FieldId::unknown for names that Beast does not list
};

// How a message says where its body ends (RFC 9112, section 6.3).
struct BodyFraming {
  enum class Kind : std::uint8_t { kNone, kLength, kChunked, kUntilClose };
  Kind kind = Kind::kNone;
  std::uint64_t length = 0;  // with kLength; at least 1

  [[nodiscard]] bool has_body() const { return kind != Kind::kNone; }
};

// What both kinds of head have in common.
struct MessageHead {
  std::vector<Field> fields;     // in the order sent
  std::string_view field_lines;  // the same as raw lines, each with its CRLF, without the empty one
  BodyFraming framing;
  int minor_version = 1;
  bool keep_alive = true;           // the connection may be used again after this message
  bool connection_options = false;  // Connection names more than `close` and `keep-alive`
  bool upgrade = false;             // and `upgrade` is among it

  // The first field with this name; null if there is none.
  [[nodiscard]] const Field* Find(FieldId id) const;
  [[nodiscard]] const Field* Find(std::string_view name) const;  // in any case
  // Whether Connection names this field, so that it is for this connection alone. Host and
  // Content-Length can not be named away.
  [[nodiscard]] bool NamedByConnection(const Field& field) const;
};

struct RequestHead : MessageHead {
  std::string_view method;
  std::string_view target;  // as sent
  std::string_view path;    // with the query: begins with `/`, or is `*`; never the absolute form
  std::string_view host;    // of the target if that is absolute, else of Host; empty in HTTP/1.0
  bool absolute_target = false;
  bool expect_continue = false;
};

struct ResponseHead : MessageHead {
  int status = 0;
  std::string_view reason;
};

// `bytes` is a complete head, as HeadScanner found it. Overwrites `*head`, whose content is
// unspecified after a problem.
[[nodiscard]] HeadProblem ParseRequestHead(std::string_view bytes, RequestHead* head);

// `to_head` tells that the request's method was HEAD, so that no body follows whatever is said.
[[nodiscard]] HeadProblem ParseResponseHead(std::string_view bytes, bool to_head,
                                            ResponseHead* head);

// Calls `visit(token)` for every element of a comma-separated list, without white space around it
// and without empty ones.
template <class Visit>
void ForEachListItem(std::string_view list, Visit visit) {
  while (!list.empty()) {
    const std::size_t comma = list.find(',');
    const std::string_view item = Trim(list.substr(0, comma));
    list.remove_prefix(comma == std::string_view::npos ? list.size() : comma + 1);
    if (!item.empty()) visit(item);
  }
}

}  // namespace sluice::net
