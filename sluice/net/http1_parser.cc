#include "sluice/net/http1_parser.h"

#include <algorithm>
#include <boost/asio/buffer.hpp>
#include <boost/beast/http/basic_parser.hpp>
#include <boost/beast/http/error.hpp>
#include <cstring>

namespace sluice::net {
namespace {

namespace http = boost::beast::http;
using boost::beast::error_code;
using BeastView = boost::beast::string_view;

constexpr HeadProblem kOk{};
// 10^18 - 1 bytes: more is damage, and never overflows.
constexpr std::size_t kMaxLengthDigits = 18;

constexpr HeadProblem BadRequest(std::string_view reason) { return {400, reason}; }

std::string_view View(BeastView text) { return {text.data(), text.size()}; }

bool IsDigits(std::string_view text) { return std::all_of(text.begin(), text.end(), IsDigit); }

// uri-host [ ":" port ] (RFC 3986, 3.2.2): a name, or an address in brackets. Strict, since who
// cuts the port off elsewhere would read another host in `a:80:80` or `a]`.
bool IsHost(std::string_view authority) {
  const bool bracketed = authority.starts_with('[');
  const std::size_t bracket = authority.find(']');
  if (bracketed && bracket == authority.npos) return false;
  const std::size_t end = bracketed ? bracket + 1 : std::min(authority.find(':'), authority.size());
  const std::string_view port = authority.substr(end);
  if (!port.empty() && (port.front() != ':' || !IsDigits(port.substr(1)))) return false;
  const std::string_view host =
      bracketed ? authority.substr(1, bracket - 1) : authority.substr(0, end);
  const std::string_view others = bracketed ? ".:%" : "-._~!$&'()*+;=%";
  for (const char c : host) {
    if (!IsLetter(c) && !IsDigit(c) && others.find(c) == std::string_view::npos) return false;
  }
  return !host.empty();
}

// Hands start line and fields to a head object as views. The body's callbacks are never called,
// for skip(true) ends the parser with the head.
template <bool kIsRequest, class Head>
class HeadParser final : public http::basic_parser<kIsRequest> {
 public:
  explicit HeadParser(Head* head) : head_(head) {}

 private:
  void on_request_impl(http::verb /*verb*/, BeastView method, BeastView target, int version,
                       error_code& /*ec*/) override {
    if constexpr (kIsRequest) {
      head_->method = View(method);
      head_->target = View(target);
      head_->minor_version = version % 10;
    }
  }
  void on_response_impl(int status, BeastView reason, int version, error_code& /*ec*/) override {
    if constexpr (!kIsRequest) {
      head_->status = status;
      head_->reason = View(reason);
      head_->minor_version = version % 10;
    }
  }
  void on_field_impl(http::field id, BeastView name, BeastView value, error_code& /*ec*/) override {
    head_->fields.push_back({View(name), View(value), id});
  }
  void on_header_impl(error_code& /*ec*/) override {}
  void on_body_init_impl(const boost::optional<std::uint64_t>& /*length*/,
                         error_code& /*ec*/) override {}
  std::size_t on_body_impl(BeastView body, error_code& /*ec*/) override { return body.size(); }
  void on_chunk_header_impl(std::uint64_t /*size*/, BeastView /*extensions*/,
                            error_code& /*ec*/) override {}
  std::size_t on_chunk_body_impl(std::uint64_t /*remain*/, BeastView body,
                                 error_code& /*ec*/) override {
    return body.size();
  }
  void on_finish_impl(error_code& /*ec*/) override {}

  Head* head_;
};

// `word` is what follows the second space of a request line. Beast has one error for "not a
// version" and "a version that is not served".
HeadProblem VersionProblem(std::string_view word) {
  const bool in_form = word.size() == 8 && word.starts_with("HTTP/") && IsDigit(word[5]) &&
                       word[6] == '.' && IsDigit(word[7]);
  if (in_form) return {505, "only HTTP/1.0 and HTTP/1.1 are spoken here"};
  return BadRequest("the request line is out of form");
}

HeadProblem ProblemOf(error_code ec, std::string_view bytes) {
  if (ec == http::error::bad_version) {
    const std::string_view line = bytes.substr(0, bytes.find("\r\n"));
    const std::size_t method_end = line.find(' ');
    const std::size_t target_end = line.find(' ', method_end + 1);
    return VersionProblem(line.substr(target_end == std::string_view::npos ? 0 : target_end + 1));
  }
  if (ec == http::error::bad_method || ec == http::error::bad_target) {
    return BadRequest("the request line is out of form");
  }
  if (ec == http::error::bad_status || ec == http::error::bad_reason) {
    return BadRequest("the status line is out of form");
  }
  if (ec == http::error::bad_field) return BadRequest("a field's name is not a token");
  if (ec == http::error::bad_value) return BadRequest("a field's value is out of form");
  if (ec == http::error::bad_line_ending) return BadRequest("a line does not end in CRLF");
  if (ec == http::error::bad_content_length || ec == http::error::multiple_content_length) {
    return BadRequest("Content-Length is out of form or conflicts with another field");
  }
  if (ec == http::error::bad_transfer_encoding) {
    return BadRequest("Transfer-Encoding is out of form or conflicts with another field");
  }
  return BadRequest("the head is out of form");
}

template <bool kIsRequest, class Head>
HeadProblem ParseTokens(std::string_view bytes, Head* head) {
  *static_cast<MessageHead*>(head) = MessageHead{.fields = std::move(head->fields)};
  head->fields.clear();
  HeadParser<kIsRequest, Head> parser(head);
  parser.skip(true);
  parser.header_limit(static_cast<std::uint32_t>(bytes.size()) + 1);
  error_code ec;
  const std::size_t used = parser.put(boost::asio::const_buffer(bytes.data(), bytes.size()), ec);
  if (ec) return ProblemOf(ec, bytes);
  if (!parser.is_header_done() || used != bytes.size()) return BadRequest("the head is cut off");
  const std::size_t start = bytes.find("\r\n") + 2;
  head->field_lines = bytes.substr(start, bytes.size() - 2 - start);
  return kOk;
}

bool ParseLength(std::string_view text, std::uint64_t* length) {
  if (text.empty() || text.size() > kMaxLengthDigits) return false;
  std::uint64_t value = 0;
  for (const char c : text) {
    if (c < '0' || c > '9') return false;
    value = value * 10 + static_cast<std::uint64_t>(c - '0');
  }
  *length = value;
  return true;
}

HeadProblem TransferCodingProblem(std::string_view value) {
  bool chunked = false;
  bool after_chunked = false;
  bool other = false;
  ForEachListItem(value, [&](std::string_view coding) {
    after_chunked = after_chunked || chunked;
    const bool is_chunked = EqualsIgnoringCase(coding, "chunked");
    chunked = chunked || is_chunked;
    other = other || !is_chunked;
  });
  if (after_chunked)
    return BadRequest("`chunked` is not the last transfer coding, or not the only");
  if (other) return {501, "no transfer coding but `chunked` is known here"};
  if (!chunked) return BadRequest("Transfer-Encoding names no coding");
  // A list with stray commas may be read otherwise by the next in line.
  if (!EqualsIgnoringCase(value, "chunked")) return BadRequest("Transfer-Encoding is out of form");
  return kOk;
}

// Reads the fields that say where the message ends and whether another may follow.
HeadProblem ReadFraming(MessageHead* head) {
  bool length_given = false;
  bool coding_given = false;
  bool close = false;
  bool keep_alive = false;
  std::uint64_t length = 0;
  for (const Field& field : head->fields) {
    if (field.id == FieldId::content_length) {
      if (length_given) return BadRequest("Content-Length is given twice");
      if (!ParseLength(field.value, &length)) return BadRequest("Content-Length is not a number");
      length_given = true;
    } else if (field.id == FieldId::transfer_encoding) {
      if (coding_given) return BadRequest("Transfer-Encoding is given twice");
      const HeadProblem problem = TransferCodingProblem(field.value);
      if (!problem.ok()) return problem;
      coding_given = true;
    } else if (field.id == FieldId::connection) {
      ForEachListItem(field.value, [&](std::string_view option) {
        if (EqualsIgnoringCase(option, "close")) {
          close = true;
        } else if (EqualsIgnoringCase(option, "keep-alive")) {
          keep_alive = true;
        } else {
          head->connection_options = true;
          head->upgrade = head->upgrade || EqualsIgnoringCase(option, "upgrade");
        }
      });
    }
  }
  if (length_given && coding_given) {
    return BadRequest("Content-Length and Transfer-Encoding exclude each other");
  }
  if (coding_given && head->minor_version == 0) {
    return BadRequest("HTTP/1.0 has no Transfer-Encoding");
  }
  head->keep_alive = !close && (head->minor_version >= 1 || keep_alive);
  if (coding_given) {
    head->framing.kind = BodyFraming::Kind::kChunked;
  } else if (length_given && length > 0) {
    head->framing = {BodyFraming::Kind::kLength, length};
  } else if (!length_given) {
    head->framing.kind = BodyFraming::Kind::kUntilClose;
  }
  return kOk;
}

// http://host[:port][/path]. The form that clients use towards proxies; every server takes it.
HeadProblem ReadAbsoluteTarget(RequestHead* head) {
  std::string_view rest = head->target;
  const std::size_t scheme_end = rest.find("://");
  const std::string_view scheme = rest.substr(0, scheme_end);
  if (scheme_end == std::string_view::npos ||
      (!EqualsIgnoringCase(scheme, "http") && !EqualsIgnoringCase(scheme, "https"))) {
    return BadRequest("the target is neither a path nor an http URL");
  }
  rest.remove_prefix(scheme_end + 3);
  const std::size_t host_end = rest.find_first_of("/?");
  head->host = rest.substr(0, host_end);
  if (!IsHost(head->host)) return BadRequest("the target's host is out of form");
  head->absolute_target = true;
  if (host_end == std::string_view::npos) {
    head->path = head->method == "OPTIONS" ? "*" : "/";
  } else if (rest[host_end] == '/') {
    head->path = rest.substr(host_end);
  } else {
    return BadRequest("the target has a query but no path");
  }
  return kOk;
}

HeadProblem ReadTarget(RequestHead* head) {
  if (head->method == "CONNECT") return {501, "this is no tunnel"};
  if (head->target.find('#') != std::string_view::npos) {
    return BadRequest("the target has a fragment");
  }
  if (head->target.front() == '/') {
    head->path = head->target;
    return kOk;
  }
  if (head->target == "*") {
    if (head->method != "OPTIONS") return BadRequest("only OPTIONS has the target `*`");
    head->path = head->target;
    return kOk;
  }
  return ReadAbsoluteTarget(head);
}

HeadProblem ReadHost(RequestHead* head) {
  const Field* host = nullptr;
  for (const Field& field : head->fields) {
    if (field.id != FieldId::host) continue;
    if (host != nullptr) return BadRequest("Host is given twice");
    host = &field;
  }
  if (host == nullptr) {
    return head->minor_version >= 1 ? BadRequest("Host is missing") : kOk;
  }
  if (!IsHost(host->value)) return BadRequest("Host is out of form");
  if (!head->absolute_target) head->host = host->value;
  return kOk;
}

}  // namespace

HeadScanner::State HeadScanner::Bad(int status, std::string_view reason) {
  problem_ = {status, reason};
  return State::kBad;
}

HeadScanner::State HeadScanner::Scan(std::string_view bytes, const HeadLimits& limits) {
  if (!bytes.empty() && lines_ == 0 && !IsTokenChar(bytes.front())) {
    return Bad(400, "this is not HTTP/1");  // e.g. TLS on a plain port
  }
  while (position_ < bytes.size()) {
    const void* found = std::memchr(bytes.data() + position_, '\n', bytes.size() - position_);
    if (found == nullptr) {
      position_ = bytes.size();
      break;
    }
    const auto at = static_cast<std::size_t>(static_cast<const char*>(found) - bytes.data());
    if (at == line_start_ || bytes[at - 1] != '\r') return Bad(400, "a line ends in a bare LF");
    const bool empty = at - 1 == line_start_;
    const char first = bytes[line_start_];
    position_ = line_start_ = at + 1;
    if (position_ > limits.max_bytes) break;
    if (empty) return State::kComplete;
    if (lines_ > 0 && (first == ' ' || first == '\t')) return Bad(400, "a field is folded");
    if (++lines_ > limits.max_fields + 1) return Bad(431, "the head has too many fields");
  }
  if (position_ > limits.max_bytes) return Bad(431, "the head is too long");
  return State::kNeedMore;
}

const Field* MessageHead::Find(FieldId id) const {
  for (const Field& field : fields) {
    if (field.id == id) return &field;
  }
  return nullptr;
}

const Field* MessageHead::Find(std::string_view name) const {
  for (const Field& field : fields) {
    if (EqualsIgnoringCase(field.name, name)) return &field;
  }
  return nullptr;
}

bool MessageHead::NamedByConnection(const Field& field) const {
  if (!connection_options) return false;
  if (field.id == FieldId::host || field.id == FieldId::content_length) return false;
  bool named = false;
  for (const Field& other : fields) {
    if (other.id != FieldId::connection) continue;
    ForEachListItem(other.value, [&](std::string_view option) {
      named = named || EqualsIgnoringCase(option, field.name);
    });
  }
  return named;
}

HeadProblem ParseRequestHead(std::string_view bytes, RequestHead* head) {
  HeadProblem problem = ParseTokens<true>(bytes, head);
  if (!problem.ok()) return problem;
  head->host = {};
  head->absolute_target = false;
  if (problem = ReadTarget(head); !problem.ok()) return problem;
  if (problem = ReadHost(head); !problem.ok()) return problem;
  if (problem = ReadFraming(head); !problem.ok()) return problem;
  // A request without either field has no body; only a response may end with the connection.
  if (head->framing.kind == BodyFraming::Kind::kUntilClose) head->framing = {};
  const Field* expect = head->Find(FieldId::expect);
  // Who speaks HTTP/1.0 knows nothing of it (RFC 9110, 10.1.1).
  if (head->minor_version == 0) expect = nullptr;
  head->expect_continue = expect != nullptr && EqualsIgnoringCase(expect->value, "100-continue");
  if (expect != nullptr && !head->expect_continue) {
    return {417, "no expectation but `100-continue` is known here"};
  }
  return kOk;
}

HeadProblem ParseResponseHead(std::string_view bytes, bool to_head, ResponseHead* head) {
  HeadProblem problem = ParseTokens<false>(bytes, head);
  if (!problem.ok()) return problem;
  if (head->status < 100) return BadRequest("the status is below 100");
  if (problem = ReadFraming(head); !problem.ok()) return problem;
  if (to_head || head->status < 200 || head->status == 204 || head->status == 304) {
    head->framing = {};
  }
  if (head->framing.kind == BodyFraming::Kind::kUntilClose) head->keep_alive = false;
  return kOk;
}

}  // namespace sluice::net
